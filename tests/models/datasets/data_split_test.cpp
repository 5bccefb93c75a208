#include "models/datasets/data_split.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "models/datasets/load.hpp"

using namespace leeway;

namespace {

std::shared_ptr<const Dataset> clusters(std::uint32_t samples) {
  auto data = load_data(plan::Synthetic{samples, 10, plan::Clusters{5, 3, 3}}, 1);
  REQUIRE(data);
  return data->train;
}

DataSplit split_of(const Dataset& data, const plan::SplitData& split, std::uint32_t shares,
                   std::uint64_t seed = 1) {
  auto made = split_data(data, split, shares, seed);
  INFO((made ? "" : made.error().text));
  REQUIRE(made);
  return std::move(*made);
}

std::vector<std::int64_t> share_of(const DataSplit& split, std::uint32_t share) {
  return {split.samples.begin() + split.begins[share],
          split.samples.begin() + split.begins[share + 1]};
}

std::set<std::int32_t> labels_in(const Dataset& data, const std::vector<std::int64_t>& samples) {
  std::vector<std::int32_t> labels(samples.size());
  data.gather_labels(samples, labels.data(), nullptr);
  return {labels.begin(), labels.end()};
}

/// The mean, over the data shares, of the largest fraction of a class.
double largest_fraction(const Dataset& data, const DataSplit& split) {
  double sum = 0;
  for (std::uint32_t share = 0; share < split.shares(); ++share) {
    const auto samples = share_of(split, share);
    std::vector<std::int32_t> labels(samples.size());
    data.gather_labels(samples, labels.data(), nullptr);
    std::vector<double> counts(static_cast<std::size_t>(data.classes()));
    for (const std::int32_t label : labels) ++counts[static_cast<std::size_t>(label)];
    sum += *std::ranges::max_element(counts) / static_cast<double>(samples.size());
  }
  return sum / static_cast<double>(split.shares());
}

}  // namespace

TEST_CASE("each sample is in one data share, which depends on the seed only", "[split]") {
  const auto data = clusters(1000);
  for (const plan::SplitData& kind :
       {plan::SplitData(plan::IidSplit{}), plan::SplitData(plan::DirichletSplit{0.5}),
        plan::SplitData(plan::LabelSplit{2})}) {
    CAPTURE(kind.index());
    const DataSplit split = split_of(*data, kind, 7);
    CHECK(split.shares() == 7);
    CHECK(split.begins.back() == 1000);
    auto sorted = split.samples;
    std::ranges::sort(sorted);
    for (std::int64_t i = 0; i < 1000; ++i) CHECK(sorted[static_cast<std::size_t>(i)] == i);
    CHECK(split_of(*data, kind, 7).samples == split.samples);
    CHECK(split_of(*data, kind, 7, 2).samples != split.samples);
  }
}

TEST_CASE("data shares differ the more, the smaller alpha is", "[split]") {
  const auto data = clusters(5000);
  const double iid = largest_fraction(*data, split_of(*data, plan::IidSplit{}, 10));
  const double mild = largest_fraction(*data, split_of(*data, plan::DirichletSplit{10}, 10));
  const double strong = largest_fraction(*data, split_of(*data, plan::DirichletSplit{0.3}, 10));
  CHECK(iid < 0.25);  // of five classes
  CHECK(mild > iid);
  CHECK(mild < 0.45);
  CHECK(strong > 0.55);
}

TEST_CASE("pieces by label have equal sizes and few labels", "[split]") {
  const auto data = clusters(1000);
  const DataSplit split = split_of(*data, plan::LabelSplit{1}, 10);
  for (std::uint32_t share = 0; share < 10; ++share) {
    CHECK(share_of(split, share).size() == 100);
    CHECK(labels_in(*data, share_of(split, share)).size() <= 2);  // a piece may cross a border
  }
}

TEST_CASE("data shares without samples, and data without labels, are refused", "[split]") {
  const auto data = clusters(20);
  const auto refusal = [](const Dataset& of, const plan::SplitData& split, std::uint32_t shares) {
    if (const Status valid = check_split(of, split, shares); !valid) return valid.error().text;
    const auto made = split_data(of, split, shares, 1);
    return made ? std::string() : made.error().text;
  };
  CHECK(refusal(*data, plan::IidSplit{}, 21).find("need more than the 20 samples") !=
        std::string::npos);
  CHECK(refusal(*data, plan::DirichletSplit{0.001}, 10).find("a larger alpha") !=
        std::string::npos);
  CHECK(refusal(*data, plan::LabelSplit{3}, 10).find("10 shares of at least 3 samples need more") !=
        std::string::npos);
  const auto numbers = load_data(plan::Synthetic{20, 10, plan::Line{}}, 1);
  REQUIRE(numbers);
  CHECK(refusal(*numbers->train, plan::LabelSplit{1}, 2).find("give --split-data iid") !=
        std::string::npos);
  CHECK(refusal(*numbers->train, plan::IidSplit{}, 2).empty());
}
