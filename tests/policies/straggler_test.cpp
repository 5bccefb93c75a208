#include "policies/straggler/straggler.hpp"

#include <rapidcheck/catch.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "policies/straggler/custom.hpp"
#include "policies/straggler/trace.hpp"

using namespace leeway;

namespace {

std::unique_ptr<Straggler> made(const plan::StragglerKind& kind, std::uint64_t seed = 7) {
  return make_straggler(kind, Rng(seed));
}

std::vector<double> factors_of(const plan::StragglerKind& kind, int count, std::uint64_t seed = 7) {
  const auto straggler = made(kind, seed);
  std::vector<double> factors;
  for (int i = 0; i < count; ++i) factors.push_back(straggler->next({}).factor);
  return factors;
}

struct Observed {
  double share;       // of slow iterations
  double mean_burst;  // iterations
};

Observed observe(const plan::Bursts& spec) {
  constexpr int kIterations = 200'000;
  int slow = 0, bursts = 0;
  bool before = false;
  for (const double factor : factors_of(spec, kIterations)) {
    const bool now = factor > 1;
    slow += now;
    bursts += now && !before;
    before = now;
  }
  return {static_cast<double>(slow) / kIterations, bursts ? static_cast<double>(slow) / bursts : 0};
}

/// The iterations with a pause, among `count` iterations that take `step` each.
std::vector<int> pauses_of(const plan::Pauses& spec, int count, Duration step,
                           std::uint64_t seed = 7) {
  const auto straggler = made(spec, seed);
  std::vector<int> paused;
  for (int i = 0; i < count; ++i) {
    const Slowdown slow = straggler->next({i * step.ns});
    REQUIRE(slow.factor == 1);
    if (slow.extra.ns == 0) continue;
    REQUIRE(slow.extra.ns == std::llround(spec.length_ms * 1e6));
    paused.push_back(i);
  }
  return paused;
}

/// A file that is removed at the end of its scope.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("straggler_test_" + std::to_string(reinterpret_cast<std::uintptr_t>(this)))) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string trace_error(const std::string& text) {
  const TemporaryFile file(text);
  const Status status = check_sources({{}, {0, true, plan::Trace{file.path()}}});
  if (status) return "";
  REQUIRE(status.error().text.starts_with(file.path()));
  return status.error().text.substr(file.path().size());
}

}  // namespace

TEST_CASE("a constant straggler has the same factor throughout", "[straggler]") {
  for (const double factor : factors_of(plan::ConstantFactor{3}, 1000)) REQUIRE(factor == 3);
}

TEST_CASE("bursts of share 1 never end, and bursts of share 0 never begin", "[straggler]") {
  for (const double factor : factors_of(plan::Bursts{3, 1, 5}, 1000)) REQUIRE(factor == 3);
  for (const double factor : factors_of(plan::Bursts{3, 0, 5}, 1000)) REQUIRE(factor == 1);
}

TEST_CASE("bursts have the share and the mean length of their spec", "[straggler]") {
  const auto seen = observe({.factor = 4, .share = 0.2, .length = 20});
  REQUIRE(std::abs(seen.share - 0.2) < 0.02);
  REQUIRE(std::abs(seen.mean_burst - 20) < 1.5);
}

TEST_CASE("bursts grow if their mean length is too short for their share", "[straggler]") {
  const auto seen = observe({.factor = 4, .share = 0.9, .length = 1});
  REQUIRE(std::abs(seen.share - 0.9) < 0.01);
  REQUIRE(std::abs(seen.mean_burst - 9) < 0.5);
}

TEST_CASE("a run starts inside a burst with the probability of the share", "[straggler]") {
  int slow = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed)
    slow += factors_of(plan::Bursts{2, 0.5, 1000}, 1, seed)[0] > 1;
  REQUIRE(std::abs(slow - 1000) < 120);
}

TEST_CASE("Pareto factors have the tail of their exponent", "[straggler]") {
  constexpr int kDraws = 200'000;
  for (const double alpha : {0.5, 1.0, 1.5, 3.0}) {
    const auto factors = factors_of(plan::Pareto{alpha, 1e6}, kDraws);
    for (const double x : {1.0, 1.1, 2.0, 5.0, 20.0}) {
      const double expected = std::pow(x, -alpha);
      const auto above =
          std::count_if(factors.begin(), factors.end(), [&](double factor) { return factor > x; });
      INFO("alpha " << alpha << ", above " << x);
      REQUIRE(std::abs(static_cast<double>(above) / kDraws - expected) <
              5 * std::sqrt(expected / kDraws));
    }
  }
}

