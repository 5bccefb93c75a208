#include "models/datasets/npy.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "core/limits.hpp"
#include "core/memory.hpp"
#include "core/text.hpp"
#include "models/datasets/byte_images.hpp"
#include "models/datasets/file.hpp"
#include "models/datasets/preprocessing.hpp"
#include "models/datasets/table.hpp"
#include "models/datasets/test_share.hpp"

namespace leeway {

namespace {

/// Features and labels of one set, or of both before the test set is drawn.
struct NpyPair {
  NpyArray features, labels;
};

/// Samples of a pair that are training or test samples.
struct NpySamples {
  const NpyPair& pair;
  std::vector<std::size_t> rows;
};

std::string sample_shape_text(const NpyArray& array) {
  return concat(Shape(std::span<const std::int64_t>(array.extents).subspan(1)));
}

Expected<NpyArray> read_npy(const std::string& path, const char* key) {
  auto bytes = read_unpacked(path, concat("give ", key, " an existing file"));
  if (!bytes) return bytes.error();
  return parse_npy(std::move(*bytes), path);
}

Status check_labels(const NpyArray& labels, bool regression, int classes) {
  if (labels.sample_values() != 1)
    return Error{concat(labels.name, ": has labels of shape ", sample_shape_text(labels),
                        "; save one label per sample")};
  for (std::size_t i = 0; i < static_cast<std::size_t>(labels.samples()); ++i) {
    const double value = labels[i];
    const bool fits = regression
                          ? std::abs(value) <= std::numeric_limits<float>::max()
                          : value >= 0 && value == std::floor(value) && value < limits::kMaxClasses;
    if (!fits)
      return Error{concat(labels.name, ": label ", i, " is ", value,
                          regression ? ", which is no finite float; correct it"
                                     : ", which is not a class; number the classes from 0, or set "
                                       "data.npy.regression")};
    if (classes > 0 && value >= classes)
      return Error{concat(labels.name, ": label ", i, " is ", value,
                          ", but the training labels are 0 to ", classes - 1,
                          "; give test labels of the same classes")};
  }
  return {};
}

Status check_features(const NpyArray& features) {
  const std::int64_t values = features.sample_values();
  if (values > std::int64_t{limits::kMaxSampleValues})
    return Error{concat(features.name, ": has samples of ", values, " numbers, at most ",
                        limits::kMaxSampleValues, " are possible; save smaller samples")};
  const auto& extents = features.extents;
  const bool channels_last = features.type == NpyArray::Type::u1 && extents.size() == 4 &&
                             extents[1] > 4 && (extents[3] == 1 || extents[3] == 3);
  if (channels_last)
    return Error{concat(features.name, ": has images of ", sample_shape_text(features),
                        ", with the channels last; save x.transpose(0, 3, 1, 2)")};
  if (features.type != NpyArray::Type::f4 && features.type != NpyArray::Type::f8) return {};
  for (std::size_t i = 0; i < static_cast<std::size_t>(features.samples() * values); ++i)
    if (!(std::abs(features[i]) <= std::numeric_limits<float>::max()))
      return Error{concat(features.name, ": sample ", i / static_cast<std::size_t>(values),
                          " has the value ", features[i],
                          ", which is no finite float; correct it, for example with "
                          "np.nan_to_num")};
  return {};
}

/// `classes` of the training data, or 0 for training data.
Expected<NpyPair> read_pair(const std::string& features, const char* features_key,
                            const std::string& labels, const char* labels_key, bool regression,
                            int classes) {
  auto x = read_npy(features, features_key);
  if (!x) return x.error();
  auto y = read_npy(labels, labels_key);
  if (!y) return y.error();
  if (x->samples() != y->samples())
    return Error{concat(y->name, ": has ", y->samples(), " labels for the ", x->samples(),
                        " samples of ", x->name, "; give the labels that belong to them")};
  Status status = check_labels(*y, regression, classes);
  if (status) status = check_features(*x);
  if (!status) return status.error();
  return NpyPair{std::move(*x), std::move(*y)};
}

int classes_of(const NpyArray& labels) {
  double most = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(labels.samples()); ++i)
    most = std::max(most, labels[i]);
  return static_cast<int>(most) + 1;
}

/// (N, H, W) is (N, 1, H, W); (N) is (N, 1).
Shape shape_of_sample(const NpyArray& features) {
  auto extents = features.extents;
  if (extents.size() == 3) extents.insert(extents.begin() + 1, 1);
  if (extents.size() == 1) extents.push_back(1);
  return Shape(std::span<const std::int64_t>(extents).subspan(1));
}

bool are_byte_images(const NpyArray& features, const plan::Npy& source) {
  return features.type == NpyArray::Type::u1 && features.extents.size() >= 3 && source.normalize &&
         !source.regression;
}

ByteImages::Content bytes_of(const NpySamples& samples, int classes) {
  const NpyArray& x = samples.pair.features;
  const auto values = static_cast<std::size_t>(x.sample_values());
  ByteImages::Content content{shape_of_sample(x), {}, {}, classes};
  content.pixels.reserve(samples.rows.size() * values);
  const auto* const pixels = reinterpret_cast<const std::uint8_t*>(x.file.data() + x.begin);
  for (const std::size_t row : samples.rows) {
    content.pixels.insert(content.pixels.end(), pixels + row * values, pixels + (row + 1) * values);
    content.labels.push_back(static_cast<std::int32_t>(samples.pair.labels[row]));
  }
  return content;
}

struct MeanDeviation {
  double mean = 0, deviation = 1;
};

/// Of the values first, first + step, ... of each sample.
MeanDeviation measure_values(const NpySamples& samples, std::size_t first, std::size_t step) {
  const NpyArray& x = samples.pair.features;
  const auto values = static_cast<std::size_t>(x.sample_values());
  const std::size_t per_sample = (values - first + step - 1) / step;
  const double count = static_cast<double>(samples.rows.size()) * static_cast<double>(per_sample);
  // Sums relative to a value are exact for constant features.
  const double origin = x[samples.rows[0] * values + first];
  double mean = 0, variance = 0;
  for (const std::size_t row : samples.rows)
    for (std::size_t i = first; i < values; i += step)
      mean += (x[row * values + i] - origin) / count;
  mean += origin;
  for (const std::size_t row : samples.rows)
    for (std::size_t i = first; i < values; i += step) {
      const double difference = x[row * values + i] - mean;
      variance += difference * difference / count;
    }
  return {mean, variance > 0 ? std::sqrt(variance) : 1};
}

/// Columns for tables, else one mean and deviation for all values.
void describe_values(const NpySamples& train, bool normalize, Preprocessing& out) {
  const auto values = static_cast<std::size_t>(out.shape.count());
  if (out.shape.rank() == 1) {
    out.kind = Preprocessing::Kind::table;
    out.label = "label";
    out.header = false;
    for (std::size_t i = 0; i < values; ++i) {
      const auto found = normalize ? measure_values(train, i, values) : MeanDeviation{};
      out.columns.push_back({std::to_string(i + 1), {}, found.mean, found.deviation, std::nullopt});
    }
  } else {
    out.kind = Preprocessing::Kind::image;
    const auto found = normalize ? measure_values(train, 0, 1) : MeanDeviation{};
    out.pixel_mean = found.mean;
    out.pixel_deviation = found.deviation;
  }
}

std::shared_ptr<const Dataset> table_of(const NpySamples& samples, int classes,
                                        const Preprocessing& how) {
  const NpyArray& x = samples.pair.features;
  const auto values = static_cast<std::size_t>(how.shape.count());
  const Preprocessing::Column all{"", {}, how.pixel_mean, how.pixel_deviation, std::nullopt};
  Table::Content content;
  content.features = how.shape.count();
  content.shape = how.shape;
  content.classes = classes;
  content.x.reserve(samples.rows.size() * values);
  for (const std::size_t row : samples.rows) {
    for (std::size_t i = 0; i < values; ++i)
      content.x.push_back((how.columns.empty() ? all : how.columns[i]).scaled(x[row * values + i]));
    const double label = samples.pair.labels[row];
    if (classes > 0) {
      content.labels.push_back(static_cast<std::int32_t>(label));
    } else {
      content.targets.push_back(static_cast<float>(label));
    }
  }
  return std::make_shared<Table>(std::move(content));
}

Expected<TrainTest> make_npy(const NpySamples& train, const NpySamples& test,
                             const plan::Npy& source, int classes, Preprocessing::Split split) {
  auto how = std::make_shared<Preprocessing>();
  how->split = std::move(split);
  how->shape = shape_of_sample(train.pair.features);
  for (int label = 0; label < classes; ++label) how->classes.push_back(std::to_string(label));
  const bool bytes = are_byte_images(train.pair.features, source);
  const std::uint64_t values =
      (train.rows.size() + test.rows.size()) * static_cast<std::uint64_t>(how->shape.count());
  if (Status fits = check_memory(train.pair.features.name, "its samples",
                                 values * (bytes ? 1 : sizeof(float)), kTooLargeAdvice);
      !fits)
    return fits.error();
  if (bytes) return make_byte_images(bytes_of(train, classes), bytes_of(test, classes), *how);
  describe_values(train, source.normalize, *how);
  return TrainTest{table_of(train, classes, *how), table_of(test, classes, *how), how};
}

std::vector<std::size_t> all_samples(const NpyPair& pair) {
  std::vector<std::size_t> rows(static_cast<std::size_t>(pair.features.samples()));
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  return rows;
}

}  // namespace

