// Lines in a file whose disk becomes full.
#include "monitoring/line_file.hpp"

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <csignal>

#include "core/text.hpp"
#include "tests/support/process.hpp"

using namespace leeway;
using leeway::test::read_text;
using leeway::test::TemporaryFolder;

namespace {

/// Files of this process can grow up to `bytes`, like on a disk of this size.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SmallFiles() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  SmallFiles(const SmallFiles&) = delete;
  SmallFiles& operator=(const SmallFiles&) = delete;

 private:
  rlimit before_{};
};

std::string lines(int first, int end) {
  std::string text;
  for (int i = first; i < end; ++i) text += concat("line ", i, '\n');
  return text;
}

}  // namespace

TEST_CASE("a line that does not fit is left out as a whole, and later lines follow") {
  const TemporaryFolder folder;
  for (const std::size_t buffer : {0, 20, 1000}) {
    const std::string path = folder / concat(buffer);
    LineFile file(path, buffer);
    {
      const SmallFiles limit(40);  // five lines and a half
      for (int i = 0; i < 8; ++i) file.add(concat("line ", i));
      file.flush();
      CHECK(read_text(path) == lines(0, 5));
      CHECK(file.written() == 5);
      CHECK(file.lost() == 3);
      CHECK(file.cause() == "File too large");
    }
    file.add("line 8");
    file.flush();
    CHECK(read_text(path) == lines(0, 5) + lines(8, 9));
    CHECK(file.lost() == 3);
  }
}

TEST_CASE("a file that cannot be opened loses its lines, until it can") {
  const TemporaryFolder folder;
  LineFile file(folder / "later/lines");
  file.add("one");
  CHECK(file.lost() == 1);
  CHECK(file.cause() == "No such file or directory");
  std::filesystem::create_directory(folder / "later");
  file.add("two");
  CHECK(read_text(folder / "later/lines") == "two\n");
  CHECK(file.written() == 1);
}

TEST_CASE("an incomplete last line is removed") {
  const TemporaryFolder folder;
  const std::string path = folder / "lines";
  for (const std::string rest : {"", "{\"second"}) {
    std::ofstream(path) << "{\"first\":1}\n" << rest;
    remove_incomplete_line(path);
    CHECK(read_text(path) == "{\"first\":1}\n");
  }
  std::ofstream(path) << "{";
  remove_incomplete_line(path);
  CHECK(read_text(path).empty());
}
