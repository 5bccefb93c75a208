#pragma once
// The only header that includes CAF. Written against CAF 0.17 and 1.x; what differs between them is
// kept here, side by side.
#include <caf/actor_companion.hpp>
#include <caf/all.hpp>
#include <caf/io/all.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/openssl/all.hpp>

#include "actors/outbox.hpp"
#include "cluster/frame.hpp"
#include "core/text.hpp"
#include "messages/address.hpp"
#include "messages/message.hpp"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace leeway::cluster {

/// What happened before handing_over(x) on one thread has happened before taking_over(x) on
/// another. CAF orders the two by its mailboxes, which the thread sanitizer cannot see into; in
/// other builds these do nothing.
inline void handing_over([[maybe_unused]] const void* receiver) {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(const_cast<void*>(receiver));
#endif
}
inline void taking_over([[maybe_unused]] const void* receiver) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(const_cast<void*>(receiver));
#endif
}

// What the generic actor is sent. All of it stays inside the process.

/// A message from one role to another.
struct Delivery {
  Address from;
  Message message;
};
/// All actors of the host are there: begin.
struct Begin {};
/// Compute part `part` on the actor's own thread.
struct RunPart {
  std::shared_ptr<Work> work;
  int part = 0;
};
/// Part `part` has been computed.
struct PartDone {
  std::shared_ptr<Work> work;
  int part = 0;
};
/// A part threw.
struct PartFailed {
  std::string reason;
};
struct Tick {
  TimerToken token = 0;
};
/// Do nothing for so long, as if the process had been stopped.
struct Freeze {
  Duration time;
};
/// An actor of another host has ended, or seems to have.
struct Down {
  Address ended;
  std::string reason;
};
/// The link to an actor of another host was broken, and works again.
struct Linked {
  Address peer;
};

/// Sends one of these, from any thread.
template <class T>
void mail(const caf::actor& to, T&& message) {
  handing_over(caf::actor_cast<caf::abstract_actor*>(to));
  caf::anon_send(to, std::forward<T>(message));
}

// What travels between processes: frames alone.

/// An actor here or elsewhere, by which frames reach it.
using Route = caf::strong_actor_ptr;

#if CAF_MAJOR_VERSION >= 1

#define LW_CAF_KEY(name) "caf." name
inline void init_caf_types() {
  caf::init_global_meta_objects<caf::id_block::leeway>();
  caf::core::init_global_meta_objects();
  caf::io::middleman::init_global_meta_objects();
}
inline std::string caf_name(const char* name) {
  return name;
}
inline std::string caf_word(const char* word) {
  return word;
}
/// Loads and saves frames. One that is none is loaded as broken, so that the receiver can tell.
template <class Inspector>
bool inspect(Inspector& inspector, Frame& frame) {
  if constexpr (std::is_same_v<Inspector, caf::binary_deserializer>) {
    struct From final : Source {
      explicit From(Inspector& inspector) : in(inspector) {}
      bool take(void* bytes, std::size_t count) override {
        return in.value(caf::span<std::byte>(static_cast<std::byte*>(bytes), count));
      }
      std::size_t remaining() const override { return in.remaining(); }
      Inspector& in;
    } source(inspector);
    frame.broken = !load(frame, source);
    return true;
  } else if constexpr (std::is_same_v<Inspector, caf::binary_serializer>) {
    struct To final : Sink {
      explicit To(Inspector& inspector) : out(inspector) {}
      bool put(const void* bytes, std::size_t count) override {
        return out.value(caf::span<const std::byte>(static_cast<const std::byte*>(bytes), count));
      }
      Inspector& out;
    } sink(inspector);
    return save(frame, sink);
  } else {
    return false;
  }
}
inline void deliver(const Route& to, const Route& from, Frame frame) {
  to->enqueue(caf::make_mailbox_element(from, caf::make_message_id(), std::move(frame)), nullptr);
}
template <class T>
T* content_as(caf::mailbox_element& element) {
  auto& content = element.payload;
  return content.match_elements<T>() ? &content.get_mutable_as<T>(0) : nullptr;
}

#else

#define LW_CAF_KEY(name) name
inline void init_caf_types() {}
inline caf::atom_value caf_name(const char* name) {
  return caf::atom_from_string(name);
}
inline caf::atom_value caf_word(const char* word) {
  return caf::atom_from_string(word);
}
/// Loads and saves frames. One that is none is loaded as broken, so that the receiver can tell.
inline caf::error inspect(caf::serializer& serializer, Frame& frame) {
  struct To final : Sink {
    explicit To(caf::serializer& serializer) : out(serializer) {}
    bool put(const void* bytes, std::size_t count) override {
      return count == 0 || !out.apply_raw(count, const_cast<void*>(bytes));
    }
    caf::serializer& out;
  } sink(serializer);
  return save(frame, sink) ? caf::error() : caf::make_error(caf::sec::invalid_argument);
}
inline caf::error inspect(caf::deserializer& deserializer, Frame& frame) {
  struct From final : Source {
    explicit From(caf::binary_deserializer& deserializer) : in(deserializer) {}
    bool take(void* bytes, std::size_t count) override {
      return count == 0 || !in.apply_raw(count, bytes);
    }
    std::size_t remaining() const override { return in.remaining(); }
    caf::binary_deserializer& in;
  };
  auto* const binary = dynamic_cast<caf::binary_deserializer*>(&deserializer);
  if (!binary) return caf::make_error(caf::sec::invalid_argument);
  From source(*binary);
  frame.broken = !load(frame, source);
  return caf::none;
}
inline void deliver(const Route& to, const Route& from, Frame frame) {
  to->enqueue(from, caf::make_message_id(), caf::make_message(std::move(frame)), nullptr);
}
template <class T>
T* content_as(caf::mailbox_element& element) {
  auto& content = element.content();
  return content.match_elements<T>() ? &content.get_mutable_as<T>(0) : nullptr;
}

#endif

inline std::string to_string(const Frame& frame) {
  return concat("frame ", static_cast<int>(frame.kind));
}

}  // namespace leeway::cluster

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::Delivery)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::Begin)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::RunPart)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::PartDone)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::PartFailed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::Tick)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::Freeze)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::Down)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::Linked)
