// events.bin: blocks of any events, written by a thread and read in the order of their times.
#include "monitoring/event_file.hpp"

#include <rapidcheck/catch.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/messages/any_events.hpp"
#include "tests/support/process.hpp"

namespace leeway {
namespace {

using Catch::Matchers::Contains;
using test::TemporaryFolder;

constexpr std::size_t kTypes = std::variant_size_v<Event::variant>;

std::vector<EventRecord> read_all(const std::string& path, Instant from = {0},
                                  Instant until = {1'000'000'000'000}) {
  std::vector<EventRecord> records;
  const auto read = read_events(
      path, [&](const EventRecord& record) { records.push_back(record); }, from, until);
  REQUIRE(read);
  return records;
}

EventRecord step(std::int64_t ns, std::uint32_t worker = 0) {
  return {address_of(WorkerId(worker)),
          {ns},
          event::StepStarted{WorkerId(worker), Iteration(ns / 10), 32, Duration{ns}}};
}

void write(const std::string& path, const std::vector<EventRecord>& records) {
  EventFile file(path, EventFile::IfSlow::wait);
  for (const auto& [actor, at, event] : records) file.add(actor, at, event);
  file.finish();
  CHECK(file.written() == records.size());
  CHECK(file.lost() == 0);
}

std::string content_of(const std::string& path) {
  return test::read_text(path);
}
void set_content(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace

TEST_CASE("a block has all fields of events of every type") {
  rc::prop("round trip", [] {
    std::vector<EventRecord> records;
    for (std::size_t type = 0; type < kTypes; ++type) {
      EventRecord record;
      record.actor = {RoleKind(*rc::gen::inRange(0, 7)), *rc::gen::arbitrary<std::uint32_t>()};
      record.at.ns = *rc::gen::arbitrary<std::int64_t>();
      test::any(record.event, type);
      records.push_back(record);
    }
    EventBlock block;
    for (const auto& [actor, at, event] : records) block.add(actor, at, event);
    const auto read = EventBlock::read(block.bytes(), block.size());
    RC_ASSERT(bool(read));
    RC_ASSERT(*read == records);
  });
}

TEST_CASE("malformed blocks are refused") {
  EventBlock block;
  block.add(address_of(WorkerId(1)), {5}, event::Malformed{Iteration(1), "text"});
  const std::string bytes = block.bytes();
  CHECK(EventBlock::read(bytes, 1));
  CHECK_FALSE(EventBlock::read(bytes, 2));
  CHECK_FALSE(EventBlock::read("", 0));
  rc::prop("no crash", [&] {
    std::string damaged = bytes;
    damaged[*rc::gen::inRange<std::size_t>(0, damaged.size())] = *rc::gen::arbitrary<char>();
    damaged.resize(*rc::gen::inRange<std::size_t>(0, damaged.size() + 1));
    (void)EventBlock::read(damaged, 1);
  });
}

TEST_CASE("events are read in the order of their times, although blocks overlap") {
  const TemporaryFolder folder;
  const std::string path = folder / "events.bin";
  std::vector<EventRecord> records;
  // Three nodes send batches, each later than the events of the others.
  for (std::int64_t batch = 0; batch < 30; ++batch)
    for (std::uint32_t node = 0; node < 3; ++node)
      for (std::int64_t i = 0; i < 1000; ++i) records.push_back(step(batch * 5000 + i * 5, node));
  write(path, records);
  CHECK(std::filesystem::file_size(path) < 10 * records.size());
  std::ranges::stable_sort(records, {}, &EventRecord::at);
  CHECK(read_all(path) == records);
}

TEST_CASE("a reader of a time range gets only its events") {
  const TemporaryFolder folder;
  const std::string path = folder / "events.bin";
  std::vector<EventRecord> records;
  for (std::int64_t i = 0; i < 50'000; ++i) records.push_back(step(i));
  write(path, records);
  const auto some = read_all(path, {20'000}, {20'099});
  REQUIRE(some.size() == 100);
  CHECK(some.front() == records[20'000]);
  CHECK(some.back() == records[20'099]);
}

TEST_CASE("events before a resume are skipped") {
  const TemporaryFolder folder;
  const std::string path = folder / "events.bin";
  write(path, {step(100), step(200)});
  write(path, {step(50)});
  CHECK(read_all(path) == std::vector{step(50)});
}

TEST_CASE("a run that is resumed after a kill continues behind the last whole block") {
  const TemporaryFolder folder;
  const std::string path = folder / "events.bin";
  write(path, {step(100), step(200)});
  const std::string content = content_of(path);
  set_content(path, content + content.substr(0, content.size() - 3));
  write(path, {step(50), step(60)});
  CHECK(read_all(path) == std::vector{step(50), step(60)});
  set_content(path, content.substr(0, 10));
  write(path, {step(70)});
  CHECK(read_all(path) == std::vector{step(70)});
}

TEST_CASE("an incomplete last block is skipped, and a damaged one is refused") {
  const TemporaryFolder folder;
  const std::string path = folder / "events.bin";
  std::vector<EventRecord> records;
  for (std::int64_t i = 0; i < 20'000; ++i) records.push_back(step(i));
  write(path, records);
  const std::string content = content_of(path);
  set_content(path, content.substr(0, content.size() - 1));
  const auto read = read_all(path);
  CHECK(read.size() < records.size());
  CHECK(!read.empty());
  std::string damaged = content;
  damaged[damaged.size() / 2] ^= 1;
  set_content(path, damaged);
  const auto refused = read_events(path, [](const EventRecord&) {});
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().text, Contains(path) && Contains("damaged"));
  set_content(path, std::string(100, 'x'));
  CHECK_FALSE(read_events(path, [](const EventRecord&) {}));
}

TEST_CASE("a file that cannot be written costs its events, which are counted with the reason") {
  EventFile file("/nonexistent/events.bin", EventFile::IfSlow::lose);
  for (std::int64_t i = 0; i < 10; ++i) file.add(step(i).actor, step(i).at, step(i).event);
  file.finish();
  CHECK(file.written() == 0);
  CHECK(file.lost() == 10);
  CHECK_THAT(file.cause(), Contains("No such file"));
}

TEST_CASE("a reader finds recent events while the run writes") {
  const TemporaryFolder folder;
  const std::string path = folder / "events.bin";
  EventFile file(path, EventFile::IfSlow::lose);
  file.add(step(1).actor, step(1).at, step(1).event);
  for (int i = 0; i < 200 && !std::filesystem::exists(path); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(read_all(path) == std::vector{step(1)});
}

}  // namespace leeway
