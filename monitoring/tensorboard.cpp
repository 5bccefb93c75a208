#include "monitoring/tensorboard.hpp"

#include <fcntl.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <vector>

#include "checkpoint/store.hpp"
#include "core/text.hpp"
#include "core/this_host.hpp"
#include "monitoring/append.hpp"
#include "monitoring/format.hpp"
#include "monitoring/varint.hpp"

namespace leeway {
namespace {

static_assert(std::endian::native == std::endian::little, "the file is little-endian");

// ---- records ----

constexpr std::uint32_t kCastagnoli = 0x82f63b78;  // the polynomial of CRC-32C, reversed

constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? kCastagnoli : 0);
    table[byte] = crc;
  }
  return table;
}();

/// CRC-32C of the bytes, rotated and shifted: a file may contain records as data.
std::uint32_t masked_crc(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (const char byte : bytes)
    crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return std::rotr(~crc, 15) + 0xa282ead8u;
}

template <class Number>
void put_raw(std::string& out, Number number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  out.append(bytes, sizeof number);
}

std::string record_of(std::string_view event) {
  std::string record;
  put_raw(record, static_cast<std::uint64_t>(event.size()));
  put_raw(record, masked_crc(record));
  record += event;
  put_raw(record, masked_crc(event));
  return record;
}

// ---- messages: each field has a key of its number and its wire type ----

void put_integer(std::string& out, unsigned field, std::uint64_t number) {
  put_varint(out, field << 3);
  put_varint(out, number);
}
void put_double(std::string& out, unsigned field, double number) {
  put_varint(out, field << 3 | 1);
  put_raw(out, number);
}
void put_float(std::string& out, unsigned field, float number) {
  put_varint(out, field << 3 | 5);
  put_raw(out, number);
}
void put_bytes(std::string& out, unsigned field, std::string_view bytes) {
  put_varint(out, field << 3 | 2);
  put_varint(out, bytes.size());
  out += bytes;
}
void put_doubles(std::string& out, unsigned field, const std::vector<double>& numbers) {
  std::string packed;
  for (const double number : numbers) put_raw(packed, number);
  put_bytes(out, field, packed);
}

// The numbers of the fields.
namespace event_field {
constexpr unsigned wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7;
}
namespace value_field {
constexpr unsigned tag = 1, simple_value = 2, histogram = 5;
}
namespace histogram_field {
constexpr unsigned min = 1, max = 2, count = 3, sum = 4, sum_squares = 5, bucket_limit = 6,
                   bucket = 7;
}
constexpr unsigned kSummaryValue = 1, kSessionStatus = 1, kSessionStart = 1;

/// The values of one event.
class SummaryBytes {
 public:
  /// Leaves out a value that is not finite.
  void scalar(std::string_view tag, double number) {
    if (!std::isfinite(number)) return;
    std::string value;
    put_bytes(value, value_field::tag, tag);
    put_float(value, value_field::simple_value, static_cast<float>(number));
    put_bytes(values_, kSummaryValue, value);
  }
  /// `counts[i]`: the number of observations of i; none for an empty histogram.
  void histogram(std::string_view tag, std::vector<std::uint64_t> counts) {
    while (!counts.empty() && counts.back() == 0) counts.pop_back();
    if (counts.empty()) return;
    double count = 0, sum = 0, squares = 0, least = -1;
    std::vector<double> limits, buckets;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const auto number = static_cast<double>(i), times = static_cast<double>(counts[i]);
      if (least < 0 && times > 0) least = number;
      count += times;
      sum += times * number;
      squares += times * number * number;
      limits.push_back(number + 0.5);
      buckets.push_back(times);
    }
    std::string content;
    put_double(content, histogram_field::min, least);
    put_double(content, histogram_field::max, static_cast<double>(counts.size() - 1));
    put_double(content, histogram_field::count, count);
    put_double(content, histogram_field::sum, sum);
    put_double(content, histogram_field::sum_squares, squares);
    put_doubles(content, histogram_field::bucket_limit, limits);
    put_doubles(content, histogram_field::bucket, buckets);
    std::string value;
    put_bytes(value, value_field::tag, tag);
    put_bytes(value, value_field::histogram, content);
    put_bytes(values_, kSummaryValue, value);
  }
  /// The field of an event; empty without values.
  std::string field() const {
    std::string out;
    if (!values_.empty()) put_bytes(out, event_field::summary, values_);
    return out;
  }

 private:
  std::string values_;
};

