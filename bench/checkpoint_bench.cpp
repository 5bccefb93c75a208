// Time to write a checkpoint and to load it, against plain writing and reading of as many bytes.
//
// A plain write creates a file, writes the tensors from memory and flushes it. A plain read fills
// new memory in a new process, as loading does. Reading is measured with the files in the page
// cache, and after they were dropped from it. Loading verifies all files, assembles the
// parameters, and builds the blocks of all shards, as a run that resumes on this machine.
//
//   checkpoint_bench [--folder .] [--megabytes 100] [--shards 1] [--load-shards 1] [--rounds 7]
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "actors/shard/parameter_bucket.hpp"
#include "bench/child.hpp"
#include "checkpoint/store.hpp"
#include "core/rng.hpp"
#include "core/text.hpp"
#include "models/datasets/load.hpp"

namespace {

using namespace leeway;
using bench::fail;
namespace fs = std::filesystem;

constexpr std::int64_t kWidth = 1024;
constexpr std::size_t kPiece = 4 << 20;  // bytes of a layer's weights

double seconds_of(const std::function<void()>& work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

void must(const Status& status) {
  if (!status) fail(status.error().text);
}

template <class T>
T must(Expected<T> value) {
  if (!value) fail(value.error().text);
  return std::move(*value);
}

/// Linear layers with momentum, whose weights and velocities have about this many bytes.
Plan plan_of(std::size_t bytes, std::uint32_t shards) {
  Plan plan;
  plan.name = "checkpoint-bench";
  plan.data = plan::Synthetic{64, 16, plan::Clusters{kWidth, kWidth, 3}};
  for (std::size_t i = 0; i < std::max<std::size_t>(bytes / 2 / kPiece, 1); ++i)
    plan.model.emplace_back(plan::Linear{kWidth});
  plan.optimizer = {0.05, 0, plan::Momentum{}};
  plan.consistency = plan::Bsp{};
  plan.workers = 1;
  plan.shards = shards;
  plan.stop.epochs = 1;
  return plan;
}

std::shared_ptr<const Job> job_of(const Plan& plan, JobOptions options = {}) {
  return must(make_job(plan, must(load_data(plan.data, plan.seed)), std::move(options)));
}

/// The state of all shards: random weights and velocities.
std::vector<std::vector<checkpoint::StoredBlock>> random_state(const Job& job) {
  std::vector<std::vector<checkpoint::StoredBlock>> shards(job.layout->shards());
  Rng rng(1);
  for (const Block& block : job.layout->blocks()) {
    checkpoint::StoredBlock& stored = shards[block.shard.value()].emplace_back();
    stored.block = &block;
    stored.slots.resize(1);
    for (Blob* blob : {&stored.weights, &stored.slots[0]}) {
      *blob = Blob::floats(block.floats);
      std::generate_n(blob->mutable_floats(), block.floats,
                      [&] { return static_cast<float>(rng.uniform()); });
    }
  }
  return shards;
}

/// Writes a checkpoint as a run does: the shards in parallel, then the manifest.
void write_checkpoint(const checkpoint::Store& store, std::uint64_t number, const Job& job,
                      const std::vector<std::vector<checkpoint::StoredBlock>>& shards) {
  checkpoint::Manifest manifest{.format = checkpoint::kFormat,
                                .contents = {checkpoint::kWeights, checkpoint::kOptimizer},
                                .leeway = checkpoint::program_version(),
                                .run = "bench",
                                .number = number};
  manifest.epoch_samples = job.data.train->size();
  manifest.scheduler.pipelines.resize(1);
  std::vector<std::vector<msg::StoredFile>> files(shards.size());
  std::vector<std::thread> threads;
  for (std::uint32_t shard = 0; shard < shards.size(); ++shard)
    threads.emplace_back([&, shard] {
      files[shard] = must(store.write_tensors(number, ShardId(shard), *job.model, shards[shard]));
    });
  for (auto& thread : threads) thread.join();
  for (const auto& some : files)
    manifest.files.insert(manifest.files.end(), some.begin(), some.end());
  for (const Block& block : job.layout->blocks()) {
    auto& state = manifest.blocks.emplace_back();
    for (const auto& slice : block.slices)
      state.slices.push_back(
          {job.model->parameters()[static_cast<std::size_t>(slice.parameter)].name, slice.first_row,
           slice.rows});
  }
  must(store.commit(manifest, job.given, 1000));
}

class File {
 public:
  File(const std::string& path, int flags) : descriptor_(::open(path.c_str(), flags, 0666)) {
    if (descriptor_ < 0) fail(path + " cannot be opened");
  }
  ~File() { ::close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  /// Calls write or read until all bytes are done.
  template <class Call, class Byte>
  void all(Call call, Byte* bytes, std::size_t size) {
    while (size > 0) {
      const auto done = call(descriptor_, bytes, size);
      if (done <= 0) fail("writing or reading fails");
      bytes += done;
      size -= static_cast<std::size_t>(done);
    }
  }
  void drop() { (void)::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED); }
  void flush() {
    if (::fsync(descriptor_) != 0) fail("fsync fails");
  }

 private:
  int descriptor_;
};

std::size_t plain_write(const std::string& path,
                        const std::vector<std::vector<checkpoint::StoredBlock>>& shards) {
  std::size_t bytes = 0;
  File file(path, O_WRONLY | O_CREAT | O_TRUNC);
  for (const auto& blocks : shards)
    for (const auto& stored : blocks)
      for (const Blob& blob : {stored.weights, stored.slots[0]}) {
        file.all(::write, blob.data(), blob.size());
        bytes += blob.size();
      }
  file.flush();
  return bytes;
}

/// Reads the file into blobs.
void plain_read(const std::string& path) {
  File file(path, O_RDONLY);
  std::vector<Blob> kept;
  for (std::size_t left = fs::file_size(path); left > 0; left -= kept.back().size()) {
    kept.push_back(Blob::allocate(std::min(left, kPiece)));
    file.all(::read, kept.back().mutable_data(), kept.back().size());
  }
}

/// Loads the latest checkpoint, and builds the state of all shards of `plan`. Returns the seconds
/// of both together.
double load_checkpoint(const std::string& folder, const Plan& plan) {
  const checkpoint::Store store(disk(), folder);
  const std::uint64_t number = must(store.numbers()).back();
  const auto data = must(load_data(plan.data, plan.seed));
  const auto model = must(make_model(plan, *data.train));
  return seconds_of([&] {
    JobOptions options;
    options.resumed = std::make_shared<checkpoint::Checkpoint>(must(store.load(number, *model)));
    const auto job = must(make_job(plan, data, std::move(options)));
    std::vector<ParameterBucket> buckets;
    for (std::uint32_t shard = 0; shard < plan.shards; ++shard)
      for (const Bucket& bucket : job->layout->buckets(ShardId(shard)))
        buckets.emplace_back(job, bucket, Device(), FirstState::of_run);
  });
}

/// Drops the content of all files below a folder from the page cache.
void drop_from_cache(const std::string& folder) {
  ::sync();
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) File(entry.path().string(), O_RDONLY).drop();
}

/// Two ways of the same work in each round, and their ratio.
class Pair {
 public:
  explicit Pair(std::string name) : name_(std::move(name)) {}
  void add(double plain, double ours) {
    plain_.push_back(plain);
    ours_.push_back(ours);
    ratios_.push_back(plain / ours);
  }
  void print(double megabytes) {
    if (plain_.empty()) return;
    std::printf("%-22s", name_.c_str());
    for (auto* seconds : {&plain_, &ours_}) {
      std::sort(seconds->begin(), seconds->end());
      std::printf(" %8.3f s (%.3f to %.3f) %6.0f MB/s", middle(*seconds), seconds->front(),
                  seconds->back(), megabytes / middle(*seconds));
    }
    std::sort(ratios_.begin(), ratios_.end());
    std::printf("   speed %.2f of plain; by round %.2f (%.2f to %.2f)\n",
                middle(plain_) / middle(ours_), middle(ratios_), ratios_.front(), ratios_.back());
  }

