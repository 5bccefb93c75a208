#include "actors/outbox.hpp"

#include "core/check.hpp"

namespace leeway {

void Outbox::take_over(Address address) {
  LW_CHECK(false, "this host has no standby for", address);
}

bool is_small(const Work& work) {
  constexpr std::int64_t kBytes = 16 << 20, kFlops = 8 << 20;
  if (work.parts() != 1) return false;
  const Cost cost = work.cost(0);
  return cost.bytes <= kBytes && cost.flops <= kFlops;
}

}  // namespace leeway
