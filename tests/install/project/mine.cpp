// A scenario in a user's project.
#include <leeway/leeway.hpp>

#include <cmath>

int main(int argc, char** argv) {
  using namespace leeway;
  Scenario scenario("mine", "Finds a line through noisy samples.");
  scenario.description("Two workers fit y = 3x + 2.")
      .data(line(3, 2, 0.1, 2000))
      .model({linear(1)})
      .loss(mean_squared_error())
      .optimizer(sgd(0.1))
      .consistency(ssp(2))
      .workers(2)
      .shards(1)
      .batch(16)
      .epochs(5);
  const Result result = run(scenario, argc, argv);
  if (!result.ok()) return result.exit_code;
  const double slope = result.weight("0.weight")[0];
  const double intercept = result.weight("0.bias")[0];
  return std::abs(slope - 3) < 0.1 && std::abs(intercept - 2) < 0.1 ? 0 : 1;
}
