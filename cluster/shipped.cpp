#include "cluster/shipped.hpp"

#include <algorithm>
#include <numeric>

#include "core/check.hpp"
#include "core/text.hpp"
#include "models/datasets/checksum.hpp"

namespace leeway {
namespace {

constexpr std::int64_t kPieceBytes = 1 << 20;

/// Labels or targets of a sample.
std::int64_t answers_of(const node::DataMark& mark) {
  return mark.classes > 0 ? mark.labels : mark.targets;
}

/// Numbers of one sample: its values, and its labels or targets.
std::int64_t values_of(const node::DataMark& mark) {
  return mark.shape.count() + answers_of(mark);
}

/// The part that all data sets of a mark share.
class Marked : public Dataset {
 public:
  Marked(const node::DataMark& mark, bool test)
      : mark_(mark), size_(test ? mark.test_samples : mark.train_samples) {}
  std::int64_t size() const override { return size_; }
  Shape sample_shape() const override { return mark_.shape; }
  int classes() const override { return static_cast<int>(mark_.classes); }
  std::int64_t label_count() const override { return mark_.labels; }
  std::int64_t target_count() const override { return mark_.targets; }
  float background() const override { return mark_.background; }
  bool has_contents() const override { return false; }
  void gather(std::span<const std::int64_t>, float*, std::int32_t*, float*) const override {
    LW_CHECK(false, "has no contents");
  }

 protected:
  const node::DataMark mark_;
  const std::int64_t size_;
};

}  // namespace

node::DataMark mark_of(const TrainTest& data) {
  return mark_of(data, checksum_of(data));
}

TrainTest described(const node::DataMark& mark) {
  return {std::make_shared<Marked>(mark, false), std::make_shared<Marked>(mark, true)};
}

std::int64_t samples_of_piece(const node::DataMark& mark) {
  return std::max<std::int64_t>(1, kPieceBytes / (4 * values_of(mark)));
}

node::DataPiece data_piece(const TrainTest& data, const node::DataMark& mark, bool test,
                           std::int64_t first) {
  const Dataset& set = test ? *data.test : *data.train;
  const std::int64_t count = std::min(samples_of_piece(mark), set.size() - first);
  LW_CHECK(first >= 0 && count > 0, first, set.size());
  std::vector<std::int64_t> samples(static_cast<std::size_t>(count));
  std::iota(samples.begin(), samples.end(), first);
  node::DataPiece piece{test, first, static_cast<std::uint32_t>(count),
                        Blob::floats(count * mark.shape.count()),
                        Blob::floats(count * answers_of(mark))};
  set.gather(samples, piece.x.mutable_floats(),
             mark.classes > 0 ? reinterpret_cast<std::int32_t*>(piece.y.mutable_data()) : nullptr,
             mark.classes > 0 ? nullptr : piece.y.mutable_floats());
  return piece;
}

class ShippedData::Pieces final : public Marked {
 public:
  using Marked::Marked;

  Status add(const node::DataPiece& piece) {
    const auto refuse = [&](const auto&... found) { return Error{concat("piece: ", found...)}; };
    if (piece.first != samples_)
      return refuse("begins with sample ", piece.first, ", must begin with ", samples_);
    const std::int64_t count = std::min(samples_of_piece(mark_), size_ - samples_);
    if (piece.samples != count) return refuse("has ", piece.samples, " samples, must have ", count);
    const auto x_bytes = static_cast<std::size_t>(4 * count * mark_.shape.count());
    const auto y_bytes = static_cast<std::size_t>(4 * count * answers_of(mark_));
    if (piece.x.size() != x_bytes || piece.y.size() != y_bytes)
      return refuse("has blobs of ", piece.x.size(), " and ", piece.y.size(), " bytes, must have ",
                    x_bytes, " and ", y_bytes);
    if (mark_.classes > 0) {
      const auto* labels = reinterpret_cast<const std::int32_t*>(piece.y.data());
      for (std::int64_t i = 0; i < count * mark_.labels; ++i)
        if (labels[i] < 0 || labels[i] >= classes())
          return refuse("has the label ", labels[i], ", must be below ", classes());
    }
    pieces_.push_back({piece.x, piece.y});
    samples_ += count;
    return {};
  }
  std::int64_t samples() const { return samples_; }

  void gather(std::span<const std::int64_t> samples, float* x, std::int32_t* labels,
              float* targets) const override {
    gather_labels(samples, labels, targets);
    const std::int64_t piece = samples_of_piece(mark_);
    const std::int64_t values = mark_.shape.count();
    for (const std::int64_t sample : samples)
      x = std::copy_n(piece_of(sample).x.as_floats() + sample % piece * values, values, x);
  }
  void gather_labels(std::span<const std::int64_t> samples, std::int32_t* labels,
                     float* targets) const override {
    const std::int64_t piece = samples_of_piece(mark_);
    for (const std::int64_t sample : samples) {
      const Blob& from = piece_of(sample).y;
      const std::int64_t row = sample % piece;
      if (mark_.classes > 0)
        labels =
            std::copy_n(reinterpret_cast<const std::int32_t*>(from.data()) + row * mark_.labels,
                        mark_.labels, labels);
      else
        targets = std::copy_n(from.as_floats() + row * mark_.targets, mark_.targets, targets);
    }
  }

 private:
  struct Piece {
    Blob x, y;
  };
  const Piece& piece_of(std::int64_t sample) const {
    LW_CHECK(sample >= 0 && sample < samples_, sample, samples_);
    return pieces_[static_cast<std::size_t>(sample / samples_of_piece(mark_))];
  }
  std::vector<Piece> pieces_;
  std::int64_t samples_ = 0;
};

ShippedData::ShippedData(const node::DataMark& mark)
    : mark_(mark),
      train_(std::make_shared<Pieces>(mark, false)),
      test_(std::make_shared<Pieces>(mark, true)) {}
ShippedData::~ShippedData() = default;

Status ShippedData::add(const node::DataPiece& piece) {
  return (piece.test ? test_ : train_)->add(piece);
}

std::int64_t ShippedData::samples() const {
  return train_->samples() + test_->samples();
}

bool ShippedData::complete() const {
  return samples() == mark_.train_samples + mark_.test_samples;
}

Expected<TrainTest> ShippedData::take() {
  LW_CHECK(complete(), samples());
  TrainTest data{train_, test_};
  if (mark_of(data).checksum != mark_.checksum)
    return Error{"the data that arrived is not the data that was announced; try again"};
  return data;
}

}  // namespace leeway
