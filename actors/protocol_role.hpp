#pragma once
// ProtocolRole: a role that gets its messages decoded, and for which malformed ones are refused by
// name and counted.
#include <string>

#include "actors/outbox.hpp"
#include "messages/envelope.hpp"

namespace leeway {

class ProtocolRole : public Role {
 public:
  void on_message(Address from, const Message& message, Outbox& out) final {
    auto envelope = decode(message);
    if (envelope) {
      on_envelope(from, *envelope, out);
    } else {
      refuse_malformed(from, {}, envelope.error().text, out);
    }
  }

  void on_decoded(Address from, const Message&, Envelope& envelope, Outbox& out) final {
    on_envelope(from, envelope, out);
  }

  std::uint64_t malformed() const { return malformed_; }

 protected:
  void set_malformed(std::uint64_t count) { malformed_ = count; }
  virtual void on_envelope(Address from, Envelope& envelope, Outbox& out) = 0;

  /// Refuses a message that cannot be understood, or contradicts the plan. Nothing else comes of
  /// it.
  void refuse_malformed(Address from, Iteration iteration, const std::string& text, Outbox& out) {
    ++malformed_;
    out.emit(event::Malformed{iteration, text});
    if (from != kHost)
      out.send(from,
               encode({.body = msg::Refused{msg::Refused::Reason::malformed, text, iteration}}));
  }

 private:
  std::uint64_t malformed_ = 0;
};

}  // namespace leeway
