#include "sim/checkers/catalogue.hpp"

#include "sim/checkers/bounds.hpp"
#include "sim/checkers/checkpoints.hpp"
#include "sim/checkers/clocks.hpp"
#include "sim/checkers/encodings.hpp"
#include "sim/checkers/evicted.hpp"
#include "sim/checkers/exactly_once.hpp"
#include "sim/checkers/groups.hpp"
#include "sim/checkers/limits.hpp"
#include "sim/checkers/orders.hpp"
#include "sim/checkers/parked.hpp"
#include "sim/checkers/pipelines.hpp"
#include "sim/checkers/rounds.hpp"
#include "sim/checkers/rule.hpp"
#include "sim/checkers/samples.hpp"
#include "sim/checkers/snapshots.hpp"
#include "sim/checkers/stage_queues.hpp"
#include "sim/checkers/weights.hpp"

namespace leeway::sim {

std::vector<std::shared_ptr<Checker>> all_checkers(const std::shared_ptr<const Job>& job) {
  const auto clocks = std::make_shared<ClockChecker>(job);  // first: others read its records
  const auto bounds = std::make_shared<BoundChecker>(job, clocks);
  const auto checkpoints = std::make_shared<CheckpointChecker>(job);
  return {clocks,
          bounds,
          std::make_shared<RuleChecker>(clocks, bounds),
          std::make_shared<OrderChecker>(),
          std::make_shared<ExactlyOnceChecker>(),
          std::make_shared<ParkedChecker>(clocks, bounds),
          std::make_shared<RoundChecker>(job),
          checkpoints,
          std::make_shared<SnapshotChecker>(job, checkpoints),
          std::make_shared<SampleChecker>(job),
          std::make_shared<WeightsChecker>(job),
          std::make_shared<EncodingChecker>(job),
          std::make_shared<GroupChecker>(job),
          std::make_shared<PipelineChecker>(job),
          std::make_shared<StageQueueChecker>(job),
          std::make_shared<EvictedChecker>(job),
          std::make_shared<LimitsChecker>(job)};
}

}  // namespace leeway::sim
