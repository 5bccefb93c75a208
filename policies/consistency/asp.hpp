#pragma once
// Asynchronous parallel: no worker waits for another, and the age of the weights has no bound.
// Source: Dean et al., "Large Scale Distributed Deep Networks", NIPS 2012, section 4.1.
#include "policies/consistency/consistency.hpp"

namespace leeway {

class Asp final : public Consistency {
 public:
  std::string_view name() const override { return "asp"; }
  std::int64_t bound() const override { return kUnbounded; }
};

}  // namespace leeway