TEST_CASE("Pareto factors are powers of the random numbers, to nine digits", "[straggler]") {
  const auto factors = factors_of(plan::Pareto{1.5, 1e6}, 10'000, 3);
  Rng same(3);
  for (const double factor : factors) {
    const double u = static_cast<double>(same.next() | 1) * 0x1p-64;
    REQUIRE(factor == Approx(std::pow(u, -1 / 1.5)).epsilon(1e-9));
  }
}

TEST_CASE("Pareto factors stay between 1 and the cap for any exponent", "[straggler]") {
  for (const double alpha : {0.1, 1.0, 100.0}) {
    const auto factors = factors_of(plan::Pareto{alpha, 20}, 10'000);
    REQUIRE(*std::min_element(factors.begin(), factors.end()) >= 1);
    REQUIRE(*std::max_element(factors.begin(), factors.end()) <= 20);
  }
  const auto heavy = factors_of(plan::Pareto{0.1, 20}, 1000);
  REQUIRE(std::count(heavy.begin(), heavy.end(), 20.0) > 600);  // 20^-0.1 is 74%
}

TEST_CASE("pauses come every n iterations, from a random first one", "[straggler]") {
  const auto paused = pauses_of({5, std::uint32_t{10}}, 100, {});
  REQUIRE(paused.size() == 10);
  for (int i = 0; i < 10; ++i) REQUIRE(paused[static_cast<std::size_t>(i)] == paused[0] + 10 * i);
  REQUIRE(pauses_of({5, std::uint32_t{1}}, 20, {}).size() == 20);
  std::set<int> first;
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    first.insert(pauses_of({5, std::uint32_t{10}}, 10, {}, seed).at(0));
  REQUIRE(first.size() == 10);
}

TEST_CASE("pauses by the clock have a fixed period", "[straggler]") {
  const auto paused = pauses_of({0.25, 0.01}, 1000, milliseconds(1));
  REQUIRE(paused.size() == 100);
  REQUIRE(paused[0] <= 10);
  for (std::size_t i = 0; i < 100; ++i) REQUIRE(paused[i] == paused[0] + 10 * static_cast<int>(i));
}

TEST_CASE("several pauses that come due during one iteration count as one", "[straggler]") {
  REQUIRE(pauses_of({0.25, 0.01}, 20, seconds(3)).size() >= 19);
  const auto straggler = made(plan::Pauses{0.25, 0.01});
  REQUIRE(straggler->next({seconds(100).ns}).extra == microseconds(250));
  REQUIRE(straggler->next({seconds(100).ns}).extra == Duration{});
  REQUIRE(straggler->next({seconds(100).ns + milliseconds(10).ns}).extra == microseconds(250));
}

TEST_CASE("decay rises linearly from 1 to its factor, and stays there", "[straggler]") {
  const std::vector<double> expected = {1, 2, 3, 4, 5, 5, 5};
  REQUIRE(factors_of(plan::Decay{5, 4}, 7) == expected);
}

TEST_CASE("sharing repeats its cycle, from a random position", "[straggler]") {
  std::set<std::vector<double>> begins;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto factors = factors_of(plan::Sharing{3, 2, 5}, 70, seed);
    REQUIRE(std::count(factors.begin(), factors.end(), 3.0) == 20);
    REQUIRE(std::count(factors.begin(), factors.end(), 1.0) == 50);
    for (std::size_t i = 7; i < factors.size(); ++i) REQUIRE(factors[i] == factors[i - 7]);
    int changes = 0;
    for (std::size_t i = 1; i <= 7; ++i) changes += factors[i] != factors[i - 1];
    REQUIRE(changes == 2);
    begins.insert({factors.begin(), factors.begin() + 7});
  }
  REQUIRE(begins.size() == 7);
}

TEST_CASE("a trace repeats, without its comments and empty lines", "[straggler]") {
  const TemporaryFile file("# measured\n1.5\n\n 2\t\r\n1e1");
  REQUIRE(check_sources({{0, false, plan::Trace{file.path()}}}));
  const std::vector<double> expected = {1.5, 2, 10, 1.5, 2, 10, 1.5};
  REQUIRE(factors_of(plan::Trace{file.path()}, 7) == expected);
}

TEST_CASE("the error of an invalid trace has file, line and a valid example", "[straggler]") {
  REQUIRE(trace_error("1\n2\nfast\n") ==
          ":3: \"fast\" is not a factor; give one number from 1 to 1000000, such as 2.5");
  for (const std::string wrong : {"0.5", "-1", "nan", "inf", "2e6", "2x", "1 2", "1,5"})
    REQUIRE(trace_error("1\n" + wrong + "\n2").starts_with(":2: \"" + wrong + "\" is not"));
  for (const std::string empty : {"", "\n\n", "# nothing\n"})
    REQUIRE(trace_error(empty) == ": has no factors; give one number per line, such as 2.5");
  REQUIRE(trace_error(std::string((1 << 20) + 1, '\n')).starts_with(": has more than 1048576"));
  const auto refused = [](const std::string& path) { return read_trace(path).error().text; };
  REQUIRE(refused("/nonexistent/x") ==
          "/nonexistent/x: cannot be read: No such file or directory; check the path");
  REQUIRE(refused("/") == "/: is a folder; give a file with one factor per line");
  REQUIRE_THROWS_AS(made(plan::Trace{"/nonexistent/x"}), CheckFailed);
}

TEST_CASE("sharing with a phase begins at that position of its cycle", "[straggler]") {
  const std::vector<double> begin = {3, 3, 1, 1, 1, 3}, later = {3, 1, 1, 1, 3, 3};
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    REQUIRE(factors_of(plan::Sharing{3, 2, 3, 0}, 6, seed) == begin);
    REQUIRE(factors_of(plan::Sharing{3, 2, 3, 1}, 6, seed) == later);
  }
}