 private:
  static double middle(const std::vector<double>& sorted) { return sorted[sorted.size() / 2]; }

  std::string name_;
  std::vector<double> plain_, ours_, ratios_;
};

}  // namespace

int main(int argc, char** argv) {
  std::string folder = ".";
  std::size_t megabytes = 100;
  std::uint32_t shards = 1, load_shards = 1;
  int rounds = 7;
  CLI::App app("Writes and loads checkpoints.");
  app.add_option("--folder", folder, "Folder on the disk, for a temporary folder");
  app.add_option("--megabytes", megabytes, "Weights and velocities of the model");
  app.add_option("--shards", shards, "Shards that write")->check(CLI::Range(1, 64));
  app.add_option("--load-shards", load_shards, "Shards that load")->check(CLI::Range(1, 64));
  app.add_option("--rounds", rounds, "Interleaved rounds")->check(CLI::Range(1, 1000));
  std::string read_path, load_path;
  app.add_option("--read", read_path, "Read this file and print the seconds")->group("");
  app.add_option("--load", load_path, "Load from this folder and print the seconds")->group("");
  CLI11_PARSE(app, argc, argv);
  const Plan loading = plan_of(megabytes * 1'000'000, load_shards);
  if (!read_path.empty() || !load_path.empty()) {
    std::printf("%f\n", load_path.empty() ? seconds_of([&] { plain_read(read_path); })
                                          : load_checkpoint(load_path, loading));
    return 0;
  }
  std::string pattern = folder + "/checkpoint-bench-XXXXXX";
  if (!mkdtemp(pattern.data())) fail(folder + ": cannot be written; give another --folder");
  const std::string plain = pattern + "/plain";

  const auto job = job_of(plan_of(megabytes * 1'000'000, shards));
  const auto state = random_state(*job);
  const std::string folder_of_all = pattern + "/checkpoints";
  const checkpoint::Store store(disk(), folder_of_all);
  const auto child = [&](const std::string& flag, const std::string& path) {
    return bench::Child({flag, path, "--megabytes", std::to_string(megabytes), "--load-shards",
                         std::to_string(load_shards)})
        .number();
  };
  Pair write("write and flush"), cached("read, in the cache"), dropped("read from the disk");
  std::size_t bytes = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto number = static_cast<std::uint64_t>(round) + 1;
    fs::remove(plain);
    ::sync();
    const double plain_seconds = seconds_of([&] { bytes = plain_write(plain, state); });
    ::sync();
    write.add(plain_seconds, seconds_of([&] { write_checkpoint(store, number, *job, state); }));
    if (number > 1) must(store.remove(number - 1));
    for (Pair* pair : {&cached, &dropped}) {
      if (pair == &dropped) drop_from_cache(pattern);
      const double read_seconds = child("--read", plain);
      pair->add(read_seconds, child("--load", folder_of_all));
    }
  }
  fs::remove_all(pattern);
  const double size = static_cast<double>(bytes) * 1e-6;
  std::printf("%.0f MB, %u shards write, %u load, median (range) of %d rounds\n", size, shards,
              load_shards, rounds);
  for (Pair* pair : {&write, &cached, &dropped}) pair->print(size);
  return 0;
}
