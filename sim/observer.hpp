#pragma once
// Observer: the interface through which a host reports events, messages and ends of actors. A
// checker is an observer that throws a Violation.
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "actors/monitor/monitor.hpp"
#include "actors/outbox.hpp"
#include "core/check.hpp"
#include "messages/envelope.hpp"

namespace leeway::sim {

/// A message in flight. It is decoded at most once, at the first call of open().
class Letter {
 public:
  Letter() = default;
  Letter(Address from, Address to, Message message)
      : from_(from), to_(to), message_(std::move(message)) {}

  Address from() const { return from_; }
  Address to() const { return to_; }
  const Message& message() const { return message_; }

  /// Null if the message is malformed.
  const Envelope* open() const;
  /// The body if it is a T, else null. Check addresses first: opening every letter is expensive.
  template <class T>
  const T* as() const {
    const Envelope* envelope = open();
    return envelope ? std::get_if<T>(&envelope->body) : nullptr;
  }
  /// True if the message has been decoded and is well formed.
  bool opened() const { return envelope_ != nullptr; }
  /// Hands the decoded message to the receiver, so that it is not decoded again. Null if unopened.
  std::unique_ptr<Envelope> take_opened() { return std::move(envelope_); }

 private:
  Address from_, to_;
  Message message_;
  mutable std::unique_ptr<Envelope> envelope_;
  mutable bool decoded_ = false;
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_event(Instant, Address /*actor*/, const Event&) {}
  /// Called before the host checks whether the receiver lives.
  virtual void on_sent(Instant, const Letter&) {}
  /// Called before the receiver handles the message.
  virtual void on_delivered(Instant, const Letter&) {}
  /// The actor has ended before the end of the run.
  virtual void on_ended(Instant, Address /*actor*/) {}
  /// An actor that had ended was restarted.
  virtual void on_restarted(Instant, Address /*actor*/) {}
  /// The last call, if the run reaches its end.
  virtual void on_run_ended(const RunTotals&) {}
};

/// The damage of a run that violates a property.
enum class Damage : std::uint8_t { updates, samples, other };
constexpr std::size_t kDamages = 3;

/// The exception of a checker: the violated property, the actors and the observation. The host adds
/// the preceding messages and events as `before`.
class Violation : public CheckFailed {
 public:
  Violation(std::string property, std::vector<Address> actors, std::string seen,
            Damage damage = Damage::other, const std::string& before = {});
  const std::string& property() const { return property_; }
  const std::vector<Address>& actors() const { return actors_; }
  const std::string& seen() const { return seen_; }
  Damage damage() const { return damage_; }

 private:
  std::string property_;
  std::vector<Address> actors_;
  std::string seen_;
  Damage damage_;
};

}  // namespace leeway::sim
