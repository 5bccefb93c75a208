#pragma once
// SharingStraggler: slow at times, as another program on the same machine comes and goes.
#include "policies/straggler/straggler.hpp"

namespace leeway {

/// Repeats a cycle of `on` iterations at `factor` and `off` at full speed. The start within the
/// cycle is its phase, or is drawn at random, so that workers with equal settings are not slow
/// together.
class SharingStraggler final : public Straggler {
 public:
  SharingStraggler(const plan::Sharing& spec, Rng rng);
  Slowdown next(Instant now) override;
  void skip(std::uint64_t iterations) override;

 private:
  plan::Sharing spec_;
  std::uint64_t position_;  // in the cycle; below `on`: slow
};

}  // namespace leeway
