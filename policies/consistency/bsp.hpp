#pragma once
// Bulk synchronous parallel: a barrier after every iteration. One round is one step of synchronous
// SGD. Source: Valiant, "A Bridging Model for Parallel Computation", CACM 1990.
#include "policies/consistency/consistency.hpp"

namespace leeway {

class Bsp final : public Consistency {
 public:
  std::string_view name() const override { return "bsp"; }
  std::int64_t bound() const override { return 0; }
  bool by_rounds() const override { return true; }
};

}  // namespace leeway
