#include "actors/shard/pulled_versions.hpp"

#include <catch2/catch.hpp>

#include "core/limits.hpp"
#include "kernels/executors.hpp"

using namespace leeway;

namespace {

const WorkerId kOneWorker(1), kOther(2);

/// A block of 4 floats, of which `version` has the value of its number.
class Pullable {
 public:
  Pullable() {
    block_.id = BlockId(3);
    block_.floats = 4;
    state_.block = &block_;
    update(0);
  }
  void update(std::int64_t version) {
    state_.version = Version(version);
    state_.progress = static_cast<double>(version) / 4;
    state_.weights = Blob::floats(4);
    std::fill_n(state_.weights.mutable_floats(), 4, static_cast<float>(version));
  }
  const BlockState& operator*() const { return state_; }
  const Block& block() const { return block_; }

 private:
  Block block_;
  BlockState state_;
};

}  // namespace

TEST_CASE("a pulled version is kept until its pulls are closed", "[delay]") {
  Pullable state;
  PulledVersions pulled(true);
  pulled.record(kOneWorker, Iteration(0), *state);
  pulled.record(kOther, Iteration(0), *state);
  CHECK(pulled.old_versions(*state) == 0);
  state.update(5);
  CHECK(pulled.old_versions(*state) == 1);
  pulled.record(kOneWorker, Iteration(1), *state);
  CHECK(pulled.old_versions(*state) == 1);
  REQUIRE(pulled.find(kOneWorker, Version(0)));
  CHECK(pulled.find(kOneWorker, Version(0))->weights.as_floats()[3] == 0);
  CHECK(pulled.find(kOneWorker, Version(5))->progress == 1.25);
  CHECK_FALSE(pulled.find(kOther, Version(5)));
  CHECK_FALSE(pulled.find(WorkerId(9), Version(0)));
  pulled.forget(kOneWorker, Iteration(0));
  CHECK_FALSE(pulled.find(kOneWorker, Version(0)));
  CHECK(pulled.find(kOneWorker, Version(5)));
  CHECK(pulled.old_versions(*state) == 1);  // 0 is still the second worker's
  pulled.forget(kOther, Iteration(7));
  CHECK(pulled.old_versions(*state) == 0);
  pulled.forget(WorkerId(9), Iteration(7));  // an unknown worker changes nothing
}

TEST_CASE("a prefetch of the same version outlives the first push", "[delay]") {
  Pullable state;
  PulledVersions pulled(true);
  pulled.record(kOneWorker, Iteration(0), *state);
  pulled.record(kOneWorker, Iteration(1), *state);
  pulled.forget(kOneWorker, Iteration(0));
  CHECK(pulled.find(kOneWorker, Version(0)));
  pulled.forget(kOneWorker, Iteration(1));
  CHECK_FALSE(pulled.find(kOneWorker, Version(0)));
}

TEST_CASE("a repeated pull replaces the one before", "[delay]") {
  Pullable state;
  PulledVersions pulled(true);
  for (std::int64_t version = 0; version < 50; ++version) {
    state.update(version);
    pulled.record(kOneWorker, Iteration(3), *state);
  }
  state.update(50);
  CHECK(pulled.old_versions(*state) == 1);
  CHECK(pulled.find(kOneWorker, Version(49)));
}

TEST_CASE("without weights only the progress of a pull is kept", "[delay]") {
  Pullable state;
  PulledVersions pulled(false);
  pulled.record(kOneWorker, Iteration(0), *state);
  CHECK_FALSE(pulled.find(kOneWorker, Version(0))->weights);
  state.update(1);
  CHECK(pulled.old_versions(*state) == 0);
}

TEST_CASE("a worker has a limited number of open pulls", "[delay]") {
  Pullable state;
  PulledVersions pulled(false);
  for (std::int64_t number = 0; number <= limits::kMaxOpenPulls; ++number) {
    state.update(number);
    pulled.record(kOneWorker, Iteration(number), *state);
  }
  CHECK_FALSE(pulled.find(kOneWorker, Version(0)));
  CHECK(pulled.find(kOneWorker, Version(1)));
}

TEST_CASE("a new standby has the pulled versions of its primary", "[delay]") {
  Pullable state;
  PulledVersions primary(true), standby(true);
  primary.record(kOneWorker, Iteration(0), *state);
  primary.record(kOther, Iteration(4), *state);
  state.update(2);
  primary.record(kOther, Iteration(5), *state);
  const auto saved = primary.save(state.block());
  std::size_t with_weights = 0;
  for (const auto& one : saved) with_weights += one.weights.data ? 1 : 0;
  CHECK(saved.size() == 3);
  CHECK(with_weights == 2);  // each version is sent once
  const auto on = make_executor({});
  standby.restore(saved, **on);
  for (const auto& [worker, version] : {std::pair(kOneWorker, 0), {kOther, 0}, {kOther, 2}}) {
    const auto* there = standby.find(worker, Version(version));
    REQUIRE(there);
    CHECK(there->weights.as_floats()[0] == static_cast<float>(version));
    CHECK(there->progress == version / 4.0);
  }
  CHECK(standby.old_versions(*state) == primary.old_versions(*state));
  standby.forget(kOther, Iteration(4));
  CHECK_FALSE(standby.find(kOther, Version(0)));
}
