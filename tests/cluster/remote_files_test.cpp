// RemoteFiles with the FileServer of another process, on a real disk.
#include <catch2/catch.hpp>
#include <cstring>
#include <future>
#include <thread>

#include "cluster/file_exchange.hpp"
#include "core/limits.hpp"
#include "core/text.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/process.hpp"

namespace leeway::test {
namespace {

using Catch::Contains;
using Operation = node::FileRequest::Operation;

/// A process with a folder, and one that uses it. Messages pass unless `lost` is set.
struct TwoProcesses {
  std::string path(const std::string& name) const { return checkpoint + "/" + name; }

  TemporaryFolder temporary;
  const std::string folder = temporary / "checkpoints";
  const std::string checkpoint = folder + "/000001";
  std::atomic<bool> lost = false;
  std::atomic<int> sent = 0;
  std::unique_ptr<FileExchange> user, owner;

  TwoProcesses() {
    user = std::make_unique<FileExchange>("node", disk(), FileRights{}, [this](node::Body body) {
      ++sent;
      if (!lost) owner->handle(body);
    });
    owner = std::make_unique<FileExchange>(
        "program", disk(), FileRights{folder, temporary / "source"}, [this](node::Body body) {
          if (!lost) user->handle(body);
        });
    REQUIRE(files().make_folder(checkpoint));
  }
  ~TwoProcesses() {
    user->close("the test ends");
    owner.reset();  // its thread calls the user
  }
  RemoteFiles& files() const { return *user->remote(); }
};

std::vector<std::byte> pattern(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / 4096);
  return bytes;
}

}  // namespace

TEST_CASE("files of several pieces arrive whole, and are read back whole") {
  const TwoProcesses both;
  const std::size_t piece = limits::kMaxFilePiece;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, piece - 1, piece, piece + 1, 9 * piece + 5}) {
    INFO(size);
    const auto bytes = pattern(size);
    const std::string path = both.path(std::to_string(size));
    const std::span<const std::byte> content = bytes;
    REQUIRE(write_durably(both.files(), path, std::span(&content, 1)));
    const auto there = disk().read(path);
    REQUIRE(there);
    CHECK(std::ranges::equal((*there)->bytes(), bytes));
    const auto here = both.files().read(path);
    REQUIRE(here);
    CHECK(std::ranges::equal((*here)->bytes(), bytes));
  }
  const auto names = both.files().list(both.checkpoint);
  REQUIRE(names);
  CHECK(names->size() == 6);
}

TEST_CASE("errors name the other process, the path and the cause") {
  const TwoProcesses both;
  const auto missing = both.files().read(both.path("missing"));
  REQUIRE_FALSE(missing);
  CHECK(missing.error().text ==
        concat("on node: ", both.path("missing"), ": cannot be read: No such file or directory"));
  REQUIRE(write_durably(both.files(), both.path("1"), "text"));
  CHECK_THAT(both.files().make_folder(both.path("1/folder")).error().text,
             Contains("Not a directory"));
  CHECK_THAT(both.files().create(both.path("1")).error().text, Contains("File exists"));
}

TEST_CASE("paths outside of the folder are refused") {
  const TwoProcesses both;
  REQUIRE(disk().make_folder(both.temporary / "source"));
  REQUIRE(write_durably(disk(), both.temporary / "source/file", "text"));
  REQUIRE(write_durably(disk(), both.temporary / "other", "secret"));
  CHECK(both.files().read(both.temporary / "source/file"));
  for (const std::string& path :
       {both.temporary / "other", both.temporary / "checkpoints/../other",
        both.temporary / "checkpointsX", std::string("/etc/passwd"), std::string()}) {
    INFO(path);
    const auto refused = [](const auto& result) {
      REQUIRE_FALSE(result);
      CHECK_THAT(result.error().text, Contains("outside of the folder"));
    };
    refused(both.files().read(path));
    refused(both.files().create(path));
    refused(both.files().remove(path));
    refused(both.files().list(path));
    refused(both.files().make_folder(path));
    refused(both.files().rename(both.path("1"), path));
    refused(both.files().rename(path, both.path("1")));
  }
  for (const std::string name : {"/plan.toml", "/1a/file"}) {
    CHECK_FALSE(both.files().create(both.folder + name));
    CHECK_FALSE(both.files().remove(both.folder + name));
  }
  CHECK_FALSE(both.files().remove(both.folder));
  CHECK_THAT(both.files().remove(both.path(std::string(100'000, '1'))).error().text,
             Contains("path is too long"));
  CHECK_FALSE(both.files().remove(both.temporary / "source/file"));  // may only be read
  CHECK((*disk().read(both.temporary / "other"))->text() == "secret");
  CHECK(both.files().flush_folder(folder_of(both.folder)));
}

TEST_CASE("after the end of the job, all operations fail at once") {
  TwoProcesses both;
  auto writer = both.files().create(both.path("1"));
  REQUIRE(writer);
  both.lost = true;
  auto read = std::async(std::launch::async, [&] { return both.files().read(both.path("1")); });
  both.user->close("the program is gone");
  const auto result = read.get();
  REQUIRE_FALSE(result);
  CHECK(result.error().text == "on node: the program is gone");
  const auto bytes = pattern(10);
  CHECK((*writer)->append(bytes));  // only requested
  CHECK_FALSE((*writer)->flush());
  writer->reset();
}

TEST_CASE("any number of threads can write files at the same time") {
  const TwoProcesses both;
  const auto bytes = pattern(3 * limits::kMaxFilePiece);
  std::vector<std::future<Status>> writing;
  for (int i = 0; i < 24; ++i)
    writing.push_back(std::async(std::launch::async, [&, i] {
      const std::span<const std::byte> content = bytes;
      return write_durably(both.files(), both.path(std::to_string(i)), std::span(&content, 1));
    }));
  for (auto& each : writing) {
    const Status written = each.get();
    INFO((written ? "" : written.error().text));
    CHECK(written);
  }
  CHECK(std::ssize(*disk().list(both.checkpoint)) == 24);
}

TEST_CASE("a process cannot append to a file that is not open, nor keep too many open") {
  const TwoProcesses both;
  for (std::uint64_t i = 0; i < 100; ++i) {
    node::Body request = node::FileRequest{
        .number = 1000 + i, .operation = Operation::create, .path = both.path(std::to_string(i))};
    both.owner->handle(request);
  }
  CHECK(comes_true(
      [&] { return std::ssize(*disk().list(both.checkpoint)) >= limits::kMaxRemoteWriters; }));
  // The rest of the requests above may still wait.
  CHECK(comes_true([&] {
    const auto refused = both.files().create(both.path("100"));
    return !refused && refused.error().text.find("files are open") != std::string::npos;
  }));

  std::promise<node::FileAnswer> answered;
  FileServer server(disk(), {both.folder, ""},
                    [&](node::FileAnswer answer) { answered.set_value(std::move(answer)); });
  server.submit({.number = 7, .operation = Operation::append, .file = 3});
  const auto answer = answered.get_future().get();
  CHECK(answer.number == 7);
  CHECK(answer.error == "file 3: is not open");
}

}  // namespace leeway::test
