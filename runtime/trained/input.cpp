#include "runtime/trained/input.hpp"

#include <algorithm>

#include "core/text.hpp"
#include "models/datasets/csv_reader.hpp"
#include "models/datasets/file.hpp"
#include "models/datasets/idx.hpp"

namespace leeway {
namespace {

/// Reads the rows of a table.
class TableInput {
 public:
  TableInput(const TrainedModel& trained, std::string_view text, const std::string& name,
             Labels labels)
      : pre_(*trained.preprocessing),
        classes_(trained.classes()),
        reader_(text, name, pre_.separator),
        name_(name),
        labels_(labels),
        sample_(static_cast<std::size_t>(pre_.shape.count())) {}

  Expected<InputSamples> read() {
    if (reader_.at_end()) return Error{concat(name_, ": the file is empty; give rows")};
    CsvReader::Place place = reader_.place();
    auto next = read_line();
    if (!next) return next.error();
    columns_ = fields_.size();
    if (Status status = match_columns(place, pre_.header ? fields_ : numbered()); !status)
      return status.error();
    if (pre_.header) {
      if (*next != CsvReader::Next::row)
        return Error{concat(name_, ": found a header line and no rows; add rows")};
      place = reader_.place();
      next = read_line();
    }
    for (;;) {
      if (!next) return next.error();
      if (const Status status = take_row(place); !status) return status.error();
      if (*next != CsvReader::Next::row) return std::move(out_);
      place = reader_.place();
      next = read_line();
    }
  }

 private:
  /// Reads the fields of one line, and the separator after it.
  Expected<CsvReader::Next> read_line() {
    fields_.clear();
    for (;;) {
      if (Status status = reader_.read_text(fields_.emplace_back()); !status) return status.error();
      const CsvReader::Next next = reader_.advance();
      if (next != CsvReader::Next::field) return next;
    }
  }

  /// The names of the columns of a file without a header: their numbers, from 1. A file with as
  /// many columns as the model reads has no label, which may have been between them.
  std::vector<std::string> numbered() const {
    std::vector<std::string> names;
    const bool unlabelled = columns_ == pre_.columns.size();
    for (std::size_t i = 0; i < columns_; ++i)
      names.push_back(unlabelled ? pre_.columns[i].name : concat(i + 1));
    return names;
  }

  Status match_columns(const CsvReader::Place& place, const std::vector<std::string>& names) {
    auto positions = pre_.find_columns(names);
    if (!positions) return reader_.error_at(place, positions.error().text);
    positions_ = std::move(*positions);
    if (labels_ == Labels::ignored) return {};
    const auto label = std::find(names.begin(), names.end(), pre_.label);
    if (label == names.end())
      return reader_.error_at(place, "found no column ", excerpt(pre_.label),
                              " for the label; add it", suggest(pre_.label, names));
    label_ = static_cast<std::size_t>(label - names.begin());
    return {};
  }

  Status take_row(const CsvReader::Place& place) {
    if (fields_.size() != columns_)
      return reader_.error_at(place, "found ", fields_.size(), " fields, but the first line has ",
                              columns_, "; correct the row");
    if (Status status = pre_.encode_row(fields_, positions_, sample_.data()); !status)
      return reader_.error_at(place, status.error().text);
    out_.x.insert(out_.x.end(), sample_.begin(), sample_.end());
    ++out_.count;
    if (labels_ == Labels::ignored) return {};
    return classes_ > 0 ? take_class(place) : take_target(place);
  }

  Status take_class(const CsvReader::Place& place) {
    const std::string& field = fields_[label_];
    auto found = std::find(pre_.classes.begin(), pre_.classes.end(), trimmed(field));
    if (const auto number = parse_number(field); found == pre_.classes.end() && number)
      found = std::find_if(pre_.classes.begin(), pre_.classes.end(), [&](const std::string& name) {
        const auto other = parse_number(name);
        return other && *other == *number;  // 2 and 2.0 are the same class
      });
    if (found == pre_.classes.end())
      return reader_.error_at(place, "column ", excerpt(pre_.label), ": found ", excerpt(field),
                              ", which is not a class of the training data; the classes are ",
                              shown(pre_.classes));
    out_.classes.push_back(static_cast<std::int32_t>(found - pre_.classes.begin()));
    return {};
  }

  Status take_target(const CsvReader::Place& place) {
    const auto number = parse_number(fields_[label_]);
    if (!number)
      return reader_.error_at(place, "column ", excerpt(pre_.label), ": ", number.error().text);
    out_.targets.push_back(
        static_cast<float>((*number - pre_.target_mean) / pre_.target_deviation));
    return {};
  }

  static std::string shown(std::vector<std::string> names) {
    constexpr std::size_t kShown = 10;
    if (names.size() > kShown) {
      names.resize(kShown);
      names.emplace_back("...");
    }
    return join(names, ", ");
  }

  const Preprocessing& pre_;
  const int classes_;
  CsvReader reader_;
  const std::string& name_;
  const Labels labels_;
  std::vector<std::string> fields_;  // of the current line
  std::vector<std::size_t> positions_;
  std::size_t columns_ = 0;
  std::size_t label_ = 0;
  std::vector<float> sample_;
  InputSamples out_;
};

Expected<InputSamples> read_images(const Preprocessing& pre, std::span<const std::byte> file,
                                   const std::string& path) {
  const auto images = parse_idx(file, path, IdxKind::images);
  if (!images) return images.error();
  auto extents = images->extents;
  if (extents.size() == 3) extents.insert(extents.begin() + 1, 1);
  const Shape shape(std::span<const std::int64_t>(extents).subspan(1));
  if (shape != pre.shape)
    return Error{concat(path, ": found images of ", shape, ", and the model was trained with ",
                        pre.shape, "; give images of that size")};
  InputSamples out;
  out.count = extents[0];
  out.x.resize(images->values.size());
  scale_pixels(images->values, pixel_scaling(pre.pixel_mean, pre.pixel_deviation), out.x.data());
  return out;
}

}  // namespace

Expected<InputSamples> read_samples(const TrainedModel& trained, const std::string& path,
                                    Labels labels) {
  const Preprocessing* pre = trained.preprocessing.get();
  if (!pre)
    return Error{concat("the run \"", trained.plan.name, "\" was trained on data that its program ",
                        "makes, so it is unknown how a file becomes its input; give a run on a "
                        "table or on images")};
  if (trained.is_text())
    return Error{concat("the run \"", trained.plan.name,
                        "\" was trained on text; continue a text with leeway sample")};
  const auto bytes = read_unpacked(path, "give an existing file");
  if (!bytes) return bytes.error();
  if (pre->kind == Preprocessing::Kind::image) {
    if (labels == Labels::required)
      return Error{concat(path, ": a file of images has no labels; add --labels FILE")};
    return read_images(*pre, *bytes, path);
  }
  const std::string_view text{reinterpret_cast<const char*>(bytes->data()), bytes->size()};
  return TableInput(trained, text, path, labels).read();
}

}  // namespace leeway
