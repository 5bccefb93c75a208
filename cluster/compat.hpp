#pragma once
// The only header that includes CAF. Leeway was built and tested with CAF 0.17.6 and 1.1.0. This
// file has both versions of differing code, under the same names. Other files of this folder use
// these names, and only those names of CAF that both versions have.
#include <caf/all.hpp>
#if CAF_MAJOR_VERSION >= 1
#include <caf/anon_mail.hpp>
#include <caf/init_global_meta_objects.hpp>
#include <caf/send.hpp>
#endif

#include <chrono>
#include <string>
#include <type_traits>
#include <utility>

#include "actors/outbox.hpp"
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
/// The link to `peer` works again, or another actor has its address.
struct Linked {
  Address peer;
};
/// An actor of another host has ended, or is unreachable.
struct Down {
  Address ended;
  EndReason reason;
};

}  // namespace leeway::cluster

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::Delivery)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::Begin)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::RunPart)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::PartDone)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::PartFailed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::Tick)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::Freeze)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::Linked)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::Down)
#if CAF_MAJOR_VERSION >= 1

CAF_BEGIN_TYPE_ID_BLOCK(leeway, caf::first_custom_type_id)
CAF_ADD_TYPE_ID(leeway, (leeway::cluster::Delivery))
CAF_ADD_TYPE_ID(leeway, (leeway::cluster::Begin))
CAF_ADD_TYPE_ID(leeway, (leeway::cluster::RunPart))
CAF_ADD_TYPE_ID(leeway, (leeway::cluster::PartDone))
CAF_ADD_TYPE_ID(leeway, (leeway::cluster::PartFailed))
CAF_ADD_TYPE_ID(leeway, (leeway::cluster::Tick))
CAF_ADD_TYPE_ID(leeway, (leeway::cluster::Freeze))
CAF_ADD_TYPE_ID(leeway, (leeway::cluster::Linked))
CAF_ADD_TYPE_ID(leeway, (leeway::cluster::Down))
CAF_END_TYPE_ID_BLOCK(leeway)
#endif

namespace leeway::cluster {

#if CAF_MAJOR_VERSION >= 1

/// Registers message types: before the first configuration, never while CAF runs.
inline void init_caf_types() {
  [[maybe_unused]] static const bool once = [] {
    caf::init_global_meta_objects<caf::id_block::leeway>();
    caf::core::init_global_meta_objects();
    return true;
  }();
}
/// Prefix of the names of CAF's options.
inline constexpr const char* kCafOptions = "caf.";
/// A name or a word among CAF's options.
inline std::string caf_word(const char* word) {
  return word;
}

/// Sends one of the messages above, from any thread.
template <class T>
void mail(const caf::actor& to, T&& message) {
  handing_over(caf::actor_cast<caf::abstract_actor*>(to));
  caf::anon_mail(std::forward<T>(message)).send(to);
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

/// Sends one of the messages above, from any thread.
template <class T>
void mail(const caf::actor& to, T&& message) {
  handing_over(caf::actor_cast<caf::abstract_actor*>(to));
  caf::anon_send(to, std::forward<T>(message));
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
