// Store: files of checkpoints on a real disk.
#include "checkpoint/store.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "checkpoint/manifest.hpp"
#include "core/text.hpp"
#include "sim/disk.hpp"
#include "tests/checkpoint/small_checkpoint.hpp"
#include "tests/support/process.hpp"

namespace leeway::test {
namespace {

using Catch::Matchers::Contains;
using checkpoint::Store;

struct OnDisk {
  TemporaryFolder folder;
  Store store{disk(), folder / "checkpoints"};
  SmallCheckpoint small{3};

  std::string file(std::uint64_t number, const std::string& name) const {
    return store.path(number) + "/" + name;
  }
  std::string load_error(std::uint64_t number = 1) const {
    const auto loaded = store.load(number, *small.model);
    return loaded ? "" : loaded.error().text;
  }
};

void append(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app) << text;
}

}  // namespace

TEST_CASE("a checkpoint is read as it was written, with split parameters and optimizer state") {
  OnDisk on;
  REQUIRE(on.small.write(on.store, 1));
  const auto loaded = on.store.load(1, *on.small.model);
  REQUIRE(loaded);
  require_same(on.small, loaded->parameters);
  CHECK(loaded->plan == on.small.plan);
  CHECK(loaded->manifest.run == "small");
  for (const auto& parameter : loaded->parameters) {
    REQUIRE_FALSE(parameter.rows.empty());
    for (const auto& rows : parameter.rows) CHECK(rows.version == Version(1));
  }
  REQUIRE(on.store.verify(1));
}

TEST_CASE("only the latest checkpoints are kept, and remains of incomplete ones are removed") {
  OnDisk on;
  for (const std::uint64_t number : {1, 2, 4, 5}) REQUIRE(on.small.write(on.store, number, 2));
  CHECK(*on.store.numbers() == std::vector<std::uint64_t>{4, 5});
  REQUIRE(on.store.write_tensors(6, ShardId(0), *on.small.model, {}));
  CHECK(*on.store.numbers() == std::vector<std::uint64_t>{4, 5});
  REQUIRE(on.small.write(on.store, 7, 2));
  CHECK(*on.store.numbers() == std::vector<std::uint64_t>{5, 7});
  CHECK_FALSE(std::filesystem::exists(on.store.path(6)));
}

TEST_CASE("without a folder there are no checkpoints") {
  const OnDisk on;
  CHECK(on.store.numbers()->empty());
}

TEST_CASE("a folder that another process makes meanwhile holds no checkpoints") {
  /// Another process makes the folder after the first look at it.
  struct Shared final : sim::SimulatedDisk {
    Expected<std::vector<std::string>> list(const std::string& folder) override {
      auto names = SimulatedDisk::list(folder);
      if (folder == "checkpoints" && !names) REQUIRE(make_folder(folder));
      return names;
    }
  } shared;
  const auto numbers = Store(shared, "checkpoints").numbers();
  REQUIRE(numbers);
  CHECK(numbers->empty());
}

TEST_CASE("a damaged, shortened or missing file is named with the cause") {
  OnDisk on;
  REQUIRE(on.small.write(on.store, 1));
  for (const std::string name :
       {"weights-0.safetensors", "weights-2.safetensors", "optimizer-1.safetensors", "plan.json"}) {
    const std::string path = on.file(1, name);
    const auto original = path + ".original";
    std::filesystem::copy_file(path, original);
    {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(-1, std::ios::end);
      file.put('\x7f');
    }
    CHECK_THAT(on.load_error(), Contains(path + ": has digest") && Contains("damaged"));
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
    CHECK_THAT(on.load_error(), Contains(path + ": has ") && Contains("the manifest states"));
    CHECK_FALSE(on.store.verify(1));
    std::filesystem::remove(path);
    CHECK_THAT(on.load_error(), Contains(path + ": cannot be read: No such file"));
    std::filesystem::rename(original, path);
    CHECK(on.load_error().empty());
  }
}

TEST_CASE("a manifest that is damaged, of another format, or with unknown contents is refused") {
  OnDisk on;
  REQUIRE(on.small.write(on.store, 1));
  const std::string path = on.file(1, "manifest.json");
  std::string text;
  std::getline(std::ifstream(path), text, '\0');
  const std::string whole = text;
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const std::size_t at = changed.find(from);
    REQUIRE(at != std::string::npos);
    changed.replace(at, from.size(), to);
    std::ofstream(path) << changed;
    return on.load_error();
  };
  CHECK(with("\"format\": 1", "\"format\": 2") ==
        path +
            ": is of format 2, written by Leeway 0.1.0; this program reads format 1: resume "
            "with that version");
  // A later version would state the digest of these contents.
  text = text.substr(0, text.rfind(",\n \"digest\"")) + "\n}";
  text.replace(text.find("\"optimizer\""), 11, "\"residuals\"");
  std::ofstream(path) << checkpoint::add_digest(text);
  CHECK_THAT(on.load_error(), Contains("holds \"residuals\", which this"));
  text = whole;
  CHECK_THAT(with("\"number\": 1", "\"number\": 2"),
             Contains(path + ": has digest") && Contains("the file is damaged"));
  CHECK_THAT(with("\"digest\": \"", "\"digest\": \"0"), Contains("the file is damaged"));
  std::ofstream(path) << text;
  std::filesystem::copy(on.store.path(1), on.store.path(2));
  CHECK_THAT(on.load_error(2), Contains("is of checkpoint 000001"));
  CHECK_THAT(with("{", "["), Contains(path));
  append(path, "x");
  CHECK_FALSE(on.store.verify(1));
}

TEST_CASE("a checkpoint of another model is refused by the name of a tensor") {
  OnDisk on;
  REQUIRE(on.small.write(on.store, 1));
  const auto load = [&](std::vector<plan::Layer> layers) {
    const auto model =
        *Model::build(std::move(layers), plan::Loss::softmax_cross_entropy, Shape{5}, 3, 0);
    const auto loaded = on.store.load(1, *model);
    return loaded ? "" : loaded.error().text;
  };
  CHECK_THAT(load({plan::Linear{12}, plan::Relu{}, plan::Linear{4}, plan::Linear{3}}),
             Contains("resume with the model that was trained"));
  CHECK_THAT(load({plan::Linear{3}}),
             Contains("is not in this model") || Contains("the model has"));
}

TEST_CASE("a file of another checkpoint is refused") {
  OnDisk on;
  REQUIRE(on.small.write(on.store, 1));
  on.small.blocks[0].weights = Blob::floats(on.small.blocks[0].block->floats);
  std::fill_n(on.small.blocks[0].weights.mutable_floats(), on.small.blocks[0].block->floats, 1.0f);
  REQUIRE(on.small.write(on.store, 2));
  const std::string name = concat("weights-", on.small.blocks[0].block->shard, ".safetensors");
  std::filesystem::copy_file(on.file(2, name), on.file(1, name),
                             std::filesystem::copy_options::overwrite_existing);
  CHECK_THAT(on.load_error(1), Contains(name + ": has digest"));
  CHECK(on.load_error(2).empty());
}

TEST_CASE("a folder that cannot be written is named") {
  OnDisk on;
  const Store store(disk(), "/proc/no/checkpoints");
  const auto written = on.small.write(store, 1);
  REQUIRE_FALSE(written);
  CHECK_THAT(written.error().text, Contains("/proc/no/checkpoints"));
}

}  // namespace leeway::test
