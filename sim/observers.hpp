#pragma once
// Observers: calls all observers of a host in order, and adds the preceding messages and events to
// a Violation.
#include <memory>
#include <vector>

#include "sim/observer.hpp"
#include "sim/recent.hpp"

namespace leeway::sim {

class Observers {
 public:
  Observers() = default;
  explicit Observers(std::vector<std::shared_ptr<Observer>> observers)
      : observers_(std::move(observers)) {}
  void add(std::shared_ptr<Observer> observer) { observers_.push_back(std::move(observer)); }

  void event(Instant at, Address actor, const Event& event) {
    if (observers_.empty()) return;
    notify([&](Observer& observer) { observer.on_event(at, actor, event); },
           [&] { recent_.event(at, actor, event); });
  }
  void sent(Instant at, const Letter& letter) {
    if (observers_.empty()) return;
    notify([&](Observer& observer) { observer.on_sent(at, letter); }, [] {});
  }
  void delivered(Instant at, const Letter& letter) {
    if (observers_.empty()) return;
    notify([&](Observer& observer) { observer.on_delivered(at, letter); },
           [&] { recent_.delivered(at, letter); });
  }
  void ended(Instant at, Address actor) {
    if (observers_.empty()) return;
    notify([&](Observer& observer) { observer.on_ended(at, actor); },
           [&] { recent_.ended(at, actor); });
  }
  void restarted(Instant at, Address actor) {
    notify([&](Observer& observer) { observer.on_restarted(at, actor); }, [] {});
  }
  void run_ended(const RunTotals& totals) {
    notify([&](Observer& observer) { observer.on_run_ended(totals); }, [] {});
  }

 private:
  /// Records after the calls: the record names messages that observers have decoded.
  template <class Call, class Record>
  void notify(Call call, Record record) {
    try {
      for (const auto& observer : observers_) call(*observer);
    } catch (const Violation& violation) {
      record();
      throw Violation(violation.property(), violation.actors(), violation.seen(),
                      recent_.about(violation.actors()));
    }
    record();
  }

  std::vector<std::shared_ptr<Observer>> observers_;
  Recent recent_;
};

}  // namespace leeway::sim
