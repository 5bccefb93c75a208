// Moving parameters between processes: pushes and pulls of the MLP's 2.14 MB by one and by two
// worker processes against one shard process, without computing gradients. Each byte is touched at
// both ends: a worker writes all of its gradient and sums all weights, the shard reads the gradient
// and writes new weights. Each transport in turn, interleaved.
//
//   push_pull_bench [--rounds 7] [--seconds 1] [--transports tcp,shm] [--tls DIR]
#include <sys/wait.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "cluster/mesh.hpp"

namespace {

using namespace leeway;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kParameters = 535818;  // MLP 784-512-256-10
constexpr Duration kPatience = seconds(10);
const Address kShard = address_of(ShardId(0));

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "push_pull_bench: %s\n", why.c_str());
  std::exit(1);
}

std::unique_ptr<Mesh> opened(MeshOptions options, MeshEvents events) {
  auto mesh = open_mesh(options, std::move(events));
  if (!mesh) fail(mesh.error().text);
  return std::move(*mesh);
}

/// In sixteen partial sums, so that it takes no longer than reading does.
float sum(const Blob& blob) {
  constexpr std::int64_t kLanes = 16;
  std::array<float, kLanes> totals{};
  const float* const values = blob.as_floats();
  for (std::int64_t i = 0; i + kLanes <= kParameters; i += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane)
      totals[static_cast<std::size_t>(lane)] += values[i + lane];
  return std::accumulate(totals.begin(), totals.end(), 0.f);
}

/// Adds a push to the weights and answers with the new ones, on a thread of its own, as a shard
/// does.
class Shard {
 public:
  explicit Shard(const MeshOptions& options) : weights_(Blob::floats(kParameters)) {
    std::fill_n(weights_.mutable_floats(), kParameters, 0.f);
    mesh_ = opened(options, {.on_message =
                                 [this](PeerId peer, Address from, Address, Message message) {
                                   std::lock_guard lock(mutex_);
                                   waiting_.push_back({peer, from, std::move(message)});
                                   changed_.notify_one();
                                 },
                             .on_up = {},
                             .on_silent = {},
                             .on_heard = {},
                             .on_reconnected = {},
                             .on_gone = {},
                             .on_note = {}});
  }
  std::uint16_t port() const { return mesh_->port(); }
  void serve() {
    while (true) {
      std::vector<Push> pushes;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !waiting_.empty(); });
        pushes.swap(waiting_);
      }
      for (auto& push : pushes) answer(push);
    }
  }

 private:
  struct Push {
    PeerId peer;
    Address from;
    Message message;
  };
  void answer(Push& push) {
    Blob updated = Blob::floats(kParameters);
    const float* const gradient = push.message.blobs()[0].as_floats();
    const float* const weights = weights_.as_floats();
    float* const out = updated.mutable_floats();
    for (std::int64_t i = 0; i < kParameters; ++i) out[i] = weights[i] - 0.01f * gradient[i];
    weights_ = updated;
    mesh_->send(push.peer, kShard, push.from, Message(std::vector<std::uint64_t>(16), {weights_}));
  }

  Blob weights_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Push> waiting_;
  std::unique_ptr<Mesh> mesh_;
};

/// Pushes and pulls for so long; how often a second.
double work(const MeshOptions& options, std::uint16_t port, double seconds) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Message> arrived;
  auto mesh = opened(options, {.on_message =
                                   [&](PeerId, Address, Address, Message message) {
                                     std::lock_guard lock(mutex);
                                     arrived.push_back(std::move(message));
                                     changed.notify_one();
                                   },
                               .on_up = {},
                               .on_silent = {},
                               .on_heard = {},
                               .on_reconnected = {},
                               .on_gone = {},
                               .on_note = {}});
  const auto shard = mesh->connect("127.0.0.1", port, kPatience);
  if (!shard) fail(shard.error().text);
  float kept = 0;
  const auto cycle = [&](float value) {
    Blob gradient = Blob::floats(kParameters);
    std::fill_n(gradient.mutable_floats(), kParameters, value);
    mesh->send(*shard, address_of(WorkerId(0)), kShard,
               Message(std::vector<std::uint64_t>(16), {std::move(gradient)}));
    std::unique_lock lock(mutex);
    if (!changed.wait_for(lock, std::chrono::seconds(10), [&] { return !arrived.empty(); }))
      fail("the shard does not answer");
    const Message weights = std::move(arrived.back());
    arrived.pop_back();
    lock.unlock();
    kept += sum(weights.blobs()[0]);
  };
  for (int i = 0; i < 20; ++i) cycle(1);  // memory that is warm
  const auto began = Clock::now();
  std::uint64_t cycles = 0;
  std::chrono::duration<double> took{};
  for (; took.count() < seconds; took = Clock::now() - began) cycle(static_cast<float>(++cycles));
  if (kept == 1) std::fprintf(stderr, " ");  // so that the sums are computed
  return static_cast<double>(cycles) / took.count();
}

