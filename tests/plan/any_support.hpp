#pragma once
// Random values of the hand-written types in plans.
#include "core/address.hpp"
#include "plan/plan.hpp"
#include "tests/support/any.hpp"

namespace leeway::test {

/// An actor that plans can name.
inline void any(Address& out) {
  std::uint32_t index = 0;
  any(index);
  out = *rc::gen::element(kScheduler, address_of(WorkerId(index)), address_of(ShardId(index)));
}

}  // namespace leeway::test
