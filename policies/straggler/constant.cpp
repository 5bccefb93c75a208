#include "policies/straggler/constant.hpp"

namespace leeway {

Slowdown ConstantStraggler::next(Instant) {
  return {.factor = spec_.factor};
}

}  // namespace leeway
