#pragma once
// RoundChecker: property 3 for rounds that are closed early, every shard sums the same pushes.
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "actors/job.hpp"
#include "sim/checkers/checker.hpp"

namespace leeway::sim {

/// All shards are told of the same contributors; a shard applies all parts of their pushes and no
/// others, and leaves out whole pushes of such alone that it was told to fence; no more workers are
/// late than are spare, a late push is not partial, and who has been told to go on with a round
/// begins none before it.
class RoundChecker final : public Checker {
 public:
  explicit RoundChecker(std::shared_ptr<const Job> job);
  void on_event(Instant, Address actor, const Event& event) override;
  void on_delivered(Instant, const Letter& letter) override;
  void on_run_ended(const RunTotals& totals) override;

 private:
  struct Shard {
    Iteration round{-1};                           // that was closed last
    std::map<WorkerId, std::size_t> contributors;  // to it, and how many parts were applied
    std::uint32_t late = 0;
    std::map<WorkerId, bool> fenced;  // and whether they are back since that round
  };
  void on_worker_event(Address actor, const Event& event) const;
  void check_partial(const Event& event) const;
  void look_back(Address address, const Shard& shard) const;

  std::shared_ptr<const Job> job_;
  std::uint32_t spare_ = 0;                            // 0: no round is closed early
  std::map<Iteration, std::vector<WorkerId>> rounds_;  // the latest
  std::map<Address, Shard> shards_;
  std::map<Address, Iteration> told_;  // workers, what to go on with
};

}  // namespace leeway::sim
