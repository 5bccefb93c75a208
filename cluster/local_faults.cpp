#include "cluster/local_faults.hpp"

#include <chrono>

namespace leeway {
namespace {

Duration of_seconds(double seconds) {
  return nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

bool is_ours(const plan::Fault& fault) {
  return std::holds_alternative<plan::Crash>(fault.kind) ||
         std::holds_alternative<plan::Joins>(fault.kind) ||
         std::holds_alternative<plan::Freeze>(fault.kind);
}

}  // namespace

LocalFaults::LocalFaults(const std::vector<plan::Fault>& faults, MakeRole make_role)
    : make_role_(std::move(make_role)) {
  for (const auto& fault : faults)
    if (is_ours(fault)) faults_.emplace_back(fault);
  for (const auto& waiting : faults_)
    if (std::holds_alternative<plan::Joins>(waiting.fault.kind)) lives_[waiting.fault.actor] = 0;
}

void LocalFaults::start(LocalHost& host) {
  if (faults_.empty()) return;
  host_ = &host;
  for (const auto& waiting : faults_)
    if (const auto* seconds = std::get_if<double>(&waiting.fault.at))
      at(Instant{} + of_seconds(*seconds), [this, &waiting] { begin(waiting.fault); });
  thread_ = std::thread([this] { run(); });
}

void LocalFaults::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LocalFaults::on_event(Address actor, const Event& event) {
  if (faults_.empty() || event.kind != Event::Kind::step_started) return;
  for (auto& waiting : faults_) {
    const auto* iteration = std::get_if<std::int64_t>(&waiting.fault.at);
    if (!iteration || waiting.fault.actor != actor || event.iteration.value() < *iteration ||
        waiting.begun.exchange(true))
      continue;
    at(Instant{}, [this, &waiting] { begin(waiting.fault); });
  }
}

void LocalFaults::at(Instant time, Action action) {
  std::lock_guard lock(mutex_);
  due_.emplace(time, std::move(action));
  changed_.notify_all();
}

void LocalFaults::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const Instant now = host_->now();
    if (due_.empty()) {
      changed_.wait(lock);
    } else if (const Instant next = due_.begin()->first; next > now) {
      changed_.wait_for(lock, std::chrono::nanoseconds((next - now).ns));
    } else {
      const Action action = std::move(due_.begin()->second);
      due_.erase(due_.begin());
      lock.unlock();
      action();
      lock.lock();
    }
  }
}

void LocalFaults::begin(const plan::Fault& fault) {
  const Address worker = fault.actor;
  if (const auto* crash = std::get_if<plan::Crash>(&fault.kind)) {
    const bool lived = host_->lives(worker);
    host_->kill(worker, plan::kPlannedCrash);
    if (lived && crash->back > 0)
      at(host_->now() + of_seconds(crash->back), [this, worker] { begin_life(worker); });
  } else if (const auto* freeze = std::get_if<plan::Freeze>(&fault.kind)) {
    host_->freeze(worker, of_seconds(freeze->seconds));
  } else {
    begin_life(worker);
  }
}

void LocalFaults::begin_life(Address worker) {
  if (host_->lives(worker)) return;
  const auto life = lives_.try_emplace(worker, 1).first;
  host_->restart(worker, make_role_(worker, ++life->second));
}

}  // namespace leeway
