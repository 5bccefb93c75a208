#include "runtime/tools/metered_role.hpp"

#include <ctime>

namespace leeway {
namespace {

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

double thread_seconds() {
  return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

double process_seconds() {
  return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

class MeteredRole::TimedWork final : public Work {
 public:
  explicit TimedWork(std::shared_ptr<Work> work) : work_(std::move(work)) {}
  int parts() const override { return work_->parts(); }
  Cost cost(int part) const override { return work_->cost(part); }
  void run(int part) override {
    const double began = thread_seconds();
    work_->run(part);
    seconds_ = thread_seconds() - began;
  }

  Work& work() { return *work_; }
  double seconds() const { return seconds_; }

 private:
  std::shared_ptr<Work> work_;
  double seconds_ = 0;  // of the latest part
};

void MeteredRole::on_start(Outbox& out) {
  out_ = &out;
  role_->on_start(*this);
}

void MeteredRole::on_message(Address from, const Message& message, Outbox&) {
  ++ledger_.messages;
  role_->on_message(from, message, *this);
}

void MeteredRole::on_timer(TimerToken token, Outbox&) {
  ++ledger_.messages;
  role_->on_timer(token, *this);
}

void MeteredRole::on_part(Work& work, int part, Outbox&) {
  auto& timed = static_cast<TimedWork&>(work);
  ledger_.parts.push_back({part, timed.cost(part), timed.seconds()});
  if (own_thread_ || !is_small(work)) ++ledger_.messages;
  role_->on_part(timed.work(), part, *this);
}

void MeteredRole::on_down(Address actor, const EndReason& reason, Outbox&) {
  role_->on_down(actor, reason, *this);
}

void MeteredRole::compute(std::shared_ptr<Work> work) {
  out_->compute(std::make_shared<TimedWork>(std::move(work)));
}

}  // namespace leeway
