#pragma once
// The only header that includes CAF. Leeway was built and tested with CAF 0.17.6 and 1.1.0. This
// file has both versions of differing code, under the same names. Other files of this folder use
// these names, and only those names of CAF that both versions have.
#include <caf/actor_companion.hpp>
#include <caf/all.hpp>
#include <caf/io/all.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/openssl/all.hpp>
#if CAF_MAJOR_VERSION >= 1
#include <caf/anon_mail.hpp>
#include <caf/byte_span.hpp>
#include <caf/init_global_meta_objects.hpp>
#include <caf/send.hpp>
#endif

#include <chrono>
#include <string>
#include <type_traits>
#include <utility>

#include "actors/outbox.hpp"
#include "cluster/frame.hpp"
#include "core/address.hpp"
#include "core/text.hpp"
#include "messages/message.hpp"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace leeway::cluster {

/// handing_over(x) on one thread happens before taking_over(x) on another. CAF's mailboxes
/// guarantee that, but the thread sanitizer does not see it. In other builds these do nothing.
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

// Messages to the generic actor, inside the process.

/// A message from one role to another.
struct Delivery {
  Address from;
  Message message;
};
/// All actors of the host exist: begin.
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
/// Stop for `time`, as if the process had been stopped.
struct Freeze {
  Duration time;
};
/// An actor of another host has ended, or is unreachable.
struct Down {
  Address ended;
  EndReason reason;
};
/// The link to an actor of another host was lost and made again.
struct Linked {
  Address peer;
};

// Between processes, only frames travel.

/// The address of an actor in this process or another, for frames.
using Route = caf::strong_actor_ptr;

#if CAF_MAJOR_VERSION >= 1
/// The actor at a watched route has ended. Stays inside the process.
struct RouteLost {
  const caf::actor_control_block* route = nullptr;
};
/// Loads and saves frames. Malformed input is loaded with `broken` set.
template <class Inspector>
bool inspect(Inspector& inspector, Frame& frame) {
  if constexpr (!Inspector::is_loading) {
    struct To final : Sink {
      explicit To(Inspector& inspector) : out(inspector) {}
      bool put(const void* bytes, std::size_t count) override {
        return count == 0 ||
               out.value(caf::const_byte_span(static_cast<const std::byte*>(bytes), count));
      }
      Inspector& out;
    } sink(inspector);
    return save(frame, sink);
  } else if constexpr (requires { inspector.remaining(); }) {
    struct From final : Source {
      explicit From(Inspector& inspector) : in(inspector) {}
      bool take(void* bytes, std::size_t count) override {
        return count == 0 || in.value(caf::byte_span(static_cast<std::byte*>(bytes), count));
      }
      std::size_t remaining() const override { return in.remaining(); }
      Inspector& in;
    } source(inspector);
    frame.broken = !load(frame, source);
    return true;
  } else {
    return false;  // of JSON and the like
  }
}
#else
/// Loads and saves frames. Malformed input is loaded with `broken` set.
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
#if CAF_MAJOR_VERSION >= 1
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::RouteLost)

CAF_BEGIN_TYPE_ID_BLOCK(leeway, caf::first_custom_type_id)
CAF_ADD_TYPE_ID(leeway, (leeway::cluster::Frame))
CAF_ADD_TYPE_ID(leeway, (leeway::cluster::Delivery))
CAF_ADD_TYPE_ID(leeway, (leeway::cluster::Begin))
CAF_ADD_TYPE_ID(leeway, (leeway::cluster::RunPart))
CAF_ADD_TYPE_ID(leeway, (leeway::cluster::PartDone))
CAF_ADD_TYPE_ID(leeway, (leeway::cluster::PartFailed))
CAF_ADD_TYPE_ID(leeway, (leeway::cluster::Tick))
CAF_ADD_TYPE_ID(leeway, (leeway::cluster::Freeze))
CAF_ADD_TYPE_ID(leeway, (leeway::cluster::Down))
CAF_ADD_TYPE_ID(leeway, (leeway::cluster::Linked))
CAF_ADD_TYPE_ID(leeway, (leeway::cluster::RouteLost))
CAF_END_TYPE_ID_BLOCK(leeway)
#endif

