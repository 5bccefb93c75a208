#pragma once
// Observers: calls all observers of a run in order, and adds the preceding messages and events to a
// Violation.
#include <memory>
#include <utility>
#include <vector>

#include "sim/observer.hpp"
#include "sim/recent.hpp"

namespace leeway::sim {

/// Which actors of one of several hosts the observers of a run see. After an actor is launched on
/// another host, its earlier launch may continue unseen.
class Presence {
 public:
  virtual ~Presence() = default;
  /// Whether the actor of the present launch is on this host.
  virtual bool is_present(Address actor) const = 0;
  /// The actor has ended or begun here. False: the observers are not to know.
  virtual bool end(Address actor) = 0;
  virtual bool begin(Address actor) = 0;
  /// Whether no host has seen this record of the actor, or a later one; see
  /// Outbox::emit_numbered.
  virtual bool record(Address actor, std::uint64_t number) = 0;
};

class Observers {
 public:
  Observers() = default;
  explicit Observers(std::vector<std::shared_ptr<Observer>> observers)
      : observers_(std::move(observers)) {}
  void add(std::shared_ptr<Observer> observer) { observers_.push_back(std::move(observer)); }
  bool any() const { return !observers_.empty(); }

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
                      violation.damage(), recent_.about(violation.actors()));
    }
    record();
  }

  std::vector<std::shared_ptr<Observer>> observers_;
  Recent recent_;
};

/// The observers of a run, as one of its hosts calls them.
class HostObservers {
 public:
  explicit HostObservers(std::vector<std::shared_ptr<Observer>> observers)
      : all_(std::make_shared<Observers>(std::move(observers))) {}
  /// `all` and `presence` are those of several hosts.
  HostObservers(std::shared_ptr<Observers> all, std::shared_ptr<Presence> presence)
      : all_(std::move(all)), presence_(std::move(presence)) {}

  bool any() const { return all_->any(); }
  void event(Instant at, Address actor, const Event& event) {
    if (sees(actor)) all_->event(at, actor, event);
  }
  void sent(Instant at, const Letter& letter) {
    if (sees(letter.from())) all_->sent(at, letter);
  }
  void delivered(Instant at, const Letter& letter) {
    if (sees(letter.to())) all_->delivered(at, letter);
  }
  void ended(Instant at, Address actor) {
    if (!presence_ || presence_->end(actor)) all_->ended(at, actor);
  }
  void restarted(Instant at, Address actor) {
    if (!presence_ || presence_->begin(actor)) all_->restarted(at, actor);
  }
  void run_ended(const RunTotals& totals) { all_->run_ended(totals); }
  /// Whether record `number` of the actor is new, if `last` is the latest of this host.
  bool record(Address actor, std::uint64_t number, std::uint64_t& last) {
    if (presence_) return presence_->record(actor, number);
    if (number <= last) return false;
    last = number;
    return true;
  }

 private:
  bool sees(Address actor) const { return !presence_ || presence_->is_present(actor); }

  std::shared_ptr<Observers> all_;
  std::shared_ptr<Presence> presence_;  // null: the only host
};

}  // namespace leeway::sim
