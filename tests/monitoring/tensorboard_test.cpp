// The records of a TensorBoard event file, read back with a parser of their own.
#include "monitoring/tensorboard.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>

#include "checkpoint/store.hpp"
#include "core/text.hpp"
#include "tests/support/process.hpp"
#include "tests/support/tiny.hpp"

using namespace leeway;
using namespace leeway::test;
using Catch::Contains;

namespace {

template <class Number>
Number raw_at(std::string_view bytes, std::size_t at) {
  Number number{};
  REQUIRE(at + sizeof number <= bytes.size());
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

/// CRC-32C bit by bit, with the mask of the record format.
std::uint32_t checksum(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0u);
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

/// The contents of the records, whose lengths and checksums must be right.
std::vector<std::string> records_of(const std::string& file) {
  std::vector<std::string> records;
  const std::string_view bytes = file;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto length = raw_at<std::uint64_t>(bytes, at);
    CHECK(raw_at<std::uint32_t>(bytes, at + 8) == checksum(bytes.substr(at, 8)));
    const auto content = bytes.substr(at + 12, length);
    REQUIRE(content.size() == length);
    CHECK(raw_at<std::uint32_t>(bytes, at + 12 + length) == checksum(content));
    records.emplace_back(content);
    at += 16 + length;
  }
  return records;
}

/// A field of a message: a number, or the bytes of a text or of another message.
struct Field {
  std::uint64_t number = 0;
  std::string bytes;
  double as_double() const { return raw_at<double>(bytes, 0); }
  float as_float() const { return raw_at<float>(bytes, 0); }
};
using Fields = std::multimap<std::uint64_t, Field>;

std::uint64_t take_varint(std::string_view& rest) {
  std::uint64_t number = 0;
  for (int shift = 0;; shift += 7) {
    REQUIRE_FALSE(rest.empty());
    const auto byte = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    number |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return number;
  }
}

Fields fields_of(std::string_view rest) {
  Fields fields;
  while (!rest.empty()) {
    const std::uint64_t key = take_varint(rest);
    Field field;
    std::size_t size = 0;
    switch (key & 7) {
      case 0:
        field.number = take_varint(rest);
        break;
      case 1:
        size = 8;
        break;
      case 2:
        size = take_varint(rest);
        break;
      case 5:
        size = 4;
        break;
      default:
        FAIL("unknown wire type " << (key & 7));
    }
    REQUIRE(size <= rest.size());
    field.bytes = rest.substr(0, size);
    rest.remove_prefix(size);
    fields.emplace(key >> 3, field);
  }
  return fields;
}

const Field& only(const Fields& fields, std::uint64_t number) {
  REQUIRE(fields.count(number) == 1);
  return fields.find(number)->second;
}

std::vector<double> doubles_of(const std::string& bytes) {
  std::vector<double> numbers;
  for (std::size_t at = 0; at < bytes.size(); at += 8) numbers.push_back(raw_at<double>(bytes, at));
  return numbers;
}

/// The scalars of an event by tag.
std::map<std::string, float> scalars_of(const std::string& record) {
  std::map<std::string, float> scalars;
  const Fields event = fields_of(record);
  if (event.count(5) == 0) return scalars;
  const Fields values = fields_of(only(event, 5).bytes);
  for (auto [at, end] = values.equal_range(1); at != end; ++at) {
    const Fields value = fields_of(at->second.bytes);
    if (value.count(2) == 1) scalars[only(value, 1).bytes] = only(value, 2).as_float();
  }
  return scalars;
}

std::uint64_t step_of(const std::string& record) {
  return only(fields_of(record), 2).number;
}

Progress progress_at(std::int64_t second, std::uint64_t samples) {
  return {.now = Instant{} + seconds(second),
          .samples = samples,
          .samples_trained = samples,
          .live_workers = 3,
          .train_loss = 0.5,
          .train_accuracy = 0.75,
          .clock_gap = 2,
          .parked_pulls = 12,
          .push_bytes = 1000,
          .pull_bytes = 500};
}

}  // namespace

TEST_CASE("the checksum is CRC-32C") {
  // The check value of CRC-32C, 0xe3069283, under the mask.
  CHECK(checksum("123456789") == ((0xe3069283u >> 15) | (0xe3069283u << 17)) + 0xa282ead8u);
}

TEST_CASE("an event file begins with its version, and has the reports of the monitor") {
  const TemporaryFolder folder;
  const auto job = job_of(tiny_plan());
  TensorBoardFile file(folder / "", *job);
  CHECK_FALSE(std::filesystem::exists(file.path()));  // created with the first values
  file.progress(progress_at(1, 300));
  file.progress(progress_at(2, 1'000'000'000'000));
  file.evaluated({Instant{} + seconds(3), 500, 0.25, 0.875});
  CHECK(bool(file.finish()));

  const auto records = records_of(read_text(file.path()));
  REQUIRE(records.size() == 4);
  const Fields version = fields_of(records[0]);
  CHECK(only(version, 3).bytes == "brain.Event:2");
  const double began = only(version, 1).as_double();
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  CHECK(std::abs(began - now.count()) < 60);
  CHECK(scalars_of(records[1]) == std::map<std::string, float>{{"train/loss", 0.5f},
                                                               {"train/accuracy", 0.75f},
                                                               {"run/samples_per_second", 0.0f},
                                                               {"run/clock_gap", 2.0f},
                                                               {"run/parked_pulls", 12.0f},
                                                               {"run/live_workers", 3.0f},
                                                               {"bytes/pushed", 1000.0f},
                                                               {"bytes/pulled", 500.0f}});
  CHECK(only(fields_of(records[1]), 1).as_double() == Approx(began + 1).epsilon(1e-12));
  CHECK(step_of(records[1]) == 300);
  CHECK(step_of(records[2]) == 1'000'000'000'000);
  CHECK(scalars_of(records[2]).at("run/samples_per_second") > 9e11f);
  CHECK(scalars_of(records[3]) ==
        std::map<std::string, float>{{"test/loss", 0.25f}, {"test/accuracy", 0.875f}});
  CHECK(step_of(records[3]) == 500);
}

