#pragma once
// SharingStraggler: slow and not slow in turn, as a neighbour on the same machine comes and goes.
#include "policies/straggler/straggler.hpp"

namespace leeway {

/// `on` iterations at `factor`, `off` at full speed, and again. Where in this round it begins is
/// drawn, so that workers with equal neighbours are not slow together.
class SharingStraggler final : public Straggler {
 public:
  SharingStraggler(const plan::Sharing& spec, Rng chances);
  Slowdown next(Instant now) override;

 private:
  plan::Sharing spec_;
  std::uint64_t place_;  // in the round; below `on`: slow
};

}  // namespace leeway
