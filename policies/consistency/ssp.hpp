#pragma once
// Stale synchronous parallel: workers run ahead of the slowest by at most `staleness` iterations.
// Source: Ho et al., NIPS 2013, section 3.
#include "policies/consistency/consistency.hpp"

namespace leeway {

class Ssp final : public Consistency {
 public:
  explicit Ssp(std::int64_t staleness) : staleness_(staleness) {}
  std::string_view name() const override { return "ssp"; }
  std::int64_t bound() const override { return staleness_; }

 private:
  std::int64_t staleness_;
};

}  // namespace leeway
