#pragma once
// Observer: sees all that happens in a run, as far as its host shows it; checkers are observers
// that throw a Violation.
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "actors/monitor/monitor.hpp"
#include "actors/outbox.hpp"
#include "core/check.hpp"
#include "messages/envelope.hpp"

namespace leeway::sim {

/// A message on its way. It is decoded when an observer first looks into it, once at most.
class Letter {
 public:
  Letter() = default;
  Letter(Address from, Address to, Message message)
      : from_(from), to_(to), message_(std::move(message)) {}

  Address from() const { return from_; }
  Address to() const { return to_; }
  const Message& message() const { return message_; }

  /// Null when it is malformed.
  const Envelope* open() const;
  /// The body, if it is a T. To look at addresses first is cheaper than to open every letter.
  template <class T>
  const T* as() const {
    const Envelope* envelope = open();
    return envelope ? std::get_if<T>(&envelope->body) : nullptr;
  }
  /// True when somebody has opened it, and found it well formed.
  bool opened() const { return envelope_ != nullptr; }
  /// For the receiver, who need not decode what somebody has opened; null when nobody has.
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
  /// Before it is known whether the receiver lives.
  virtual void on_sent(Instant, const Letter&) {}
  /// Before the receiver handles it.
  virtual void on_delivered(Instant, const Letter&) {}
  /// The actor has ended before its run.
  virtual void on_ended(Instant, Address /*actor*/) {}
  /// An actor that had ended begins a new life.
  virtual void on_restarted(Instant, Address /*actor*/) {}
  /// After everything else, if the run came to its end.
  virtual void on_run_ended(const RunTotals&) {}
};

/// What a checker throws: which property, by whom, what was seen; and what came before, where a
/// host has kept it.
class Violation : public CheckFailed {
 public:
  Violation(std::string property, std::vector<Address> actors, std::string seen,
            const std::string& before = {});
  const std::string& property() const { return property_; }
  const std::vector<Address>& actors() const { return actors_; }
  const std::string& seen() const { return seen_; }

 private:
  std::string property_;
  std::vector<Address> actors_;
  std::string seen_;
};

}  // namespace leeway::sim