TEST_CASE("a list of factors repeats", "[straggler]") {
  const std::vector<double> expected = {4, 4, 1, 1, 4, 4, 1};
  REQUIRE(factors_of(plan::Repeated{{4, 4, 1, 1}}, 7) == expected);
}

TEST_CASE("a fixed delay is added to each iteration", "[straggler]") {
  const auto straggler = made(plan::FixedDelay{2.5});
  for (int i = 0; i < 5; ++i) REQUIRE(straggler->next({}) == Slowdown{1, microseconds(2500)});
}

TEST_CASE("a function of the program gets the iteration, the time and random numbers",
          "[straggler]") {
  std::vector<std::int64_t> iterations;
  std::vector<double> times;
  register_straggler("seen", [&](std::int64_t iteration, double now, Rng& random) {
    iterations.push_back(iteration);
    times.push_back(now);
    return 1 + random.uniform();
  });
  const auto straggler = made(plan::CustomStraggler{"seen"});
  const double first = straggler->next({seconds(3).ns}).factor;
  straggler->skip(4);
  const double sixth = straggler->next({seconds(7).ns}).factor;
  REQUIRE(iterations == std::vector<std::int64_t>{0, 5});
  REQUIRE(times == std::vector<double>{3, 7});
  REQUIRE(first != sixth);
  REQUIRE(made(plan::CustomStraggler{"seen"})->next({}).factor == first);
  REQUIRE(made(plan::CustomStraggler{"seen"}, 8)->next({}).factor != first);
}

TEST_CASE("a function that is missing or returns an invalid factor is an error", "[straggler]") {
  register_straggler("known", [](std::int64_t, double, Rng&) { return 0.5; });
  const Status missing = check_sources({{0, false, plan::CustomStraggler{"knwon"}}});
  REQUIRE_FALSE(missing);
  REQUIRE(missing.error().text == "straggler \"knwon\" is not registered; did you mean \"known\"?");
  REQUIRE_THROWS_AS(made(plan::CustomStraggler{"knwon"}), CheckFailed);
  REQUIRE(check_sources({{0, false, plan::CustomStraggler{"known"}}}));
  REQUIRE_THROWS_AS(made(plan::CustomStraggler{"known"})->next({}), CheckFailed);
}

