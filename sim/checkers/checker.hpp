#pragma once
// Checker: an observer that verifies one property of docs/staleness.md.
//
// A checker derives its own records only from events and messages, because it must not trust the
// state of the role that it checks. Its memory grows with the state of a run, not with its length.
#include <string>
#include <string_view>
#include <vector>

#include "core/text.hpp"
#include "sim/observer.hpp"

namespace leeway::sim {

class Checker : public Observer {
 public:
  /// `property`: a short sentence, such as "no pull is answered against the rule".
  explicit Checker(std::string_view property, Damage damage = Damage::other)
      : property_(property), damage_(damage) {}
  std::string_view property() const { return property_; }

 protected:
  template <class... Values>
  [[noreturn, gnu::cold, gnu::noinline]] void violated(std::vector<Address> actors,
                                                       const Values&... values) const {
    throw Violation(std::string(property_), std::move(actors), concat(values...), damage_);
  }

 private:
  std::string_view property_;
  Damage damage_;
};

}  // namespace leeway::sim
