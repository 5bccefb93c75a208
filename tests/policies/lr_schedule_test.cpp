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

TEST_CASE("linear falls along a line to its floor, and stays there", "[lr_schedule]") {
  const auto linear = schedule(plan::LinearLr{.floor = 0.2});
  REQUIRE(near(linear->factor(5, 10), 0.6));
  REQUIRE(near(linear->factor(12, 10), 0.2));
  REQUIRE(linear->factor(5, 0) == 1);  // length unknown
}

TEST_CASE("cosine restarts at the full rate when a period ends, also after rounding",
          "[lr_schedule]") {
  for (const double growth : {1.0, 1.1, 2.0, 3.0}) {
    const double period = 0.7;
    const auto cosine = schedule(plan::Cosine{.floor = 0.1, .period = period, .growth = growth});
    double begin = 0, length = period;
    for (int n = 0; n < 12; ++n) {
      REQUIRE(std::abs(cosine->factor(begin + 1e-9 * length, 0) - 1) < 1e-6);
      REQUIRE(std::abs(cosine->factor(begin + 0.5 * length, 0) - 0.55) < 1e-6);
      REQUIRE(std::abs(cosine->factor(begin + (1 - 1e-9) * length, 0) - 0.1) < 1e-6);
      begin += length;
      length *= growth;
    }
  }
}

TEST_CASE("a warm-up starts at its share of the full rate", "[lr_schedule]") {
  const auto made = make_lr_schedule({.warmup = 4, .kind = plan::Constant{}, .warmup_start = 0.25});
  REQUIRE(near(made->factor(0, 10), 0.25));
  REQUIRE(near(made->factor(2, 10), 0.625));
  REQUIRE(near(made->factor(4, 10), 1));
}

TEST_CASE("schedules have the factors of PyTorch's", "[lr_schedule]") {
  // Factors of epochs 0 to 10 by the closed forms of torch.optim.lr_scheduler, computed in double
  // precision by a separate program; of OneCycleLR, of steps 0 to 10, with its peak at step 0.3 *
  // 11 - 1 = 2.3.
  struct Recorded {
    const char* name;
    plan::LrSchedule spec;
    double factors[11];
  };
  const Recorded all[] = {
      {"StepLR(step_size=3, gamma=0.1)",
       {0, plan::Step{3, 0.1}},
       {1.000000000, 1.000000000, 1.000000000, 0.100000000, 0.100000000, 0.100000000, 0.010000000,
        0.010000000, 0.010000000, 0.001000000, 0.001000000}},
      {"CosineAnnealingLR(T_max=10, eta_min=0.1)",
       {0, plan::Cosine{0.1}},
       {1.000000000, 0.977975432, 0.914057647, 0.814503364, 0.689057647, 0.550000000, 0.410942353,
        0.285496636, 0.185942353, 0.122024568, 0.100000000}},
      {"CosineAnnealingWarmRestarts(T_0=3, T_mult=2, eta_min=0.1)",
       {0, plan::Cosine{0.1, 3, 2}},
       {1.000000000, 0.775000000, 0.325000000, 1.000000000, 0.939711432, 0.775000000, 0.550000000,
        0.325000000, 0.160288568, 1.000000000, 0.984666622}},
      {"CosineAnnealingWarmRestarts(T_0=4)",
       {0, plan::Cosine{0, 4, 1}},
       {1.000000000, 0.853553391, 0.500000000, 0.146446609, 1.000000000, 0.853553391, 0.500000000,
        0.146446609, 1.000000000, 0.853553391, 0.500000000}},
      {"LinearLR(start_factor=1, end_factor=0.2, total_iters=10)",
       {0, plan::LinearLr{0.2}},
       {1.000000000, 0.920000000, 0.840000000, 0.760000000, 0.680000000, 0.600000000, 0.520000000,
        0.440000000, 0.360000000, 0.280000000, 0.200000000}},
      {"ExponentialLR(gamma=0.9)",
       {0, plan::ExponentialLr{0.9}},
       {1.000000000, 0.900000000, 0.810000000, 0.729000000, 0.656100000, 0.590490000, 0.531441000,
        0.478296900, 0.430467210, 0.387420489, 0.348678440}},
      {"OneCycleLR(total_steps=11)",
       {0, plan::OneCycle{0.23, 25, 1e4}},
       {0.040000000, 0.422341114, 0.960261425, 0.979746568, 0.884475725, 0.726087049, 0.530582708,
        0.330058029, 0.157432513, 0.041045543, 4e-06}},
      {"SequentialLR([LinearLR(start_factor=0.25, total_iters=4), ExponentialLR(0.9)], [4])",
       {4, plan::ExponentialLr{0.9}, 0.25},
       {0.250000000, 0.437500000, 0.625000000, 0.812500000, 1.000000000, 0.900000000, 0.810000000,
        0.729000000, 0.656100000, 0.590490000, 0.531441000}},
  };
  for (const Recorded& recorded : all) {
    const auto made = make_lr_schedule(recorded.spec);
    for (int epoch = 0; epoch <= 10; ++epoch) {
      CAPTURE(recorded.name, epoch);
      CHECK(std::abs(made->factor(epoch, 10) - recorded.factors[epoch]) < 1e-6);
    }
  }
}

TEST_CASE("factors are between 0 and 1, and never rise after warm-up", "[lr_schedule]") {
  rc::prop("factors fall", [] {
    const double warmup = *rc::gen::element(0.0, 0.5, 3.0);
    const plan::LrSchedule spec{.warmup = warmup,
                                .kind = *rc::gen::element<decltype(plan::LrSchedule::kind)>(
                                    plan::Constant{}, plan::Step{3, 0.3}, plan::Cosine{0.1},
                                    plan::LinearLr{0.1}, plan::ExponentialLr{0.9})};
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