TEST_CASE("a straggler depends only on its spec and its random numbers", "[straggler]") {
  for (const plan::StragglerKind& kind : std::vector<plan::StragglerKind>{
           plan::Bursts{2, 0.5, 3}, plan::Pareto{}, plan::Sharing{2, 100, 100}}) {
    REQUIRE(factors_of(kind, 100, 1) == factors_of(kind, 100, 1));
    REQUIRE(factors_of(kind, 100, 1) != factors_of(kind, 100, 2));
  }
}

// --- several stragglers of one worker ---

namespace {

std::vector<Slowdown> draws(const std::vector<plan::Straggler>& stragglers, std::uint32_t worker,
                            std::uint64_t seed = 1) {
  StragglerModel model(stragglers, worker, seed);
  std::vector<Slowdown> all;
  for (int i = 0; i < 200; ++i) all.push_back(model.next({}));
  return all;
}

}  // namespace

TEST_CASE("a worker without a straggler is not slowed", "[straggler]") {
  REQUIRE(StragglerModel().next({}) == Slowdown{});
  REQUIRE(StragglerModel({{3, false, plan::ConstantFactor{4}}}, 2, 1).next({}) == Slowdown{});
}

TEST_CASE("several stragglers of a worker multiply, and their pauses add", "[straggler]") {
  const std::vector<plan::Straggler> several = {
      {2, false, plan::ConstantFactor{3}},           {1, false, plan::ConstantFactor{100}},
      {2, false, plan::Pauses{2, std::uint32_t{1}}}, {0, true, plan::ConstantFactor{4}},
      {2, false, plan::Pauses{5, std::uint32_t{1}}},
  };
  REQUIRE(StragglerModel(several, 2, 1).next({}) == Slowdown{12, milliseconds(7)});
  REQUIRE(StragglerModel(several, 0, 1).next({}) == Slowdown{4, {}});
  const std::vector<plan::Straggler> absurd(10, {0, true, plan::ConstantFactor{1e6}});
  REQUIRE(StragglerModel(absurd, 5, 1).next({}).factor == plan::kMaxSlowdown);
}

TEST_CASE("more work of an iteration has the same factor, without another pause", "[straggler]") {
  REQUIRE(StragglerModel().same() == Slowdown{});
  StragglerModel model({{0, false, plan::Pareto{}}, {0, false, plan::Pauses{2, std::uint32_t{1}}}},
                       0, 1);
  for (int i = 0; i < 20; ++i) {
    const Slowdown begun = model.next({});
    REQUIRE(begun.extra == milliseconds(2));
    REQUIRE(model.same() == Slowdown{begun.factor, {}});
    REQUIRE(model.same() == model.same());
  }
}

TEST_CASE("slow-downs depend on the seed, the worker and the index among its stragglers",
          "[straggler]") {
  const plan::Straggler all{0, true, plan::Pareto{}};
  REQUIRE(draws({all}, 1) == draws({all}, 1));
  REQUIRE(draws({all}, 1) != draws({all}, 2));
  REQUIRE(draws({all}, 1) != draws({all}, 1, 2));
  const plan::Straggler bursts{1, false, plan::Bursts{2, 0.5, 3}};
  const plan::Straggler other{2, false, plan::Bursts{2, 0.5, 3}};
  REQUIRE(draws({bursts}, 1) == draws({other, bursts}, 1));
  // With a common stream both would be slow together, and the factor 2 would never occur.
  int twice = 0;
  for (const Slowdown& slow : draws({bursts, bursts}, 1)) twice += slow.factor == 2;
  REQUIRE(twice > 20);
}

