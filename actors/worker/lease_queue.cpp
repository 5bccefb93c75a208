#include "actors/worker/lease_queue.hpp"

#include <algorithm>

namespace leeway {

void LeaseQueue::begin(Iteration next) {
  next_ = next;
  asked_.reset();
  no_data_ = false;
  leases_.clear();
}

bool LeaseQueue::take_in(const msg::Lease& lease) {
  if (lease.first_iteration != next_) return false;
  asked_.reset();
  no_data_ = false;
  next_ = next_ + lease.iterations();
  if (leases_.empty()) position_ = lease.begin;
  leases_.push_back(lease);
  return true;
}

bool LeaseQueue::take_in(const msg::NoData& no_data) {
  if (no_data.next != next_) return false;
  asked_.reset();
  no_data_ = true;
  return true;
}

void LeaseQueue::skip_to(Iteration next) {
  while (!leases_.empty() && leases_.front().first_iteration < next) leases_.pop_front();
  if (!leases_.empty()) position_ = leases_.front().begin;
  if (asked_ && *asked_ < next) asked_.reset();
  no_data_ = false;
  next_ = std::max(next_, next);
}

LeasedIteration LeaseQueue::take() {
  const auto& lease = leases_.front();
  const std::int64_t begin = position_;
  const std::int64_t end = std::min(begin + static_cast<std::int64_t>(lease.batch), lease.end);
  const bool flushes = lease.flushes && end == lease.end;
  LeasedIteration taken{lease.epoch, begin, end, lease.round_samples, lease.applied, flushes};
  position_ = end;
  if (end == lease.end) {
    leases_.pop_front();
    if (!leases_.empty()) position_ = leases_.front().begin;
  }
  return taken;
}

}  // namespace leeway
