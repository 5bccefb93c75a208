#include "policies/straggler/straggler.hpp"

#include <algorithm>
#include <cmath>

#include "plan/fault_queries.hpp"
#include "policies/straggler/bursts.hpp"
#include "policies/straggler/constant.hpp"
#include "policies/straggler/custom.hpp"
#include "policies/straggler/decay.hpp"
#include "policies/straggler/fixed_delay.hpp"
#include "policies/straggler/late.hpp"
#include "policies/straggler/pareto.hpp"
#include "policies/straggler/pauses.hpp"
#include "policies/straggler/repeated.hpp"
#include "policies/straggler/sharing.hpp"
#include "policies/straggler/trace.hpp"

namespace leeway {

namespace {

/// Separates stragglers from all other random streams of a run's seed.
constexpr std::uint64_t kStragglerStream = 0x73747261676765;
/// The same for stragglers of several workers together.
constexpr std::uint64_t kTogetherStream = 0x746f676574686572;

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
  std::unique_ptr<Straggler> operator()(const plan::Repeated& spec) const {
    return std::make_unique<RepeatedStraggler>(spec.factors);
  }
  std::unique_ptr<Straggler> operator()(const plan::FixedDelay& spec) const {
    return std::make_unique<FixedDelayStraggler>(spec);
  }
  std::unique_ptr<Straggler> operator()(const plan::CustomStraggler& spec) const {
    return std::make_unique<CustomStraggler>(spec, rng);
  }
};

std::uint64_t first_slow_iteration(const plan::Straggler& spec) {
  if (const auto* iteration = std::get_if<std::int64_t>(&spec.from))
    return static_cast<std::uint64_t>(*iteration);
  LW_CHECK(std::get<double>(spec.from) == 0, "with_starts() has not been called");
  return 0;
}

}  // namespace

std::unique_ptr<Straggler> make_straggler(const plan::StragglerKind& kind, Rng rng) {
  return std::visit(StragglerMaker{rng}, kind);
}

StragglerModel::StragglerModel(const std::vector<plan::Straggler>& stragglers, std::uint32_t worker,
                               std::uint64_t seed, Iteration first,
                               std::shared_ptr<Disturbances> disturbances)
    : disturbances_(std::move(disturbances)) {
  for (std::size_t number = 0; number < stragglers.size(); ++number) {
    const plan::Straggler& spec = stragglers[number];
    if (!plan::slows(spec, worker)) continue;
    const Rng rng = spec.together.empty()
                        ? Rng::stream(seed, kStragglerStream + stragglers_.size(), worker)
                        : Rng::stream(seed, kTogetherStream, number);
    auto straggler = make_straggler(spec.kind, rng);
    if (const auto start = first_slow_iteration(spec); start > 0)
      straggler = std::make_unique<LateStraggler>(start, std::move(straggler));
    straggler->skip(static_cast<std::uint64_t>(first.value()));
    stragglers_.push_back({number, std::move(straggler), {}});
  }
}

Slowdown StragglerModel::next(Instant now) {
  Slowdown sum;
  for (auto& one : stragglers_) {
    one.latest = one.straggler->next(now);
    sum.factor = std::min(sum.factor * one.latest.factor, plan::kMaxSlowdown);
    sum.extra += one.latest.extra;
    if (disturbances_ && one.latest != Slowdown{}) disturbances_->slowed_iteration(one.number);
  }
  factor_ = sum.factor;
  return sum;
}

void StragglerModel::count(Duration longer, bool first) const {
  if (!disturbances_) return;
  double excess = 0;
  for (const auto& one : stragglers_) excess += one.latest.factor - 1;
  for (const auto& one : stragglers_) {
    // Factors multiply, so that each has its part only by convention.
    const double part = excess > 0 ? (one.latest.factor - 1) / excess : 0;
    const Duration pause = first ? one.latest.extra : Duration{};
    const Duration added = nanoseconds(std::llround(static_cast<double>(longer.ns) * part)) + pause;
    if (added > Duration{}) disturbances_->slowed(one.number, added);
  }
}

Status check_sources(const std::vector<plan::Straggler>& stragglers) {
  for (const auto& straggler : stragglers) {
    if (const auto* trace = std::get_if<plan::Trace>(&straggler.kind))
      if (const auto factors = read_trace(trace->file); !factors) return factors.error();
    if (const auto* custom = std::get_if<plan::CustomStraggler>(&straggler.kind))
      if (const auto found = find_slowdown(custom->function); !found) return found.error();
  }
  return {};
}

std::vector<plan::Straggler> with_starts(std::vector<plan::Straggler> stragglers,
                                         double iterations) {
  for (auto& straggler : stragglers)
    if (const auto* share = std::get_if<double>(&straggler.from))
      straggler.from = static_cast<std::int64_t>(*share * iterations);
  return stragglers;
}

}  // namespace leeway
