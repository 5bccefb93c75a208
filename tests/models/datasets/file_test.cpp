#include "models/datasets/file.hpp"

#include "models/datasets/load.hpp"
#include "tests/models/datasets/files.hpp"

namespace leeway {
namespace {

using Catch::Matchers::Contains;

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

TEST_CASE("a file that is larger than the memory is refused before it is read, in every format") {
  // Without data on the disk: reading one would end the test's process.
  const test::TemporaryFolder folder;
  const auto huge = [&](const std::string& name) {
    std::filesystem::create_directories(std::filesystem::path(folder.path(name)).parent_path());
    folder.write(name, "");
    std::filesystem::resize_file(folder.path(name), std::uintmax_t{1} << 40);
    return folder.path(name);
  };
  const std::string text = huge("x.csv"), pixels = huge("x.idx"), array = huge("x.npy");
  huge("images/cat/1.png");
  plan::Csv csv;
  csv.train = text;
  for (const plan::DataSource& source :
       {plan::DataSource(csv), plan::DataSource(plan::Idx{pixels, pixels, pixels, pixels}),
        plan::DataSource(plan::TextCorpus{.file = text}),
        plan::DataSource(plan::Npy{.features = array, .labels = array}),
        plan::DataSource(plan::ImageFolder{folder.path("images"), folder.path("images"), 0.2})}) {
    const auto data = load_data(source, 1);
    REQUIRE_FALSE(data);
    CHECK_THAT(data.error().text, Contains("1.1 TB of memory, but only ") &&
                                      Contains("in the control group") &&
                                      Contains("give a part of the file"));
  }
}

TEST_CASE("an excerpt is short and printable") {
  CHECK(excerpt("abc") == "\"abc\"");
  CHECK(excerpt(std::string_view("a\n\xff\0", 4)) == R"("a\x0a\xff\x00")");
  CHECK(excerpt(std::string(41, 'x')) == "\"" + std::string(40, 'x') + "\"...");
}

}  // namespace
}  // namespace leeway
