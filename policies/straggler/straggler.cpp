#include "policies/straggler/straggler.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "core/text.hpp"

namespace leeway {

namespace {

/// Keeps slow-downs apart from all else that is drawn from a run's seed.
constexpr std::uint64_t kStragglerStream = 0x73747261676765;

/// A chance is an integer out of this many.
constexpr std::uint64_t kCertain = std::uint64_t{1} << 53;

std::uint64_t chance(double probability) {
  const double scaled = std::clamp(probability, 0.0, 1.0) * static_cast<double>(kCertain);
  return static_cast<std::uint64_t>(scaled);
}

/// Reads `3:4x@20%/50` from left to right.
class Reader {
 public:
  explicit Reader(std::string_view rest) : rest_(rest) {}

  template <class Number>
  bool number(Number& out) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), out);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }
  bool sign(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool done() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace

StragglerModel::StragglerModel(const plan::Straggler& spec, std::uint64_t seed)
    : factor_(spec.factor), rng_(Rng::stream(seed, kStragglerStream, spec.worker)) {
  const double share = std::clamp(spec.share, 0.0, 1.0);
  const double burst = std::max<double>(spec.burst, 1);
  if (share == 1) {
    enter_ = kCertain;
  } else if (share > 0) {
    const double odds = share / (1 - share);
    enter_ = chance(odds / burst);
    leave_ = chance(1 / std::max(burst, odds));
  }
  slow_ = rng_.below(kCertain) < chance(share);
}

double StragglerModel::next() {
  const double factor = slow_ ? factor_ : 1;
  const bool changes = rng_.below(kCertain) < (slow_ ? leave_ : enter_);
  slow_ = slow_ != changes;
  return factor;
}

Expected<plan::Straggler> parse_straggler(const std::string& text) {
  const auto refuse = [&](const std::string& reason) {
    return Error{concat("straggler: \"", text, "\" ", reason,
                        "; write worker:factor, as in 3:4x, or 3:4x@20%/50 for bursts of 50 "
                        "iterations that cover 20% of all")};
  };
  plan::Straggler straggler;
  Reader reader(text);
  if (!reader.number(straggler.worker)) return refuse("does not begin with the number of a worker");
  if (!reader.sign(':')) return refuse("has no ':' after the worker");
  if (!reader.number(straggler.factor)) return refuse("has no factor after the ':'");
  if (!(straggler.factor >= 1) || !std::isfinite(straggler.factor))
    return refuse("has a factor that is not 1 or more");
  if (!reader.sign('x')) return refuse("has no 'x' after the factor");
  if (reader.sign('@')) {
    double percent = 0;
    if (!reader.number(percent)) return refuse("has no number after the '@'");
    if (!reader.sign('%')) return refuse("has no '%' after the share");
    if (!(percent > 0 && percent <= 100))
      return refuse("has a share that is not above 0% up to 100%");
    straggler.share = percent / 100;
    if (reader.sign('/')) {
      if (!reader.number(straggler.burst))
        return refuse("has no number of iterations after the '/'");
      if (straggler.burst == 0) return refuse("has bursts of 0 iterations");
    }
  }
  if (!reader.done()) return refuse("goes on where it should end");
  return straggler;
}

}  // namespace leeway
