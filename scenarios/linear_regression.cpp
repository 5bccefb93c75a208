// linear-regression: two workers fit the line y = 3x + 2 to noisy samples. The smallest scenario.
//
// The program checks its result and fails if it found another line.
#include <leeway/leeway.hpp>

#include <cmath>
#include <iostream>

using namespace leeway;

int main(int argc, char** argv) {
  Scenario scenario("linear-regression", "Find y = 3x + 2 in noisy samples.");
  scenario.data(line(3, 2, 0.1, 10000))
      .model({linear(1)})
      .loss(mean_squared_error())
      .optimizer(sgd(0.1))
      .consistency(ssp(1))
      .workers(2)
      .shards(1)
      .batch(32)
      .epochs(3);

  const Result result = run(scenario, argc, argv);
  if (!result.ok()) return result.exit_code;
  const float slope = result.weight("0.weight")[0];
  const float intercept = result.weight("0.bias")[0];
  std::cout << "\nFound y = " << slope << " x + " << intercept << '\n';
  const bool found = std::abs(slope - 3) < 0.05 && std::abs(intercept - 2) < 0.05;
  if (!found)
    std::cerr << "linear-regression: this is not y = 3 x + 2; train longer (--epochs 10)\n";
  return found ? 0 : 1;
}
