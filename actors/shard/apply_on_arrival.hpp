#pragma once
// ApplyOnArrival: each push is one update, applied on arrival (ssp, asp, adaptive, auto).
#include "actors/shard/apply_policy.hpp"

namespace leeway {

class ApplyOnArrival final : public ApplyPolicy {
 public:
  ApplyOnArrival(ClockTable& clocks, TiedBlocks& tied, PushSink& sink)
      : clocks_(clocks), tied_(tied), sink_(sink) {}

  std::optional<WorkerId> take(Contribution push, Outbox& out) override;
  Progress fence(WorkerId worker) override;
  std::optional<WorkerId> release(WorkerId worker, Outbox& out) override;

 private:
  ClockTable& clocks_;
  TiedBlocks& tied_;
  PushSink& sink_;
};

}  // namespace leeway
