#include "policies/straggler/straggler.hpp"

#include <algorithm>

#include "policies/straggler/bursts.hpp"
#include "policies/straggler/constant.hpp"
#include "policies/straggler/decay.hpp"
#include "policies/straggler/pareto.hpp"
#include "policies/straggler/pauses.hpp"
#include "policies/straggler/sharing.hpp"
#include "policies/straggler/trace.hpp"

namespace leeway {

namespace {

/// Separates stragglers from all other random streams of a run's seed.
constexpr std::uint64_t kStragglerStream = 0x73747261676765;

struct StragglerMaker {
  Rng rng;

  std::unique_ptr<Straggler> operator()(const plan::ConstantFactor& spec) const {
    return std::make_unique<ConstantStraggler>(spec);
  }
  std::unique_ptr<Straggler> operator()(const plan::Bursts& spec) const {
    return std::make_unique<BurstStraggler>(spec, rng);
  }
  std::unique_ptr<Straggler> operator()(const plan::Pareto& spec) const {
    return std::make_unique<ParetoStraggler>(spec, rng);
  }
  std::unique_ptr<Straggler> operator()(const plan::Pauses& spec) const {
    return std::make_unique<PausingStraggler>(spec, rng);
  }
  std::unique_ptr<Straggler> operator()(const plan::Decay& spec) const {
    return std::make_unique<DecayStraggler>(spec);
  }
  std::unique_ptr<Straggler> operator()(const plan::Sharing& spec) const {
    return std::make_unique<SharingStraggler>(spec, rng);
  }
  std::unique_ptr<Straggler> operator()(const plan::Trace& spec) const {
    return std::make_unique<TraceStraggler>(spec);
  }
};

}  // namespace

std::unique_ptr<Straggler> make_straggler(const plan::StragglerKind& kind, Rng rng) {
  return std::visit(StragglerMaker{rng}, kind);
}

StragglerModel::StragglerModel(const std::vector<plan::Straggler>& stragglers, std::uint32_t worker,
                               std::uint64_t seed, Iteration first) {
  for (const auto& spec : stragglers) {
    if (!spec.all && spec.worker != worker) continue;
    const Rng rng = Rng::stream(seed, kStragglerStream + stragglers_.size(), worker);
    stragglers_.push_back(make_straggler(spec.kind, rng));
    stragglers_.back()->skip(static_cast<std::uint64_t>(first.value()));
  }
}

Slowdown StragglerModel::next(Instant now) {
  Slowdown sum;
  for (const auto& straggler : stragglers_) {
    const Slowdown one = straggler->next(now);
    sum.factor = std::min(sum.factor * one.factor, plan::kMaxSlowdown);
    sum.extra += one.extra;
  }
  factor_ = sum.factor;
  return sum;
}

Status check_files(const std::vector<plan::Straggler>& stragglers) {
  for (const auto& straggler : stragglers) {
    const auto* trace = std::get_if<plan::Trace>(&straggler.kind);
    if (!trace) continue;
    if (const auto factors = read_trace(trace->file); !factors) return factors.error();
  }
  return {};
}

}  // namespace leeway
