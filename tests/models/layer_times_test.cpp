#include "models/layer_times.hpp"

#include <catch2/catch.hpp>

#include "tests/models/support.hpp"

using namespace leeway;
using namespace leeway::test;

TEST_CASE("an estimated time is the longer of arithmetic and memory traffic") {
  const auto model = classifier({flatten(), linear(50), relu(), linear(3)}, {4, 5}, 3);
  const auto arithmetic = estimated_times(*model, 8, 1e9, 1e18);
  REQUIRE(arithmetic.size() == 4);
  CHECK(arithmetic[0].forward == 0);  // a view
  CHECK(arithmetic[1].forward == 2 * 8 * 20 * 50);
  CHECK(arithmetic[1].backward_input == 0);  // its input is the data
  CHECK(arithmetic[1].backward_weights == arithmetic[1].forward);
  CHECK(arithmetic[2].backward_input > 0);
  CHECK(arithmetic[2].backward_weights == 0);
  CHECK(arithmetic[3].backward_input == 2 * 8 * 50 * 3);
  CHECK(arithmetic[3].backward_weights == 2 * 8 * 50 * 3);
  const auto memory = estimated_times(*model, 8, 1e18, 1e9);
  CHECK(memory[1].forward == 4 * (8 * (20 + 50) + 20 * 50 + 50));
  CHECK(memory[2].forward == 4 * 8 * (50 + 50));
}

TEST_CASE("a residual block's sum reads two tensors") {
  const auto model = classifier({linear(6), residual({linear(6)}), linear(3)}, {6}, 3);
  REQUIRE(model->is_sum(2));
  const auto times = estimated_times(*model, 2, 1e18, 1e9);
  CHECK(times[2].forward == 4 * 2 * (2 * 6 + 6));
}

TEST_CASE("the same operations have a measured time and an estimated time") {
  const auto model =
      classifier({flatten(), linear(64), relu(), residual({linear(64)}), linear(3)}, {4, 50}, 3);
  const RandomBatch data(*model, 16, 1);
  const auto measured = measured_times(model, data.batch, make_cpu_executor());
  const auto estimated = estimated_times(*model, 16, 1e9, 1e9);
  REQUIRE(measured.size() == estimated.size());
  for (std::size_t i = 0; i < measured.size(); ++i) {
    INFO(model->layer_name(static_cast<int>(i)));
    CHECK((measured[i].forward > 0) == (estimated[i].forward > 0));
    if (model->is_sum(static_cast<int>(i))) continue;  // passes its gradient on, unmeasured
    CHECK((measured[i].backward_input > 0) == (estimated[i].backward_input > 0));
    CHECK((measured[i].backward_weights > 0) == (estimated[i].backward_weights > 0));
  }
}
