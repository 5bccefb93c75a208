#include "sim/observer.hpp"

#include "core/text.hpp"

namespace leeway::sim {

namespace {

std::string report(const std::string& property, const std::vector<Address>& actors,
                   const std::string& seen, const std::string& before) {
  std::vector<std::string> names;
  for (const Address actor : actors) names.push_back(concat(actor));
  return concat("violated: ", property, names.empty() ? "" : "\n  by:   ", join(names, ", "),
                "\n  seen: ", seen, before.empty() ? "" : "\n  before:\n", before);
}

}  // namespace

const Envelope* Letter::open() const {
  if (!decoded_) {
    decoded_ = true;
    if (auto envelope = decode(message_))
      envelope_ = std::make_unique<Envelope>(std::move(*envelope));
  }
  return envelope_.get();
}

Violation::Violation(std::string property, std::vector<Address> actors, std::string seen,
                     Damage damage, const std::string& before)
    : CheckFailed(report(property, actors, seen, before)),
      property_(std::move(property)),
      actors_(std::move(actors)),
      seen_(std::move(seen)),
      damage_(damage) {}

}  // namespace leeway::sim
