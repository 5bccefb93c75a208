#include "models/datasets/csv.hpp"

#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <span>

#include "core/memory.hpp"
#include "core/text.hpp"
#include "models/datasets/file.hpp"
#include "models/datasets/preprocessing.hpp"
#include "models/datasets/table.hpp"
#include "models/datasets/test_share.hpp"

namespace leeway {

namespace {

/// Mean, deviation and fill value of each column of numbers, over the values that these rows have.
/// A column that is constant in these rows keeps its scale.
struct FeatureStatistics {
  std::vector<double> mean, deviation;
};

FeatureStatistics measure_features(const CsvTable& table, std::span<const std::size_t> rows) {
  const std::size_t features = table.features.size();
  FeatureStatistics out{std::vector<double>(features, 0), std::vector<double>(features, 0)};
  // Sums relative to a value are exact for constant columns.
  std::vector<double> origin(features, 0), count(features, 0);
  for (const std::size_t row : rows) {
    const double* const x = table.x.data() + row * features;
    for (std::size_t f = 0; f < features; ++f) {
      if (std::isnan(x[f])) continue;
      if (count[f] == 0) origin[f] = x[f];
      ++count[f];
    }
  }
  for (const std::size_t row : rows) {
    const double* const x = table.x.data() + row * features;
    for (std::size_t f = 0; f < features; ++f)
      if (!std::isnan(x[f])) out.mean[f] += (x[f] - origin[f]) / count[f];
  }
  for (std::size_t f = 0; f < features; ++f) out.mean[f] += origin[f];
  for (const std::size_t row : rows) {
    const double* const x = table.x.data() + row * features;
    for (std::size_t f = 0; f < features; ++f) {
      if (std::isnan(x[f])) continue;
      const double difference = x[f] - out.mean[f];
      out.deviation[f] += difference * difference / count[f];
    }
  }
  for (double& value : out.deviation) value = value > 0 ? std::sqrt(value) : 1;
  return out;
}

std::shared_ptr<const Preprocessing> describe(const CsvTable& train,
                                              std::span<const std::size_t> rows,
                                              const plan::Csv& source, const CsvFormat& format,
                                              Preprocessing::Split how) {
  auto out = std::make_shared<Preprocessing>();
  out->kind = Preprocessing::Kind::table;
  out->split = std::move(how);
  out->label = train.label;
  out->classes = train.class_names;
  if (train.class_names.empty())
    for (int label = 0; label < train.classes; ++label)
      out->classes.push_back(std::to_string(label));
  out->separator = format.separator;
  out->header = format.header;
  FeatureStatistics measured;
  if (source.normalize || format.allow_missing) measured = measure_features(train, rows);
  std::int64_t width = 0;
  for (std::size_t f = 0; f < train.features.size(); ++f) {
    Preprocessing::Column column{train.features[f], train.values[f], 0, 1, std::nullopt};
    if (!column.is_text() && source.normalize) {
      column.mean = measured.mean[f];
      column.deviation = measured.deviation[f];
    }
    if (format.allow_missing) column.fill = column.is_text() ? 0 : measured.mean[f];
    width += column.width();
    out->columns.push_back(std::move(column));
  }
  out->shape = {width};
  return out;
}

/// Encodes the entry of a column: width() floats.
void encode(const Preprocessing::Column& column, double entry, float* x) {
  if (column.is_text())
    column.put_code(std::isnan(entry) ? -1 : static_cast<std::int64_t>(entry), x);
  else
    *x = column.scaled(std::isnan(entry) ? *column.fill : entry);
}

std::shared_ptr<const Dataset> make_table(const CsvTable& table, std::span<const std::size_t> rows,
                                          int classes, const Preprocessing& how) {
  const std::size_t features = table.features.size();
  Table::Content content;
  content.features = how.shape.count();
  content.classes = classes;
  content.x.resize(rows.size() * static_cast<std::size_t>(content.features));
  float* x = content.x.data();
  for (const std::size_t row : rows) {
    for (std::size_t f = 0; f < features; ++f) {
      encode(how.columns[f], table.x[row * features + f], x);
      x += how.columns[f].width();
    }
    if (classes > 0) {
      content.labels.push_back(static_cast<std::int32_t>(table.labels[row]));
    } else {
      content.targets.push_back(static_cast<float>(table.labels[row]));
    }
  }
  return std::make_shared<Table>(std::move(content));
}

std::vector<std::size_t> all_rows(std::size_t count) {
  std::vector<std::size_t> rows(count);
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  return rows;
}

/// Rows of one table that are training or test samples.
struct Rows {
  const CsvTable& table;
  std::span<const std::size_t> rows;
};

Expected<TrainTest> make_sets(const Rows& train, const Rows& test, const plan::Csv& source,
                              const CsvFormat& format, Preprocessing::Split how) {
  auto preprocessing = describe(train.table, train.rows, source, format, std::move(how));
  const std::uint64_t samples = train.rows.size() + test.rows.size();
  const auto width = static_cast<std::uint64_t>(preprocessing->shape.count());
  if (Status fits = check_memory(source.train, "its samples", samples * width * sizeof(float),
                                 kTooLargeAdvice);
      !fits)
    return fits.error();
  const int classes = train.table.classes;
  return TrainTest{make_table(train.table, train.rows, classes, *preprocessing),
                   make_table(test.table, test.rows, classes, *preprocessing), preprocessing};
}

Expected<CsvTable> read_csv(const std::string& path, const char* key, const CsvFormat& format) {
  const auto bytes = read_unpacked(path, concat("give ", key, " an existing file"));
  if (!bytes) return bytes.error();
  return parse_csv({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, path, format);
}

/// A separator of the plan: one character, or the word tab.
Expected<char> separator_of(const std::string& text) {
  if (text == "tab" || text == "\t" || text == "\\t") return '\t';
  constexpr std::string_view kAllowed = ",;|:!#$%&*/<=>?@^_`~";
  if (text.size() == 1 && kAllowed.find(text[0]) != std::string_view::npos) return text[0];
  return Error{concat("data.csv.separator: ", excerpt(text), " is not allowed; give one of ",
                      kAllowed, ", or tab")};
}

}  // namespace

Expected<TrainTest> load_csv(const plan::Csv& source, std::uint64_t seed) {
  const auto separator = separator_of(source.separator);
  if (!separator) return separator.error();
  CsvFormat format{source.label, source.regression, nullptr};
  format.separator = *separator;
  format.header = source.header;
  format.allow_missing = source.missing == plan::Missing::mean;
  format.text_columns = source.text_columns;
  const auto train = read_csv(source.train, "data.csv.train", format);
  if (!train) return train.error();
  if (source.test.empty()) {
    const auto set_aside =
        draw_test_share(std::ssize(train->labels), source.test_share, seed, "data.csv");
    if (!set_aside) return set_aside.error();
    return make_sets({*train, set_aside->train}, {*train, set_aside->test}, source, format,
                     {"", source.test_share, seed});
  }
  CsvFormat of_test = format;
  of_test.train = &*train;
  const auto test = read_csv(source.test, "data.csv.test", of_test);
  if (!test) return test.error();
  const auto train_rows = all_rows(train->labels.size());
  const auto test_rows = all_rows(test->labels.size());
  return make_sets({*train, train_rows}, {*test, test_rows}, source, format, {source.test, 0, 0});
}

}  // namespace leeway
