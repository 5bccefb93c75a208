#pragma once
// A TestHost that all checkers of the simulator watch.
#include "sim/checkers/catalogue.hpp"
#include "tests/support/test_host.hpp"

namespace leeway::test {

inline void observe_all(TestHost& host, const std::shared_ptr<const Job>& job) {
  for (const auto& checker : sim::all_checkers(job)) host.observe(checker);
}

}  // namespace leeway::test
