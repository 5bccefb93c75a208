#include "models/profile.hpp"

#include <thread>

#include "tests/models/support.hpp"

using namespace leeway;
using namespace leeway::test;

TEST_CASE("rows are sums in the order in which they were first added", "[profile]") {
  Profile profile;
  profile.add("b", "forward", 0.5, 10, 3);
  profile.add("a", "forward", 1, 20, 0);
  profile.add("b", "backward", 2, 40, 5);
  profile.add("b", "forward", 0.25, 1, 2);
  const auto rows = profile.rows();
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].where == "b");
  CHECK(rows[0].what == "forward");
  CHECK(rows[0].calls == 2);
  CHECK(rows[0].seconds == 0.75);
  CHECK(rows[0].flops == 11);
  CHECK(rows[0].bytes == 5);
  CHECK(rows[1].where == "a");
  CHECK(rows[1].calls == 1);
  CHECK(rows[2].where == "b");
  CHECK(rows[2].what == "backward");
  CHECK(rows[2].flops == 40);
}

TEST_CASE("concurrent additions are all counted", "[profile]") {
  Profile profile;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) profile.add(i % 2 ? "odd" : "even", "x", 1, 2, 3);
      });
  }
  REQUIRE(profile.rows().size() == 2);
  for (const auto& row : profile.rows()) {
    CHECK(row.calls == 2000);
    CHECK(row.seconds == 2000);
    CHECK(row.flops == 4000);
    CHECK(row.bytes == 6000);
  }
}

TEST_CASE("a timer measures the time from its construction to end()", "[profile]") {
  Profile profile;
  const auto on = make_cpu_executor();
  Profile::Timer timer(&profile, *on);
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  timer.end("layer", "forward", 7, 8);
  REQUIRE(profile.rows().size() == 1);
  CHECK(profile.rows()[0].seconds >= 0.003);
  CHECK(profile.rows()[0].flops == 7);
  CHECK(profile.rows()[0].bytes == 8);
  Profile::Timer without_profile(nullptr, *on);
  without_profile.end("layer", "forward", 7, 8);
  CHECK(profile.rows()[0].calls == 1);
}

TEST_CASE("a pass records forward and backward of each layer, and the loss, in its profile",
          "[profile]") {
  kernels::use_one_compute_thread();
  const auto model = classifier(
      {gelu(), flatten(), linear(5), residual({linear(5), relu()}), linear(3)}, {2, 2}, 3);
  Memory memory(model);
  memory.initialize(1);
  const RandomBatch data(*model, 4, 1);
  const auto profile = std::make_shared<Profile>();
  Pass pass(model, 4, true, {.on = nullptr, .packed = nullptr, .profile = profile});
  for (int step = 0; step < 3; ++step) {
    pass.forward(data.batch, memory.weights());
    run_backward(pass, memory);
  }
  using Rows = std::vector<std::pair<std::string, std::string>>;
  Rows rows;
  for (const auto& row : profile->rows()) {
    rows.emplace_back(row.where, row.what);
    CHECK(row.calls == 3);
    CHECK(row.seconds >= 0);
  }
  // A view takes no time, a sum has no backward, and no trained layer precedes the first gelu.
  CHECK(rows == Rows{{"layer 0 (gelu)", "forward"},
                     {"layer 2 (linear)", "forward"},
                     {"layer 3.body.0 (linear)", "forward"},
                     {"layer 3.body.1 (relu)", "forward"},
                     {"layer 3 (sum)", "forward"},
                     {"layer 4 (linear)", "forward"},
                     {"layer 4 (linear)", "loss"},
                     {"layer 4 (linear)", "backward"},
                     {"layer 3.body.1 (relu)", "backward"},
                     {"layer 3.body.0 (linear)", "backward"},
                     {"layer 2 (linear)", "backward"}});
  const auto flops = [&](std::size_t row) { return profile->rows()[row].flops; };
  CHECK(flops(1) == 3 * 4 * 2 * 4 * 5);
  CHECK(flops(9) == 2 * 3 * 4 * 2 * 5 * 5);  // gradients of weights and input
  CHECK(flops(10) == 3 * 4 * 2 * 4 * 5);     // gradients of only the weights
}
