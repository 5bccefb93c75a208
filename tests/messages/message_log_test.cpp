// Messages in a file: written, filtered, cut off.
#include "messages/message_log.hpp"

#include <catch2/catch.hpp>
#include <filesystem>

#include "messages/envelope.hpp"
#include "tests/support/process.hpp"

namespace leeway::test {
namespace {

constexpr Address kWorker2{RoleKind::worker, 2}, kShard0{RoleKind::shard, 0};

Message pull_of(std::int64_t iteration) {
  msg::Pull pull;
  pull.iteration = Iteration(iteration);
  return encode(Envelope{.body = pull});
}

std::vector<RecordedMessage> read_all(const std::string& path, const MessageFilter& filter = {}) {
  std::vector<RecordedMessage> all;
  const auto note = read_messages(path, filter, [&](const RecordedMessage& one) {
    all.push_back(one);
    return true;
  });
  REQUIRE(note);
  CHECK(*note == "");
  return all;
}

}  // namespace

TEST_CASE("recorded messages are read in the order of their times, by sender, receiver and kind") {
  TemporaryFolder folder;
  const std::string path = folder / "messages.bin";
  {
    MessageLog log(path);
    log.write(received({30}, kWorker2, kShard0, pull_of(7)));
    log.write({.at = {10},
               .from = kShard0,
               .to = kWorker2,
               .message = encode(Envelope{.body = msg::Interrupt{}}),
               .tensor_bytes = 4096});
    REQUIRE(log.finish());
  }
  const auto all = read_all(path);
  REQUIRE(all.size() == 2);
  CHECK(all[0].at.ns == 10);
  CHECK(all[0].from == "shard0");
  CHECK(all[0].kind == "interrupt");
  CHECK(all[0].tensor_bytes == 4096);
  CHECK(all[1].to == "shard0");
  CHECK(all[1].kind == "pull");
  CHECK_THAT(all[1].body, Catch::Contains("iteration = 7"));
  CHECK(read_all(path, {.from = "worker2", .to = "", .kind = ""}).size() == 1);
  CHECK(read_all(path, {.from = "", .to = "worker2", .kind = ""}).at(0).from == "shard0");
  CHECK(read_all(path, {.from = "", .to = "", .kind = "pull"}).at(0).at.ns == 30);
  CHECK(read_all(path, {.from = "", .to = "", .kind = "push"}).empty());
  CHECK_THAT(read_all(path, {.from = "", .to = "", .kind = "pull", .json = true}).at(0).body,
             Catch::Contains("\"iteration\""));
}

TEST_CASE("a file that ends inside a record yields the complete ones and a note") {
  TemporaryFolder folder;
  const std::string path = folder / "messages.bin";
  {
    MessageLog log(path);
    for (int i = 0; i < 3; ++i) log.write(received({i}, kWorker2, kShard0, pull_of(i)));
  }
  const auto size = std::filesystem::file_size(path);
  for (const auto missing : {1, 8, 20}) {
    std::filesystem::resize_file(path, size - missing);
    int count = 0;
    const auto note = read_messages(path, {}, [&](const RecordedMessage&) { return ++count > 0; });
    REQUIRE(note);
    CHECK(count == 2);
    CHECK_THAT(*note, Catch::Contains("ends inside a record"));
  }
}

TEST_CASE("a resumed run continues behind the last whole record") {
  TemporaryFolder folder;
  const std::string path = folder / "messages.bin";
  for (const auto missing : {0, 1, 20}) {
    std::filesystem::remove(path);
    for (const int run : {0, 1}) {
      MessageLog log(path);
      for (int i = 0; i < 3; ++i)
        log.write(received({10 * run + i}, kWorker2, kShard0, pull_of(i)));
      REQUIRE(log.finish());
      if (run == 0) std::filesystem::resize_file(path, std::filesystem::file_size(path) - missing);
    }
    CHECK(read_all(path).size() == (missing == 0 ? 6 : 5));
  }
}

TEST_CASE("a malformed message is recorded with its sender") {
  TemporaryFolder folder;
  const std::string path = folder / "messages.bin";
  {
    MessageLog log(path);
    log.write(received({1}, kWorker2, kShard0, Message({}, {})));
    log.write(received({2}, kWorker2, kShard0, Message({~std::uint64_t{0}, 7}, {})));
    log.write(received({3}, kWorker2, kShard0, pull_of(3)));
  }
  const auto all = read_all(path);
  REQUIRE(all.size() == 3);
  CHECK(all[0].kind == "malformed");
  CHECK(all[0].from == "worker2");
  CHECK(all[1].kind == "malformed");
  CHECK(all[2].kind == "pull");
}

TEST_CASE("a missing trace names the flag, and a full disk is reported") {
  TemporaryFolder folder;
  const auto missing = read_messages(folder / "messages.bin", {}, [](const auto&) { return true; });
  REQUIRE_FALSE(missing);
  CHECK_THAT(missing.error().text, Catch::Contains("--trace-messages"));
  MessageLog log("/dev/full");
  for (int i = 0; i < 1000; ++i) log.write(received({i}, kWorker2, kShard0, pull_of(i)));
  const auto finished = log.finish();
  REQUIRE_FALSE(finished);
  CHECK_THAT(finished.error().text, Catch::Contains("/dev/full: cannot be written"));
}

}  // namespace leeway::test
