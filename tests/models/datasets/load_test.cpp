#include "models/datasets/load.hpp"

#include <rapidcheck/catch.h>

#include <algorithm>

#include "models/datasets/permutation.hpp"
#include "models/datasets/table.hpp"
#include "tests/models/datasets/files.hpp"

namespace leeway {
namespace {

using Catch::Matchers::Contains;

std::shared_ptr<const Dataset> table(std::int64_t features, int classes, std::size_t samples) {
  Table::Content content;
  content.features = features;
  content.classes = classes;
  content.x.resize(samples * static_cast<std::size_t>(features));
  (classes > 0 ? content.labels.resize(samples) : content.targets.resize(samples));
  return std::make_shared<Table>(std::move(content));
}

TEST_CASE("each kind of data source in a plan is loaded") {
  const test::TemporaryFolder folder;
  plan::Csv csv;
  csv.train = folder.write("a.csv", "a,label\n1,0\n2,1\n3,0\n4,1\n5,0\n");
  REQUIRE(load_data(csv, 1));
  CHECK(load_data(csv, 1)->train->size() == 4);
  CHECK(load_data(plan::Synthetic{30, 20, plan::Line{}}, 1)->test->size() == 20);
  CHECK_THAT(load_data(plan::Idx{"/no", "/no", "/no", "/no"}, 1).error().text, Contains("/no"));
  CHECK_THAT(load_data(plan::FashionMnist{"/no"}, 1).error().text, Contains("apt-get install"));
}

TEST_CASE("the factory of a registered data set receives the run's seed") {
  std::uint64_t seen = 0;
  register_data("mine", [&](std::uint64_t seed) -> Expected<TrainTest> {
    seen = seed;
    return TrainTest{table(3, 2, 5), table(3, 2, 4)};
  });
  const auto data = load_data(plan::CustomData{"mine"}, 17);
  REQUIRE(data);
  CHECK(data->train->size() == 5);
  CHECK(seen == 17);
  CHECK(load_data(plan::CustomData{"mien"}, 1).error().text ==
        "data.custom \"mien\": no such data set; register it with register_data; did you mean "
        "\"mine\"?");
}

TEST_CASE("a custom data set that contradicts itself is refused") {
  const auto error_of = [](TrainTest data) {
    register_data("odd", [=](std::uint64_t) -> Expected<TrainTest> { return data; });
    return load_data(plan::CustomData{"odd"}, 1).error().text;
  };
  CHECK_THAT(error_of({table(3, 2, 5), nullptr}), Contains("has no test set"));
  CHECK_THAT(error_of({table(3, 2, 0), table(3, 2, 1)}), Contains("has 0 training and 1 test"));
  CHECK_THAT(error_of({table(3, 2, 5), table(4, 2, 5)}), Contains("make them agree"));
  CHECK_THAT(error_of({table(3, 2, 5), table(3, 0, 5)}), Contains("make them agree"));
  register_data("odd", [](std::uint64_t) -> Expected<TrainTest> { return Error{"gone"}; });
  CHECK(load_data(plan::CustomData{"odd"}, 1).error().text == "gone");
}

TEST_CASE("a table with inconsistent sizes or labels is a bug") {
  Table::Content content{2, {1, 2, 3}, 2, {0, 1}, {}};
  CHECK_THROWS_AS(Table(content), CheckFailed);
  content.x.push_back(4);
  CHECK_NOTHROW(Table(content));
  content.labels[1] = 2;
  CHECK_THROWS_AS(Table(content), CheckFailed);
}

TEST_CASE("an epoch visits each sample once, in an order that depends on seed and epoch") {
  rc::prop("permutation", [] {
    const auto size = *rc::gen::inRange<std::int64_t>(0, 300);
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    auto order = epoch_permutation(size, seed, Epoch(2));
    RC_ASSERT(order == epoch_permutation(size, seed, Epoch(2)));
    if (size >= 100) {
      RC_ASSERT(order != epoch_permutation(size, seed, Epoch(3)));
      RC_ASSERT(order != epoch_permutation(size, seed + 1, Epoch(2)));
    }
    std::sort(order.begin(), order.end());
    for (std::int64_t i = 0; i < size; ++i) RC_ASSERT(order[static_cast<std::size_t>(i)] == i);
  });
}

TEST_CASE("all orders of a small epoch are about equally frequent") {
  std::map<std::vector<std::int64_t>, int> count;
  for (int epoch = 0; epoch < 24'000; ++epoch) ++count[epoch_permutation(4, 5, Epoch(epoch))];
  CHECK(count.size() == 24);
  for (const auto& [order, times] : count) CHECK(std::abs(times - 1000) < 150);  // 4.7 deviations
}

}  // namespace
}  // namespace leeway
