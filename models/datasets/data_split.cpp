#include "models/datasets/data_split.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/check.hpp"
#include "core/rng.hpp"
#include "core/text.hpp"
#include "models/datasets/permutation.hpp"
#include "models/datasets/streams.hpp"

namespace leeway {
namespace {

using Samples = std::vector<std::int64_t>;

/// The random stream of a split; `purpose` numbers those of a split.
Rng stream_of(std::uint64_t seed, std::uint64_t purpose) {
  return Rng::stream(seed, streams::kDataSplit, purpose);
}

Samples shuffled(std::int64_t size, std::uint64_t seed) {
  return permutation(size, stream_of(seed, 0));
}

/// The label of each sample.
std::vector<std::int32_t> labels_of(const Dataset& data) {
  std::vector<std::int32_t> labels(static_cast<std::size_t>(data.size()));
  Samples all(labels.size());
  std::iota(all.begin(), all.end(), std::int64_t{0});
  data.gather_labels(all, labels.data(), nullptr);
  return labels;
}

/// The first of `count` items that belongs to piece `piece` of `pieces` equal ones.
std::int64_t begin_of(std::int64_t piece, std::int64_t count, std::int64_t pieces) {
  return count / pieces * piece + count % pieces * piece / pieces;
}

DataSplit joined(const std::vector<Samples>& shares) {
  DataSplit split;
  for (const Samples& share : shares) {
    split.begins.push_back(static_cast<std::int64_t>(split.samples.size()));
    split.samples.insert(split.samples.end(), share.begin(), share.end());
  }
  split.begins.push_back(static_cast<std::int64_t>(split.samples.size()));
  return split;
}

std::vector<Samples> split_evenly(const Dataset& data, std::int64_t count, std::uint64_t seed) {
  const Samples all = shuffled(data.size(), seed);
  std::vector<Samples> shares;
  for (std::int64_t share = 0; share < count; ++share)
    shares.emplace_back(all.begin() + begin_of(share, data.size(), count),
                        all.begin() + begin_of(share + 1, data.size(), count));
  return shares;
}

/// A draw of the gamma distribution with this shape and scale 1. Source: Marsaglia and Tsang, "A
/// Simple Method for Generating Gamma Variables", ACM TOMS 2000; shapes below 1 by its section 6.
double gamma(double shape, Rng& rng) {
  if (shape < 1) return gamma(shape + 1, rng) * std::pow(rng.uniform(), 1 / shape);
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = rng.normal(), v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(1 - rng.uniform()) < x * x / 2 + d - d * v + d * std::log(v))
      return d * v;
  }
}

/// One draw of a symmetric Dirichlet distribution.
std::vector<double> dirichlet_fractions(double alpha, std::int64_t count, Rng& rng) {
  std::vector<double> fractions(static_cast<std::size_t>(count));
  for (double& fraction : fractions) fraction = gamma(alpha, rng);
  // With a tiny alpha all draws may round to 0. The limit is one share that gets all.
  if (std::ranges::all_of(fractions, [](double fraction) { return fraction == 0; }))
    fractions[rng.below(fractions.size())] = 1;
  const double sum = std::accumulate(fractions.begin(), fractions.end(), 0.0);
  for (double& fraction : fractions) fraction /= sum;
  return fractions;
}

std::vector<Samples> split_by_classes(const Dataset& data, double alpha, std::int64_t count,
                                      std::uint64_t seed) {
  const auto labels = labels_of(data);
  std::vector<Samples> classes(static_cast<std::size_t>(data.classes()));
  for (const std::int64_t sample : shuffled(data.size(), seed))
    classes[static_cast<std::size_t>(labels[static_cast<std::size_t>(sample)])].push_back(sample);
  Rng rng = stream_of(seed, 1);
  std::vector<Samples> shares(static_cast<std::size_t>(count));
  for (const Samples& one : classes) {
    const auto fractions = dirichlet_fractions(alpha, count, rng);
    double fraction = 0;  // of the shares so far
    std::size_t begin = 0;
    for (std::size_t share = 0; share < shares.size(); ++share) {
      fraction += fractions[share];
      const auto size = static_cast<double>(one.size());
      const std::size_t end = share + 1 == shares.size()
                                  ? one.size()
                                  : static_cast<std::size_t>(std::min(size, fraction * size));
      const auto from = one.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto to = one.begin() + static_cast<std::ptrdiff_t>(std::max(begin, end));
      shares[share].insert(shares[share].end(), from, to);
      begin = std::max(begin, end);
    }
  }
  return shares;
}

std::vector<Samples> split_by_labels(const Dataset& data, std::int64_t each, std::int64_t count,
                                     std::uint64_t seed) {
  const auto labels = labels_of(data);
  Samples all = shuffled(data.size(), seed);
  std::ranges::stable_sort(
      all, {}, [&](std::int64_t sample) { return labels[static_cast<std::size_t>(sample)]; });
  const Samples pieces = permutation(each * count, stream_of(seed, 1));
  std::vector<Samples> shares(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    Samples& share = shares[i % shares.size()];
    const auto total = static_cast<std::int64_t>(pieces.size());
    share.insert(share.end(), all.begin() + begin_of(pieces[i], data.size(), total),
                 all.begin() + begin_of(pieces[i] + 1, data.size(), total));
  }
  return shares;
}

}  // namespace

std::uint32_t DataSplit::share_of(std::int64_t position) const {
  return static_cast<std::uint32_t>(std::ranges::upper_bound(begins, position) - begins.begin() -
                                    1);
}

Status check_split(const Dataset& data, const plan::SplitData& split, std::uint32_t shares) {
  const auto* pieces = std::get_if<plan::LabelSplit>(&split);
  const std::int64_t each = pieces ? pieces->labels : 1;
  if (each > data.size() / shares)
    return Error{concat("split_data: ", shares, " shares of at least ", each,
                        each == 1 ? " sample" : " samples", " need more than the ", data.size(),
                        " samples of the data; give ", pieces ? "fewer pieces, or " : "",
                        "fewer workers")};
  if (std::holds_alternative<plan::IidSplit>(split)) return {};
  if (data.classes() > 0 && data.label_count() == 1) return {};
  return Error{
      "split_data: the samples have no labels by which they could be divided; give "
      "--split-data iid"};
}

Expected<DataSplit> split_data(const Dataset& data, const plan::SplitData& split,
                               std::uint32_t shares, std::uint64_t seed) {
  LW_CHECK(bool(check_split(data, split, shares)), shares);
  std::vector<Samples> samples;
  if (const auto* dirichlet = std::get_if<plan::DirichletSplit>(&split))
    samples = split_by_classes(data, dirichlet->alpha, shares, seed);
  else if (const auto* pieces = std::get_if<plan::LabelSplit>(&split))
    samples = split_by_labels(data, pieces->labels, shares, seed);
  else
    samples = split_evenly(data, shares, seed);
  if (const auto none = std::ranges::find_if(samples, &Samples::empty); none != samples.end())
    return Error{concat("split_data: share ", none - samples.begin(), " of ", shares,
                        " has no samples; give a larger alpha, fewer workers, or another --seed")};
  return joined(samples);
}

}  // namespace leeway