std::string event_of(double wall_time, std::uint64_t step, std::string_view content) {
  std::string event;
  put_double(event, event_field::wall_time, wall_time);
  put_integer(event, event_field::step, step);
  event += content;
  return event;
}

double unix_seconds() {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  return now.count();
}

/// A name that no file has: a run may be resumed within a second.
std::string new_event_file(const std::string& folder, double now) {
  std::string host = host_name();
  if (host.empty()) host = "localhost";
  std::error_code ignored;
  for (auto seconds = static_cast<std::int64_t>(now);; ++seconds) {
    std::string path = concat(folder, "/events.out.tfevents.", seconds, '.', host);
    if (!std::filesystem::exists(path, ignored)) return path;
  }
}

}  // namespace

TensorBoardFile::TensorBoardFile(const std::string& folder, const Job& job)
    : began_at_(unix_seconds()),
      has_losses_(job.has_losses()),
      has_classes_(has_losses_ && job.data.train->classes() > 0) {
  path_ = new_event_file(folder, began_at_);
  std::string content;
  put_bytes(content, event_field::file_version, "brain.Event:2");
  first_records_ = record_of(event_of(began_at_, 0, content));
  if (!job.resumed) return;
  std::string start;
  put_integer(start, kSessionStatus, kSessionStart);
  content.clear();
  put_bytes(content, event_field::session_log, start);
  const std::uint64_t trained = checkpoint::samples_trained(job.resumed->manifest);
  first_records_ += record_of(event_of(began_at_, trained + 1, content));
}

void TensorBoardFile::progress(const Progress& progress) {
  recent_.add(progress);
  SummaryBytes values;
  if (has_losses_) values.scalar("train/loss", progress.train_loss);
  if (has_classes_) values.scalar("train/accuracy", progress.train_accuracy);
  values.scalar("run/samples_per_second", recent_.samples_per_second());
  values.scalar("run/clock_gap", static_cast<double>(progress.clock_gap));
  values.scalar("run/parked_pulls", static_cast<double>(progress.parked_pulls));
  values.scalar("run/live_workers", progress.live_workers);
  values.scalar("bytes/pushed", static_cast<double>(progress.push_bytes));
  values.scalar("bytes/pulled", static_cast<double>(progress.pull_bytes));
  add(progress.now, progress.samples_trained, values.field());
}

void TensorBoardFile::evaluated(const EvaluationResult& result) {
  if (!has_losses_ || !result.error.empty()) return;
  SummaryBytes values;
  values.scalar("test/loss", result.loss);
  if (has_classes_) values.scalar("test/accuracy", result.accuracy);
  add(result.now, result.samples_trained, values.field());
}

void TensorBoardFile::ended(const RunTotals& totals) {
  progress(totals.last);
  SummaryBytes values;
  values.histogram("run/version_lag", totals.version_lags);
  add(totals.last.now, totals.last.samples_trained, values.field());
}

Status TensorBoardFile::finish() const {
  if (lost_ == 0) return {};
  return Error{concat(path_, " lacks ", grouped(lost_), " of ", grouped(lost_ + written_),
                      " records: ", cause_)};
}

void TensorBoardFile::add(Instant at, std::uint64_t step, std::string_view content) {
  if (content.empty()) return;
  const double wall_time = began_at_ + (at - Instant{}).seconds();
  if (append(first_records_ + record_of(event_of(wall_time, step, content)))) {
    first_records_.clear();
    ++written_;
    return;
  }
  if (cause_.empty()) cause_ = system_reason();
  ++lost_;
}

bool TensorBoardFile::append(std::string_view records) {
  if (!file_)
    file_ =
        std::make_unique<Descriptor>(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (file_->get() < 0) {
    const int reason = errno;
    file_.reset();
    errno = reason;
    return false;
  }
  // A reader takes the bytes after half a record for a part of it.
  return append_whole(file_->get(), records);
}

}  // namespace leeway