namespace leeway::cluster {

#if CAF_MAJOR_VERSION >= 1

/// Registers message types: before the first configuration, never while CAF runs.
inline void init_caf_types() {
  [[maybe_unused]] static const bool once = [] {
    caf::init_global_meta_objects<caf::id_block::leeway>();
    caf::core::init_global_meta_objects();
    caf::io::middleman::init_global_meta_objects();
    caf::openssl::manager::init_global_meta_objects();
    return true;
  }();
}
/// Prefix of the names of CAF's options.
inline constexpr const char* kCafOptions = "caf.";
/// A name or a word among CAF's options.
inline std::string caf_word(const char* word) {
  return word;
}
inline void add_frames(caf::actor_system_config&) {}
/// Requires the loaded module.
inline void set_tls(caf::actor_system_config& config, const std::string& certificate_path,
                    const std::string& key_path, const std::string& authority_path) {
  config.set("caf.openssl.certificate", certificate_path);
  config.set("caf.openssl.key", key_path);
  config.set("caf.openssl.cafile", authority_path);
}

/// Sends one of the messages above, from any thread.
template <class T>
void mail(const caf::actor& to, T&& message) {
  handing_over(caf::actor_cast<caf::abstract_actor*>(to));
  caf::anon_mail(std::forward<T>(message)).send(to);
}
inline void deliver(const Route& to, const Route& from, Frame frame) {
  to->enqueue(caf::make_mailbox_element(from, caf::make_message_id(), std::move(frame)), nullptr);
}
template <class T>
T* content_as(caf::mailbox_element& element) {
  auto& content = element.payload;
  return content.match_elements<T>() ? &content.get_mutable_as<T>(0) : nullptr;
}
/// The companion `gate` receives a message when the actor at `route` ends; see lost_route().
inline void watch_route(const caf::actor& gate, const Route& route) {
  route->get()->attach_functor([gate = gate.address(), ended = route.get()] {
    if (const auto to = caf::actor_cast<Route>(gate))
      to->enqueue(caf::make_mailbox_element(nullptr, caf::make_message_id(), RouteLost{ended}),
                  nullptr);
  });
}
/// The ended route; null if `element` is another message.
inline const caf::actor_control_block* lost_route(caf::mailbox_element& element) {
  const auto* const lost = content_as<RouteLost>(element);
  return lost ? lost->route : nullptr;
}
/// Gets the actor that is published there from a middleman. Blocks.
template <class OnRoute, class OnError>
void connect_by(caf::scoped_actor& self, const caf::io::middleman_actor& middleman,
                const std::string& host, std::uint16_t port, std::chrono::nanoseconds limit,
                OnRoute on_route, OnError on_error) {
  self->mail(caf::connect_atom_v, host, port)
      .request(middleman, limit)
      .receive(std::move(on_route), std::move(on_error));
}

/// An actor that watches others and sends itself messages.
class WatchingActor : public caf::event_based_actor {
 protected:
  explicit WatchingActor(caf::actor_config& config) : caf::event_based_actor(config) {}
  /// A watched actor has ended.
  virtual void on_end_of(const caf::actor_addr& ended) = 0;
  void watch_actor(const caf::actor& other) {
    monitor(other, [this, ended = other.address()](const caf::error&) { on_end_of(ended); });
  }
  template <class T>
  void mail_self(T&& message) {
    caf::event_based_actor::mail(std::forward<T>(message)).send(caf::actor_cast<caf::actor>(this));
  }
  template <class T>
  void mail_self_after(std::chrono::nanoseconds delay, T&& message) {
    caf::event_based_actor::mail(std::forward<T>(message))
        .delay(delay)
        .send(caf::actor_cast<caf::actor>(this));
  }
};

#else

/// Nothing here: the configuration registers message types.
inline void init_caf_types() {}
/// Prefix of the names of CAF's options.
inline constexpr const char* kCafOptions = "";
/// A name or a word among CAF's options.
inline caf::atom_value caf_word(const char* word) {
  return caf::atom_from_string(word);
}
inline void add_frames(caf::actor_system_config& config) {
  config.add_message_type<Frame>("leeway::Frame");
}
inline void set_tls(caf::actor_system_config& config, const std::string& certificate_path,
                    const std::string& key_path, const std::string& authority_path) {
  config.openssl_certificate = certificate_path;
  config.openssl_key = key_path;
  config.openssl_cafile = authority_path;
}

/// Sends one of the messages above, from any thread.
template <class T>
void mail(const caf::actor& to, T&& message) {
  handing_over(caf::actor_cast<caf::abstract_actor*>(to));
  caf::anon_send(to, std::forward<T>(message));
}
inline void deliver(const Route& to, const Route& from, Frame frame) {
  to->enqueue(from, caf::make_message_id(), caf::make_message(std::move(frame)), nullptr);
}
template <class T>
T* content_as(caf::mailbox_element& element) {
  auto& content = element.content();
  return content.match_elements<T>() ? &content.get_mutable_as<T>(0) : nullptr;
}
/// The companion `gate` receives a message when the actor at `route` ends; see lost_route().
inline void watch_route(const caf::actor& gate, const Route& route) {
  static_cast<caf::actor_companion*>(caf::actor_cast<caf::abstract_actor*>(gate))
      ->monitor(caf::actor_cast<caf::actor_addr>(route));
}
/// The ended route; null if `element` is another message.
inline const caf::actor_control_block* lost_route(caf::mailbox_element& element) {
  const auto* const down = content_as<caf::down_msg>(element);
  return down ? down->source.get() : nullptr;
}
/// Gets the actor that is published there from a middleman. Blocks.
template <class OnRoute, class OnError>
void connect_by(caf::scoped_actor& self, const caf::io::middleman_actor& middleman,
                const std::string& host, std::uint16_t port, std::chrono::nanoseconds limit,
                OnRoute on_route, OnError on_error) {
  self->request(middleman, limit, caf::connect_atom::value, host, port)
      .receive(std::move(on_route), std::move(on_error));
}

/// An actor that watches others and sends itself messages.
class WatchingActor : public caf::event_based_actor {
 protected:
  explicit WatchingActor(caf::actor_config& config) : caf::event_based_actor(config) {
    set_down_handler([this](caf::down_msg& down) { on_end_of(down.source); });
  }
  /// A watched actor has ended.
  virtual void on_end_of(const caf::actor_addr& ended) = 0;
  void watch_actor(const caf::actor& other) { monitor(other); }
  template <class T>
  void mail_self(T&& message) {
    send(this, std::forward<T>(message));
  }
  template <class T>
  void mail_self_after(std::chrono::nanoseconds delay, T&& message) {
    delayed_send(this, delay, std::forward<T>(message));
  }
};

#endif

struct CafTypes {
  CafTypes() { init_caf_types(); }
};
/// CAF's configuration, made after the registration of our messages.
class CafConfig : private CafTypes, public caf::actor_system_config {
 protected:
  template <class T>
  void set_option(const char* name, T&& value) {
    set(concat(kCafOptions, name), std::forward<T>(value));
  }
};

}  // namespace leeway::cluster