Expected<TrainTest> load_npy(const plan::Npy& source, std::uint64_t seed) {
  const auto train = read_pair(source.features, "data.npy.features", source.labels,
                               "data.npy.labels", source.regression, 0);
  if (!train) return train.error();
  const int classes = source.regression ? 0 : classes_of(train->labels);
  if (source.test_features.empty()) {
    auto share = draw_test_share(train->features.samples(), source.test_share, seed, "data.npy");
    if (!share) return share.error();
    return make_npy({*train, std::move(share->train)}, {*train, std::move(share->test)}, source,
                    classes, {"", source.test_share, seed});
  }
  const auto test = read_pair(source.test_features, "data.npy.test_features", source.test_labels,
                              "data.npy.test_labels", source.regression, classes);
  if (!test) return test.error();
  const auto &x = train->features, &test_x = test->features;
  if (x.type != test_x.type || !std::equal(x.extents.begin() + 1, x.extents.end(),
                                           test_x.extents.begin() + 1, test_x.extents.end()))
    return Error{concat(test_x.name, ": has samples of ", sample_shape_text(test_x),
                        ", but the training samples are ", sample_shape_text(x),
                        x.type == test_x.type ? "" : ", of another type",
                        "; give test samples of the same shape and type")};
  return make_npy({*train, all_samples(*train)}, {*test, all_samples(*test)}, source, classes,
                  {source.test_features, 0, 0});
}

}  // namespace leeway