TEST_CASE("a model that begins at iteration k continues as one that has counted k iterations",
          "[straggler]") {
  const TemporaryFile trace("1\n2\n5\n3\n");
  const std::vector<plan::StragglerKind> kinds = {
      plan::ConstantFactor{3},           plan::Bursts{4, 0.4, 3},   plan::Pareto{1.1, 50},
      plan::Pauses{2, std::uint32_t{7}}, plan::Decay{9, 30},        plan::Sharing{3, 4, 5},
      plan::Trace{trace.path()},         plan::Repeated{{4, 4, 1}}, plan::FixedDelay{3},
      plan::CustomStraggler{"drawing"}};
  register_straggler("drawing", [](std::int64_t iteration, double, Rng& random) {
    return 1 + random.uniform() + static_cast<double>(iteration % 3);
  });
  REQUIRE(kinds.size() == std::variant_size_v<plan::StragglerKind::variant>);
  std::vector<plan::Straggler> all;
  for (const auto& kind : kinds) all.push_back({2, false, kind});
  for (const auto& kind : kinds) all.push_back({2, false, kind, {}, std::int64_t{17}});
  for (const auto& kind : kinds) {
    const std::vector<plan::Straggler> one = {{2, false, kind}};
    const std::vector<plan::Straggler> late = {{2, false, kind, {}, std::int64_t{25}}};
    for (const auto& stragglers : {one, late, all}) {
      for (std::int64_t k = 0; k < 60; ++k) {
        INFO("kind " << kind.index() << ", " << stragglers.size() << " stragglers, k " << k);
        StragglerModel continued(stragglers, 2, 1, Iteration(k)), whole(stragglers, 2, 1);
        for (std::int64_t i = 0; i < k; ++i) whole.next({});
        for (int i = 0; i < 40; ++i) REQUIRE(continued.next({}) == whole.next({}));
      }
    }
  }
}

TEST_CASE("workers together are slow in the same iterations", "[straggler]") {
  const std::vector<plan::Straggler> rack = {{0, false, plan::Bursts{4, 0.3, 5}, {2, 3}}};
  REQUIRE(draws(rack, 2) == draws(rack, 3));
  REQUIRE(draws(rack, 2) != draws(rack, 2, 7));
  REQUIRE(draws(rack, 0) == std::vector<Slowdown>(200));
  const std::vector<plan::Straggler> two = {rack[0], rack[0]};
  int once = 0;
  for (const Slowdown& slow : draws(two, 2)) once += slow.factor == 4;
  REQUIRE(once > 20);  // each straggler has its own random numbers
}

TEST_CASE("a straggler begins at its iteration, or after a share of the run", "[straggler]") {
  const auto begin = [](plan::StragglerStart start) {
    const std::vector<plan::Straggler> late =
        with_starts({{1, false, plan::Decay{5, 4}, {}, start}}, 20);
    const auto all = draws(late, 1);
    const auto first =
        std::find_if(all.begin(), all.end(), [](const Slowdown& one) { return one.factor > 1; });
    REQUIRE(first->factor == 2);  // the rise begins there, too
    return first - all.begin() - 1;
  };
  REQUIRE(begin(0.0) == 0);
  REQUIRE(begin(0.5) == 10);
  REQUIRE(begin(std::int64_t{7}) == 7);
  REQUIRE_THROWS_AS(StragglerModel({{1, false, plan::Decay{}, {}, 0.5}}, 1, 1), CheckFailed);
}

TEST_CASE("a model counts the time that each straggler adds", "[straggler]") {
  const auto counts = std::make_shared<Disturbances>(4, 0);
  StragglerModel model({{0, false, plan::ConstantFactor{3}},
                        {1, false, plan::ConstantFactor{3}},
                        {0, false, plan::ConstantFactor{2}},
                        {0, false, plan::Pauses{2, std::uint32_t{2}}}},
                       0, 1, {}, counts);
  for (int i = 0; i < 10; ++i) {
    model.next({});
    model.count(milliseconds(30), true);
    model.count(milliseconds(60), false);
  }
  const auto all = counts->stragglers();
  REQUIRE(all[0].added == milliseconds(600));  // two thirds of the excess
  REQUIRE(all[2].added == milliseconds(300));
  REQUIRE(all[3].added == milliseconds(10));
  REQUIRE(all[1].added == Duration{});
  REQUIRE(all[0].iterations == 10);
  REQUIRE(all[3].iterations == 5);
  REQUIRE(all[1].iterations == 0);
}

TEST_CASE("pauses by the clock do not depend on the first iteration", "[straggler]") {
  const std::vector<plan::Straggler> pauses = {{0, false, plan::Pauses{2, 0.5}}};
  StragglerModel first(pauses, 0, 1), later(pauses, 0, 1, Iteration(1000));
  int paused = 0;
  for (int i = 0; i < 100; ++i) {
    const Slowdown slow = first.next({milliseconds(100 * i).ns});
    REQUIRE(slow == later.next({milliseconds(100 * i).ns}));
    paused += slow.extra.ns > 0;
  }
  REQUIRE(paused > 10);
}
