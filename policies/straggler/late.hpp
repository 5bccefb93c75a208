#pragma once
// LateStraggler: another straggler that begins in a later iteration.
#include <algorithm>
#include <memory>

#include "policies/straggler/straggler.hpp"

namespace leeway {

/// Full speed before iteration `first`. The other straggler counts its iterations from there.
class LateStraggler final : public Straggler {
 public:
  LateStraggler(std::uint64_t first, std::unique_ptr<Straggler> straggler)
      : left_(first), straggler_(std::move(straggler)) {}
  Slowdown next(Instant now) override {
    if (left_ == 0) return straggler_->next(now);
    --left_;
    return {};
  }
  void skip(std::uint64_t iterations) override {
    const std::uint64_t before = std::min(left_, iterations);
    left_ -= before;
    if (iterations > before) straggler_->skip(iterations - before);
  }

 private:
  std::uint64_t left_;  // iterations until it begins
  std::unique_ptr<Straggler> straggler_;
};

}  // namespace leeway