/// A child process whose standard output is read here.
class Child {
 public:
  explicit Child(std::vector<std::string> words) {
    int ends[2];
    if (pipe(ends) != 0) fail("no pipe");
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], 1);
      close(ends[0]);
      std::vector<char*> argv;
      for (auto& word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      execv("/proc/self/exe", argv.data());
      _exit(127);
    }
    close(ends[1]);
    out_ = fdopen(ends[0], "r");
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    fclose(out_);
  }
  double number() {
    double value = 0;
    if (std::fscanf(out_, "%lf", &value) != 1) fail("a process of the benchmark ended early");
    return value;
  }

 private:
  pid_t pid_ = -1;
  FILE* out_ = nullptr;
};

double measure(int workers, const std::string& transport, const std::vector<std::string>& shared) {
  std::vector<std::string> all{"push_pull_bench", "--transport", transport};
  all.insert(all.end(), shared.begin(), shared.end());
  auto words = all;
  words.push_back("--serve");
  Child shard(words);
  words = all;
  words.push_back("--work");
  words.push_back(std::to_string(static_cast<int>(shard.number())));
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < workers; ++i) children.push_back(std::make_unique<Child>(words));
  double together = 0;
  for (auto& child : children) together += child->number();
  return together;
}

void print(const std::string& name, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double median = values[values.size() / 2];
  std::printf("%-24s %8.0f (%.0f to %.0f)   %6.2f GB/s both ways\n", name.c_str(), median,
              values.front(), values.back(), median * kParameters * 4 * 2 * 1e-9);
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 7;
  std::string seconds = "1", transports = "tcp,shm", transport = "tcp", tls;
  std::uint16_t port = 0;
  std::size_t window = MeshOptions{}.window_bytes;
  bool serve = false;
  CLI::App app("Push and pull of 2.14 MB between processes.");
  app.add_option("--rounds", rounds, "interleaved")->check(CLI::Range(1, 1000));
  app.add_option("--seconds", seconds, "of each measurement");
  app.add_option("--transports", transports, "tcp, shm or both with a comma between");
  app.add_option("--tls", tls, "Folder of a certificate; empty: none");
  app.add_option("--window", window, "Bytes under way to a process, at most");
  app.add_option("--transport", transport, "of one process")->group("");
  app.add_flag("--serve", serve, "be the shard")->group("");
  app.add_option("--work", port, "be a worker of the shard at this port")->group("");
  CLI11_PARSE(app, argc, argv);
  const MeshOptions options{
      .tls = tls,
      .transport = transport == "tcp" ? Transport::tcp : Transport::shared_memory,
      .window_bytes = window};
  if (serve) {
    Shard shard(options);
    std::printf("%d\n", shard.port());
    std::fflush(stdout);
    shard.serve();
  }
  if (port != 0) {
    const double rate = work(options, port, std::stod(seconds));
    std::printf("%f\n", rate);
    std::fflush(stdout);
    return 0;
  }
  std::map<std::string, std::vector<double>> rates;
  for (int round = 0; round < rounds; ++round)
    for (const std::string kind : {"tcp", "shm"})
      for (const int workers : {1, 2})
        if (transports.find(kind) != std::string::npos)
          rates[kind + (workers == 1 ? ", 1 worker" : ", 2 workers")].push_back(
              measure(workers, kind,
                      {"--tls", tls, "--seconds", seconds, "--window", std::to_string(window)}));
  std::printf("push + pull of %.2f MB a second, median (range) of %d rounds\n", kParameters * 4e-6,
              rounds);
  for (const auto& [name, values] : rates) print(name, values);
  return 0;
}
