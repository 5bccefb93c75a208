#pragma once
// Local SGD in phases: four workers of unequal speed take optimizer steps on their own copies of
// the weights, and push the change. They are loops of a store (docs/kv.md), in virtual time.
//
// Source: Liu et al., "Asynchronous Local-SGD Training for Language Modeling", arXiv 2401.09135,
// 2024, and its notebook, github.com/google-deepmind/asyncdiloco (Apache License 2.0). Its details
// that the paper leaves open are kept:
//
//   grace window  A worker whose phase has ended waits for others whose phases end within the
//                 window after the first of them. These workers then begin together. A worker
//                 announces the end of its phase when it begins, so no worker waits for a phase
//                 that ends later.
//   data          A phase takes its batches from the part of the data that phases have used least.
//   AdamW         Its state begins anew with each phase, and the first step of a phase has the full
//                 rate.
#include <leeway/leeway.hpp>

#include <cstdint>
#include <memory>

namespace leeway::study {

struct PhaseTask {
  std::shared_ptr<const Dataset> data;
  std::shared_ptr<const Dataset> test;
  plan::Optimizer inner;  // of the workers
  std::int64_t hidden = 1;
};

struct PhaseSettings {
  bool asynchronous = false;
  double grace = 0;  // seconds
  /// Asynchronous: four changes are one step of the outer optimizer, by their mean. Otherwise each
  /// change is a step, by half of the change.
  bool buffered = false;
  plan::Optimizer outer;
  std::int64_t phases = 1;           // of a worker on average
  std::int64_t evaluate_every = 10;  // as many phases of all workers
  std::uint64_t seed = 1;
};

/// Local steps of a phase, and seconds for one step of each worker.
inline constexpr std::int64_t kPhaseSteps = 20;
inline constexpr double kStepSeconds[] = {0.58, 0.75, 1.51, 3.33};
inline constexpr std::int64_t kPhaseBatch = 32;
/// Steps of a phase of all workers.
inline constexpr std::int64_t kRoundSteps = kPhaseSteps * std::ssize(kStepSeconds);

/// The result's evaluations have the loss on the test data and the time of the push that completed
/// their number of samples. A run that fails has not `ran`.
Result run_phases(const PhaseTask& task, const PhaseSettings& settings);

}  // namespace leeway::study
