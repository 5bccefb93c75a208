#include "policies/lr_schedule/lr_schedule.hpp"

#include <rapidcheck/catch.h>

#include <cmath>

using namespace leeway;

namespace {

template <class Kind>
std::unique_ptr<LrSchedule> schedule(Kind kind, double warmup = 0) {
  return make_lr_schedule({.warmup = warmup, .kind = kind});
}

bool near(double a, double b) {
  return std::abs(a - b) < 1e-12;
}

}  // namespace

TEST_CASE("constant has the factor 1 throughout", "[lr_schedule]") {
  for (const double epoch : {0.0, 0.5, 9.0, 100.0})
    REQUIRE(schedule(plan::Constant{})->factor(epoch, 10) == 1);
}

TEST_CASE("step drops by its factor after every period", "[lr_schedule]") {
  const auto step = schedule(plan::Step{.every = 2, .factor = 0.5});
  REQUIRE(step->factor(0, 10) == 1);
  REQUIRE(step->factor(1.999, 10) == 1);
  REQUIRE(step->factor(2, 10) == 0.5);
  REQUIRE(step->factor(5, 10) == 0.25);
  REQUIRE(schedule(plan::Step{.every = 0, .factor = 0.5})->factor(5, 10) == 1);
}

TEST_CASE("cosine falls from 1 through the middle to its floor, and stays there", "[lr_schedule]") {
  const auto cosine = schedule(plan::Cosine{.floor = 0.2});
  REQUIRE(cosine->factor(0, 10) == 1);
  REQUIRE(near(cosine->factor(5, 10), 0.6));
  REQUIRE(near(cosine->factor(10, 10), 0.2));
  REQUIRE(near(cosine->factor(12, 10), 0.2));
  REQUIRE(cosine->factor(5, 0) == 1);  // length unknown
}

TEST_CASE("warm-up rises linearly, and the schedule starts at its end", "[lr_schedule]") {
  const auto cosine = schedule(plan::Cosine{}, 2);
  REQUIRE(cosine->factor(0, 10) == 0);
  REQUIRE(near(cosine->factor(0.5, 10), 0.25));
  REQUIRE(near(cosine->factor(2, 10), 1));
  REQUIRE(near(cosine->factor(6, 10), 0.5));
  REQUIRE(near(cosine->factor(10, 10), 0));
  REQUIRE(near(schedule(plan::Step{.every = 2, .factor = 0.5}, 1)->factor(2.9, 10), 1));
  REQUIRE(near(schedule(plan::Step{.every = 2, .factor = 0.5}, 1)->factor(3.1, 10), 0.5));
}

TEST_CASE("factors are between 0 and 1, and never rise after warm-up", "[lr_schedule]") {
  rc::prop("factors fall", [] {
    const double warmup = *rc::gen::element(0.0, 0.5, 3.0);
    const plan::LrSchedule spec{.warmup = warmup,
                                .kind = *rc::gen::element<decltype(plan::LrSchedule::kind)>(
                                    plan::Constant{}, plan::Step{3, 0.3}, plan::Cosine{0.1})};
    const auto made = make_lr_schedule(spec);
    double before = 1;
    for (int i = 0; i <= 120; ++i) {
      const double epoch = i / 10.0;
      const double factor = made->factor(epoch, 10);
      RC_ASSERT(factor >= 0);
      RC_ASSERT(factor <= 1);
      if (epoch >= warmup) {
        RC_ASSERT(factor <= before);
        before = factor;
      }
    }
  });
}
