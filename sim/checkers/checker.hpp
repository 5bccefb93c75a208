#pragma once
// Checker: an observer that holds a run against one property of docs/staleness.md.
//
// Checkers keep books of their own, from events and messages alone: what a role believes of itself
// is what they are to check. They take what memory the state of a run takes, not its length.
#include <string>
#include <string_view>
#include <vector>

#include "core/text.hpp"
#include "sim/observer.hpp"

namespace leeway::sim {

class Checker : public Observer {
 public:
  explicit Checker(std::string_view property) : property_(property) {}
  /// A sentence: "no pull is answered against the rule".
  std::string_view property() const { return property_; }

 protected:
  template <class... Values>
  [[noreturn, gnu::cold, gnu::noinline]] void violated(std::vector<Address> actors,
                                                       const Values&... values) const {
    throw Violation(std::string(property_), std::move(actors), concat(values...));
  }

 private:
  std::string_view property_;
};

}  // namespace leeway::sim
