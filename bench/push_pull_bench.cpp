// Pushes and pulls of an MLP's parameters (2.14 MB) by one and by two worker processes to one shard
// process, without computing gradients. Both ends touch each byte: a worker writes its gradient and
// sums all weights, the shard reads the gradient and writes new weights. All transports are
// interleaved, with two baselines: plain TCP without Leeway, and the arithmetic in one process.
//
//   push_pull_bench [--rounds 7] [--seconds 1] [--transports none,plain,tcp,shm] [--tls DIR]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "bench/child.hpp"
#include "bench/inbox.hpp"
#include "bench/plain_tcp.hpp"
#include "bench/sum.hpp"
#include "transport/mesh.hpp"

namespace {

using namespace leeway;
using namespace leeway::bench;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kParameters = 535818;  // MLP 784-512-256-10
constexpr Duration kPatience = seconds(10);
/// A server ends after this time without a request.
constexpr std::chrono::hours kIdle{1};
const Address kShard = address_of(ShardId(0));

std::unique_ptr<Mesh> opened(const MeshOptions& options, Inbox& inbox) {
  auto mesh = open_mesh(options, inbox.events());
  if (!mesh) fail(mesh.error().text);
  return std::move(*mesh);
}

float sum(const Blob& blob) {
  return bench::sum({blob.as_floats(), static_cast<std::size_t>(kParameters)});
}

/// The parameters of a shard.
class Weights {
 public:
  Weights() : now_(Blob::floats(kParameters)) {
    std::fill_n(now_.mutable_floats(), kParameters, 0.f);
  }
  Blob after(const Blob& gradient) {
    Blob updated = Blob::floats(kParameters);
    const float* const pushed = gradient.as_floats();
    const float* const weights = now_.as_floats();
    float* const out = updated.mutable_floats();
    for (std::int64_t i = 0; i < kParameters; ++i) out[i] = weights[i] - 0.01f * pushed[i];
    return now_ = updated;
  }

 private:
  Blob now_;
};

void print_port(std::uint16_t port) {
  std::printf("%d\n", port);
  std::fflush(stdout);
}

/// Adds pushes to the weights and answers with new weights, on a separate thread like a shard.
void serve(const MeshOptions& options) {
  Weights weights;
  Inbox inbox;
  const auto mesh = opened(options, inbox);
  print_port(mesh->port());
  while (const auto push = inbox.take(kIdle))
    mesh->send(push->peer, kShard, push->from,
               Message(std::vector<std::uint64_t>(16), {weights.after(push->message.blobs()[0])}));
}

/// serve() without a mesh: one thread and one connection per worker.
void serve_plain(int workers) {
  Weights weights;
  std::mutex mutex;
  PlainListener listener;
  print_port(listener.port());
  std::vector<std::thread> threads;
  for (int i = 0; i < workers; ++i)
    threads.emplace_back([&, worker = std::make_shared<PlainTcp>(listener.accept())] {
      Blob gradient = Blob::floats(kParameters);
      while (worker->take(gradient.mutable_data(), gradient.size())) {
        std::unique_lock lock(mutex);
        const Blob updated = weights.after(gradient);
        lock.unlock();
        worker->put(updated.data(), updated.size());
      }
    });
  for (auto& thread : threads) thread.join();
}

/// Sends a gradient and returns the new weights.
using Exchange = std::function<Blob(Blob gradient)>;

/// Pushes and pulls for `seconds`; returns cycles per second.
double work(const Exchange& exchange, double seconds) {
  float kept = 0;
  const auto cycle = [&](float value) {
    Blob gradient = Blob::floats(kParameters);
    std::fill_n(gradient.mutable_floats(), kParameters, value);
    kept += sum(exchange(std::move(gradient)));
  };
  for (int i = 0; i < 20; ++i) cycle(1);  // warm-up
  const auto began = Clock::now();
  std::uint64_t cycles = 0;
  std::chrono::duration<double> took{};
  for (; took.count() < seconds; took = Clock::now() - began) cycle(static_cast<float>(++cycles));
  if (kept == 1) std::fprintf(stderr, " ");  // keeps the compiler from removing the sums
  return static_cast<double>(cycles) / took.count();
}

double work_on_mesh(const MeshOptions& options, std::uint16_t port, double seconds) {
  Inbox inbox;
  const auto mesh = opened(options, inbox);
  const auto shard = mesh->connect("127.0.0.1", port, kPatience);
  if (!shard) fail(shard.error().text);
  return work(
      [&](Blob gradient) {
        mesh->send(*shard, address_of(WorkerId(0)), kShard,
                   Message(std::vector<std::uint64_t>(16), {std::move(gradient)}));
        const auto weights = inbox.take(std::chrono::seconds(10));
        if (!weights) fail("the shard does not answer");
        return weights->message.blobs()[0];
      },
      seconds);
}

double work_plain(std::uint16_t port, double seconds) {
  PlainTcp shard = PlainTcp::call(port);
  Blob weights = Blob::floats(kParameters);
  return work(
      [&](const Blob& gradient) {
        shard.put(gradient.data(), gradient.size());
        if (!shard.take(weights.mutable_data(), weights.size()))
          fail("the shard closed the connection");
        return weights;
      },
      seconds);
}

/// Only the arithmetic, in one process.
double compute_only(double seconds) {
  Weights weights;
  return work([&](const Blob& gradient) { return weights.after(gradient); }, seconds);
}

double measure(int workers, const std::string& transport, const std::vector<std::string>& shared) {
  std::vector<std::string> all{"--transport", transport};
  all.insert(all.end(), shared.begin(), shared.end());
  auto words = all;
  words.push_back("--serve");
  words.push_back(std::to_string(workers));
  Child shard(words);
  words = all;
  words.push_back("--work");
  words.push_back(std::to_string(shard.port()));
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < workers; ++i) children.push_back(std::make_unique<Child>(words));
  double together = 0;
  for (auto& child : children) together += child->number();
  return together;
}

