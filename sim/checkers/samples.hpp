#pragma once
// SampleChecker: property 6, each sample is trained exactly once per epoch, in every block; what
// was torn is completed, not repeated.
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "actors/job.hpp"
#include "sim/checkers/checker.hpp"

namespace leeway::sim {

/// By the scheduler's account; and shards have applied each part of each stage for as many samples
/// as that says. Where a run stops early, some parts may also have those of torn iterations, which
/// have been leased and are not trained.
class SampleChecker final : public Checker {
 public:
  explicit SampleChecker(std::shared_ptr<const Job> job)
      : Checker("each sample is trained exactly once per epoch (6)"), job_(std::move(job)) {}
  void on_event(Instant, Address actor, const Event& event) override;
  void on_run_ended(const RunTotals& totals) override;

 private:
  struct Progress {
    std::vector<bool> trained;  // by position of the epoch's permutation
    std::int64_t missing = 0;
  };
  std::string of_stage(std::uint32_t stage) const;

  std::shared_ptr<const Job> job_;
  std::map<Epoch, Progress> epochs_;  // begun and not complete
  std::set<Epoch> complete_;
  std::uint64_t samples_ = 0;
  std::int64_t leased_ = 0;  // samples, each counted once
  bool torn_ = false;        // whether anything was
  /// By shard, stage and part.
  std::map<std::tuple<ShardId, std::uint32_t, std::uint32_t>, std::uint64_t> applied_;
};

}  // namespace leeway::sim
