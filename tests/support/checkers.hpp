#pragma once
// Attaches all checkers of the simulator to a TestHost.
#include "sim/checkers/catalogue.hpp"
#include "tests/support/test_host.hpp"

namespace leeway::test {

inline void observe_all(TestHost& host, const std::shared_ptr<const Job>& job) {
  for (const auto& checker : sim::all_checkers(job)) host.observe(checker);
}

}  // namespace leeway::test
