#include "models/datasets/synthetic.hpp"

#include <cmath>
#include <limits>
#include <memory>

#include "core/rng.hpp"
#include "core/text.hpp"
#include "models/datasets/preprocessing.hpp"
#include "models/datasets/streams.hpp"
#include "models/datasets/table.hpp"

namespace leeway {

namespace {

/// The largest generated data; larger data has to come from files.
constexpr double kMaxBytes = 8e9;

Status check_count(const char* key, std::uint32_t count) {
  if (count > 0 && count <= std::numeric_limits<std::int32_t>::max()) return {};
  return Error{concat("data.synthetic.", key, ": ", count, " is not allowed; give 1 to ",
                      std::numeric_limits<std::int32_t>::max())};
}

Status check_number(const char* key, double number) {
  if (std::abs(number) <= std::numeric_limits<float>::max()) return {};
  return Error{concat("data.synthetic.", key, ": ", number,
                      " is not allowed; give a finite number within the range of a float")};
}

Status check_memory(const plan::Synthetic& source, const plan::Clusters& kind) {
  const double rows = double{1} * source.samples + source.test_samples + kind.classes;
  const double bytes = rows * kind.features * sizeof(float);
  if (bytes <= kMaxBytes) return {};
  return Error{concat("data.synthetic: ", source.samples, " + ", source.test_samples,
                      " samples of ", kind.features, " features and ", kind.classes,
                      " classes need ", bytes / 1e9, " GB; give fewer, at most ", kMaxBytes / 1e9,
                      " GB")};
}

Status check(const plan::Synthetic& source, const plan::Line& line) {
  (void)source;
  Status status = check_number("line.slope", line.slope);
  if (status) status = check_number("line.intercept", line.intercept);
  if (status) status = check_number("line.noise", line.noise);
  return status;
}

Status check(const plan::Synthetic& source, const plan::Clusters& kind) {
  Status status = check_count("clusters.classes", kind.classes);
  if (status) status = check_count("clusters.features", kind.features);
  if (status) status = check_number("clusters.spread", kind.spread);
  if (status) status = check_memory(source, kind);
  return status;
}

std::shared_ptr<const Dataset> draw(const plan::Line& line, std::uint32_t samples, Rng rng) {
  Table::Content content;
  content.features = 1;
  content.x.reserve(samples);
  content.targets.reserve(samples);
  for (std::uint32_t i = 0; i < samples; ++i) {
    const double x = 2 * rng.uniform() - 1;
    const double y = line.slope * x + line.intercept + line.noise * rng.normal();
    content.x.push_back(static_cast<float>(x));
    content.targets.push_back(static_cast<float>(y));
  }
  return std::make_shared<Table>(std::move(content));
}

/// (classes, features): a normal vector scaled to length `spread` is uniform on the sphere.
std::vector<float> draw_centers(const plan::Clusters& kind, Rng rng) {
  std::vector<float> centers;
  centers.reserve(std::size_t{kind.classes} * kind.features);
  std::vector<double> direction(kind.features);
  for (std::uint32_t c = 0; c < kind.classes; ++c) {
    double square = 0;
    while (square == 0) {
      for (double& v : direction) {
        v = rng.normal();
        square += v * v;
      }
    }
    const double scale = kind.spread / std::sqrt(square);
    for (const double v : direction) centers.push_back(static_cast<float>(v * scale));
  }
  return centers;
}

std::shared_ptr<const Dataset> draw(const plan::Clusters& kind, const std::vector<float>& centers,
                                    std::uint32_t samples, Rng rng) {
  Table::Content content;
  content.features = kind.features;
  content.classes = static_cast<int>(kind.classes);
  content.x.reserve(std::size_t{samples} * kind.features);
  content.labels.reserve(samples);
  for (std::uint32_t i = 0; i < samples; ++i) {
    const auto label = rng.below(kind.classes);
    content.labels.push_back(static_cast<std::int32_t>(label));
    const float* const center = centers.data() + label * kind.features;
    for (std::uint32_t f = 0; f < kind.features; ++f)
      content.x.push_back(center[f] + static_cast<float>(rng.normal()));
  }
  return std::make_shared<Table>(std::move(content));
}

TrainTest draw_both(const plan::Synthetic& source, const plan::Line& line, std::uint64_t seed) {
  return {draw(line, source.samples, Rng::stream(seed, streams::kTrainSamples)),
          draw(line, source.test_samples, Rng::stream(seed, streams::kTestSamples))};
}

TrainTest draw_both(const plan::Synthetic& source, const plan::Clusters& kind, std::uint64_t seed) {
  const auto centers = draw_centers(kind, Rng::stream(seed, streams::kClusterCenters));
  return {draw(kind, centers, source.samples, Rng::stream(seed, streams::kTrainSamples)),
          draw(kind, centers, source.test_samples, Rng::stream(seed, streams::kTestSamples))};
}

/// Columns are numbered, and not scaled.
std::shared_ptr<const Preprocessing> describe_generated(const Dataset& data, std::uint64_t seed) {
  auto out = std::make_shared<Preprocessing>();
  out->shape = data.sample_shape();
  out->split.seed = seed;
  out->label = "label";
  out->header = false;
  for (int label = 0; label < data.classes(); ++label)
    out->classes.push_back(std::to_string(label));
  for (std::int64_t column = 1; column <= out->shape.count(); ++column)
    out->columns.push_back({std::to_string(column), {}, 0, 1, std::nullopt});
  return out;
}

}  // namespace

Expected<TrainTest> make_synthetic(const plan::Synthetic& source, std::uint64_t seed) {
  Status status = check_count("samples", source.samples);
  if (status) status = check_count("test_samples", source.test_samples);
  if (status)
    status = std::visit([&](const auto& kind) { return check(source, kind); }, source.kind);
  if (!status) return status.error();
  TrainTest data =
      std::visit([&](const auto& kind) { return draw_both(source, kind, seed); }, source.kind);
  data.preprocessing = describe_generated(*data.train, seed);
  return data;
}

}  // namespace leeway