TEST_CASE("the name of an event file has the time and the host, and is new") {
  const TemporaryFolder folder;
  const auto job = job_of(tiny_plan());
  TensorBoardFile first(folder / "", *job);
  first.progress(progress_at(1, 10));
  TensorBoardFile second(folder / "", *job);
  second.progress(progress_at(1, 10));
  CHECK(first.path() != second.path());
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  CHECK_THAT(first.path(), Contains("/events.out.tfevents.") && Catch::EndsWith(concat('.', host)));
}

TEST_CASE("values that are unknown or not finite are left out") {
  const TemporaryFolder folder;
  Plan plan = tiny_plan();
  plan.simulated = plan::World{.cost_only = true};
  TensorBoardFile costs(folder / "", *job_of(plan));
  costs.progress(progress_at(1, 10));
  costs.evaluated({Instant{}, 10, 0.25, 0.5});
  const auto without_losses = records_of(read_text(costs.path()));
  REQUIRE(without_losses.size() == 2);
  CHECK(scalars_of(without_losses[1]).count("train/loss") == 0);
  CHECK(scalars_of(without_losses[1]).count("run/clock_gap") == 1);

  TensorBoardFile file(folder / "", *job_of(tiny_plan()));
  Progress progress = progress_at(1, 10);
  progress.train_loss = progress.train_accuracy = std::numeric_limits<double>::quiet_NaN();
  file.progress(progress);
  file.evaluated({Instant{}, 10, 0.25, 0.5, false, "no memory"});
  const auto records = records_of(read_text(file.path()));
  REQUIRE(records.size() == 2);
  CHECK(scalars_of(records[1]).count("train/loss") == 0);
  CHECK(scalars_of(records[1]).count("train/accuracy") == 0);
}

TEST_CASE("the end of a run adds the histogram of its version lags") {
  const TemporaryFolder folder;
  TensorBoardFile file(folder / "", *job_of(tiny_plan()));
  RunTotals totals;
  totals.last = progress_at(4, 120);
  totals.version_lags = {0, 5, 0, 2, 0, 0};
  file.ended(totals);
  const auto records = records_of(read_text(file.path()));
  REQUIRE(records.size() == 3);
  const Fields value = fields_of(only(fields_of(only(fields_of(records[2]), 5).bytes), 1).bytes);
  CHECK(only(value, 1).bytes == "run/version_lag");
  const Fields histogram = fields_of(only(value, 5).bytes);
  CHECK(only(histogram, 1).as_double() == 1);   // least
  CHECK(only(histogram, 2).as_double() == 3);   // largest
  CHECK(only(histogram, 3).as_double() == 7);   // count
  CHECK(only(histogram, 4).as_double() == 11);  // sum
  CHECK(only(histogram, 5).as_double() == 23);  // sum of squares
  CHECK(doubles_of(only(histogram, 6).bytes) == std::vector<double>{0.5, 1.5, 2.5, 3.5});
  CHECK(doubles_of(only(histogram, 7).bytes) == std::vector<double>{0, 5, 0, 2});
}

TEST_CASE("a resumed run hides what an earlier file has beyond its checkpoint") {
  const TemporaryFolder folder;
  Job job = *job_of(tiny_plan());
  job.resumed = std::make_shared<checkpoint::Checkpoint>();
  TensorBoardFile file(folder / "", job);
  file.progress(progress_at(1, 10));
  const auto records = records_of(read_text(file.path()));
  REQUIRE(records.size() == 3);
  const Fields restart = fields_of(records[1]);
  CHECK(only(fields_of(only(restart, 7).bytes), 1).number == 1);  // SessionLog.START
  CHECK(only(restart, 2).number == 1);                            // the first step that is hidden
}

TEST_CASE("a full disk loses whole records, which are counted") {
  const TemporaryFolder folder;
  TensorBoardFile file(folder / "", *job_of(tiny_plan()));
  file.progress(progress_at(1, 10));
  const auto size = std::filesystem::file_size(file.path());
  {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    const rlimit limit{size + 30, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    file.progress(progress_at(2, 20));
    file.progress(progress_at(3, 30));
    ::setrlimit(RLIMIT_FSIZE, &before);
  }
  CHECK(std::filesystem::file_size(file.path()) == size);
  file.progress(progress_at(4, 40));
  CHECK(records_of(read_text(file.path())).size() == 3);
  const auto written = file.finish();
  REQUIRE_FALSE(written);
  CHECK(written.error().text == concat(file.path(), " lacks 2 of 4 records: File too large"));
}

TEST_CASE("a folder that appears later gets a complete file") {
  const TemporaryFolder folder;
  TensorBoardFile file(folder / "later", *job_of(tiny_plan()));
  file.progress(progress_at(1, 10));
  CHECK_THAT(file.finish().error().text, Contains("lacks 1 of 1 records: No such file"));
  std::filesystem::create_directory(folder / "later");
  file.progress(progress_at(2, 20));
  const auto records = records_of(read_text(file.path()));
  REQUIRE(records.size() == 2);
  CHECK(only(fields_of(records[0]), 3).bytes == "brain.Event:2");
}
