#include "models/datasets/file.hpp"

#include "tests/models/datasets/files.hpp"

namespace leeway {
namespace {

TEST_CASE("a whole file is read, whatever its size") {
  const test::TemporaryFolder folder;
  for (const std::size_t size : {0u, 1u, 4095u, 4096u, 4097u, 1'000'000u}) {
    test::Bytes content(size);
    for (std::size_t i = 0; i < size; ++i) content[i] = static_cast<std::byte>(i * 7);
    const auto read = read_file(folder.write("file", content), "");
    REQUIRE(read);
    CHECK(*read == content);
  }
}

TEST_CASE("a file of unknown size is read to its end") {
  const auto read = read_file("/proc/self/status", "");
  REQUIRE(read);
  CHECK(read->size() > 100);
}

TEST_CASE("a file that cannot be read is named with the reason and the advice") {
  CHECK(read_file("/no/such/file", "give another").error().text ==
        "\"/no/such/file\" cannot be read: No such file or directory; give another");
  CHECK(read_file("/", "give a file").error().text ==
        "\"/\" cannot be read: Is a directory; give a file");
}

TEST_CASE("an excerpt is short and printable") {
  CHECK(excerpt("abc") == "\"abc\"");
  CHECK(excerpt(std::string_view("a\n\xff\0", 4)) == R"("a\x0a\xff\x00")");
  CHECK(excerpt(std::string(41, 'x')) == "\"" + std::string(40, 'x') + "\"...");
}

}  // namespace
}  // namespace leeway
