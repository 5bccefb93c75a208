#include "policies/straggler/pauses.hpp"

#include <algorithm>

namespace leeway {

namespace {

std::uint64_t whole_nanoseconds(double seconds) {
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(seconds * 1e9 + 0.5));
}

}  // namespace

PausingStraggler::PausingStraggler(const plan::Pauses& spec, Rng rng)
    : length_(nanoseconds(static_cast<std::int64_t>(whole_nanoseconds(spec.length_ms / 1e3)))),
      by_clock_(std::holds_alternative<double>(spec.every)) {
  every_ = by_clock_ ? whole_nanoseconds(std::get<double>(spec.every))
                     : std::get<std::uint32_t>(spec.every);
  next_ = rng.below(every_);
}

bool PausingStraggler::is_due(Instant now) {
  if (by_clock_) {
    const auto time = static_cast<std::uint64_t>(now.ns);
    if (time < next_) return false;
    next_ += every_ * (1 + (time - next_) / every_);
    return true;
  }
  if (next_ > 0) {
    --next_;
    return false;
  }
  next_ = every_ - 1;
  return true;
}

Slowdown PausingStraggler::next(Instant now) {
  return {.extra = is_due(now) ? length_ : Duration{}};
}

void PausingStraggler::skip(std::uint64_t iterations) {
  if (!by_clock_) next_ = (next_ + every_ - iterations % every_) % every_;
}

}  // namespace leeway
