#include "runtime/traces.hpp"

namespace leeway {
namespace {

class MessageObserver final : public sim::Observer {
 public:
  explicit MessageObserver(OnMessage on_message) : on_message_(std::move(on_message)) {}
  void on_delivered(Instant at, const sim::Letter& letter) override {
    on_message_(received(at, letter.from(), letter.to(), letter.message()));
  }

 private:
  const OnMessage on_message_;
};

}  // namespace

Traces::Traces(const RunFolder* folder, const RunOptions& options, OnEvent on_event)
    : on_event_(std::move(on_event)) {
  if (!folder) return;
  if (options.trace) events_ = std::make_unique<EventLog>(folder->path("events.jsonl"));
  if (options.trace_messages)
    messages_ = std::make_unique<MessageLog>(folder->path("messages.bin"));
}

ActorObservers Traces::observers() {
  ActorObservers observers;
  if (events_ || on_event_)
    observers.on_event = [this](Address actor, Instant at, const Event& event,
                                std::uint64_t record) {
      if (!records_.is_new(actor, record)) return;
      if (events_) events_->write(actor, at, event);
      if (on_event_) on_event_(actor, at, event);
    };
  if (messages_)
    observers.on_message = [this](const ReceivedMessage& received) { messages_->write(received); };
  return observers;
}

Status Traces::finish() {
  return messages_ ? messages_->finish() : Status();
}

std::shared_ptr<sim::Observer> message_observer(OnMessage on_message) {
  return std::make_shared<MessageObserver>(std::move(on_message));
}

}  // namespace leeway