void print(const std::string& name, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double median = values[values.size() / 2];
  std::printf("%-24s %8.0f (%.0f to %.0f)   %6.2f GB/s in both directions\n", name.c_str(), median,
              values.front(), values.back(), median * kParameters * 4 * 2 * 1e-9);
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 7;
  std::string seconds = "1", transports = "none,plain,tcp,shm", transport = "tcp", tls;
  std::uint16_t port = 0;
  std::size_t window = MeshOptions{}.window_bytes;
  int workers = 0;
  CLI::App app("Push and pull of 2.14 MB between processes.");
  app.add_option("--rounds", rounds, "Interleaved rounds")->check(CLI::Range(1, 1000));
  app.add_option("--seconds", seconds, "Seconds per measurement");
  app.add_option("--transports", transports, "Comma-separated: none, plain, tcp, shm");
  app.add_option("--tls", tls, "Folder of a certificate; without it no TLS");
  app.add_option("--window", window, "Largest number of bytes in flight to a process");
  app.add_option("--transport", transport, "Transport of a child process")->group("");
  app.add_option("--serve", workers, "Be the shard of this many workers")->group("");
  app.add_option("--work", port, "Be a worker of the shard at this port")->group("");
  CLI11_PARSE(app, argc, argv);
  const MeshOptions options{
      .tls = tls,
      .transport = transport == "tcp" ? Transport::tcp : Transport::shared_memory,
      .window_bytes = window};
  const bool plain = transport == "plain";
  if (workers > 0) {
    plain ? serve_plain(workers) : serve(options);
    return 0;
  }
  if (port != 0) {
    const double limit = std::stod(seconds);
    std::printf("%f\n", plain ? work_plain(port, limit) : work_on_mesh(options, port, limit));
    std::fflush(stdout);
    return 0;
  }
  std::map<std::string, std::vector<double>> rates;
  for (int round = 0; round < rounds; ++round) {
    if (transports.find("none") != std::string::npos)
      rates["none"].push_back(compute_only(std::stod(seconds)));
    for (const std::string kind : {"plain", "tcp", "shm"})
      for (const int count : {1, 2})
        if (transports.find(kind) != std::string::npos)
          rates[kind + (count == 1 ? ", 1 worker" : ", 2 workers")].push_back(
              measure(count, kind,
                      {"--tls", tls, "--seconds", seconds, "--window", std::to_string(window)}));
  }
  std::printf("push + pull of %.2f MB per second, median (range) of %d rounds\n",
              kParameters * 4e-6, rounds);
  for (const auto& [name, values] : rates) print(name, values);
  return 0;
}
