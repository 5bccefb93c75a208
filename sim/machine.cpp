#include "sim/machine.hpp"

#include <algorithm>
#include <utility>

#include "sim/chance.hpp"

namespace leeway::sim {

namespace {

constexpr std::uint64_t kComputeStream = 0x636f6d70;

}  // namespace

ComputeModel::ComputeModel(const World& world, const std::vector<plan::Straggler>& stragglers,
                           std::vector<Iteration> first, std::uint64_t seed,
                           std::shared_ptr<Disturbances> disturbances)
    : world_(world),
      rng_(Rng::stream(seed, kComputeStream)),
      specs_(stragglers),
      first_(std::move(first)),
      seed_(seed),
      disturbances_(std::move(disturbances)) {}

Slowdown ComputeModel::slow_down(Address actor, const Work& work, Instant now) {
  if (actor.kind != RoleKind::worker || specs_.empty()) return {};
  auto found = stragglers_.find(actor.index);
  if (found == stragglers_.end()) {
    const Iteration first = actor.index < first_.size() ? first_[actor.index] : Iteration();
    StragglerModel model(specs_, actor.index, seed_, first, disturbances_);
    found = stragglers_.emplace(actor.index, std::move(model)).first;
  }
  return work.continues_iteration() ? found->second.same() : found->second.next(now);
}

void ComputeModel::count_delay(Address actor, Duration longer, bool first) const {
  if (actor.kind != RoleKind::worker) return;
  const auto found = stragglers_.find(actor.index);
  if (found != stragglers_.end()) found->second.count(longer, first);
}

Duration ComputeModel::time(const Cost& cost) {
  const Duration arithmetic = time_of(static_cast<double>(cost.flops), world_.flops_per_second);
  const Duration memory = time_of(static_cast<double>(cost.bytes), world_.bytes_per_second);
  const Duration apart = time_of(static_cast<double>(cost.bytes_apart), world_.bytes_per_second);
  const double noise = 1 + world_.noise * (2 * rng_.uniform() - 1);
  return std::max(nanoseconds(1), scaled(std::max(arithmetic, memory) + apart, noise)) + cost.time;
}

}  // namespace leeway::sim
