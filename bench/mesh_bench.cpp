// The mesh between two processes of one host, compared with a plain TCP socket: streams of
// messages, small round trips, both over TLS, and the memory of a sender whose receiver is stopped.
//
//   mesh_bench [--rounds 7] [--megabytes 1024] [--trips 5000] [--window-mib 2] [--stopped 10]
//
// The sender writes and the receiver reads all bytes. The rounds of all rows are interleaved.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

#include "bench/child.hpp"
#include "bench/inbox.hpp"
#include "bench/plain_tcp.hpp"
#include "core/memory.hpp"
#include "transport/certificates.hpp"
#include "transport/mesh.hpp"

namespace {

using namespace leeway;
using namespace leeway::bench;
using Clock = std::chrono::steady_clock;

constexpr Address kFrom{RoleKind::worker, 0}, kTo{RoleKind::shard, 0};
/// The header of a message that requests an answer.
constexpr std::uint64_t kAnswer = 1;
/// Bytes that may be sent before the receiver reports that it has read them; at least two messages.
constexpr std::size_t kMaxUnread = 6u << 20;
/// A server ends after this time without a request.
constexpr std::chrono::hours kIdle{1};

struct Setting {
  int rounds = 7;
  std::size_t megabytes = 1024;
  int trips = 5000;
  std::size_t window_mib = 2;
  int stopped = 10;
  std::string serve;  // transport of a server process: "tcp" or "mesh"
  std::string tls;
  bool shared_memory = false;

  MeshOptions options() const {
    return {.tls = tls,
            .transport = shared_memory ? Transport::shared_memory : Transport::tcp,
            .window_bytes = window_mib << 20};
  }
};

double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

void write_all_bytes(std::byte* bytes, std::size_t size, std::uint64_t seed) {
  auto* const words = reinterpret_cast<std::uint64_t*>(bytes);
  for (std::size_t i = 0; i < size / 8; ++i) words[i] = seed + i;
}
std::uint64_t read_all_bytes(const std::byte* bytes, std::size_t size) {
  const auto* const words = reinterpret_cast<const std::uint64_t*>(bytes);
  return std::accumulate(words, words + size / 8, std::uint64_t{0});
}

// Plain TCP: a message is its length in eight bytes, and its bytes. The server answers empty
// messages.

void serve_tcp() {
  PlainListener listener;
  std::printf("%d\n", listener.port());
  std::fflush(stdout);
  PlainTcp caller = listener.accept();
  std::uint64_t length = 0, sum = 0;
  Blob blob;
  while (caller.take(&length, sizeof length)) {
    if (blob.size() < length) blob = Blob::allocate(length);
    if (!caller.take(blob.mutable_data(), length)) return;
    sum += read_all_bytes(blob.data(), length);
    if (length == 0) caller.put(&sum, sizeof sum);
  }
}

void serve_mesh(const Setting& setting) {
  Inbox inbox;
  const auto mesh = open_mesh(setting.options(), inbox.events());
  if (!mesh) fail(mesh.error().text);
  std::printf("%d\n", (*mesh)->port());
  std::fflush(stdout);
  std::uint64_t sum = 0, read = 0;
  while (auto item = inbox.take(kIdle)) {
    for (const Blob& blob : item->message.blobs()) sum += read_all_bytes(blob.data(), blob.size());
    ++read;
    if (item->message.header()[0] == kAnswer)
      (*mesh)->send(item->peer, kTo, kFrom, Message(std::vector<std::uint64_t>{read, sum}, {}));
  }
}

/// A connection to another process.
class Link {
 public:
  virtual ~Link() = default;
  /// Returns GB/s.
  virtual double stream(std::size_t bytes, std::size_t messages) = 0;
  /// Returns the median round trip in microseconds.
  virtual double trip(int count) = 0;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

class PlainLink final : public Link {
 public:
  PlainLink() : server_({"--serve", "tcp"}), connection_(PlainTcp::call(server_.port())) {}
  double stream(std::size_t bytes, std::size_t messages) override {
    Blob blob = Blob::allocate(bytes);
    ask();
    const auto began = Clock::now();
    for (std::size_t i = 0; i < messages; ++i) {
      write_all_bytes(blob.mutable_data(), bytes, i);
      const std::uint64_t length = bytes;
      connection_.put(&length, sizeof length);
      connection_.put(blob.data(), bytes);
    }
    ask();
    return static_cast<double>(bytes * messages) * 1e-9 / seconds_since(began);
  }
  double trip(int count) override {
    std::vector<double> all;
    for (int i = 0; i < count; ++i) {
      const auto began = Clock::now();
      ask();
      all.push_back(1e6 * seconds_since(began));
    }
    return median(std::move(all));
  }

 private:
  void ask() {
    std::uint64_t word = 0;
    connection_.put(&word, sizeof word);
    if (!connection_.take(&word, sizeof word)) fail("the server does not answer");
  }
  Child server_;
  PlainTcp connection_;
};

class MeshLink final : public Link {
 public:
  explicit MeshLink(const Setting& setting) : server_(arguments(setting)) {
    MeshEvents events;
    events.on_message = [this](PeerId, Address, Address, const Message& answer) {
      std::lock_guard lock(mutex_);
      read_ = answer.header()[0];
      changed_.notify_one();
    };
    auto mesh = open_mesh(setting.options(), events);
    if (!mesh) fail(mesh.error().text);
    mesh_ = std::move(*mesh);
    const auto peer = mesh_->connect("127.0.0.1", server_.port(), seconds(10));
    if (!peer) fail(peer.error().text);
    peer_ = *peer;
  }
  double stream(std::size_t bytes, std::size_t messages) override {
    const std::size_t ahead = std::max<std::size_t>(2, kMaxUnread / bytes), often = ahead / 2;
    const auto began = Clock::now();
    for (std::size_t i = 0; i < messages; ++i) {
      Blob blob = Blob::allocate(bytes);
      write_all_bytes(blob.mutable_data(), bytes, i);
      std::vector<Blob> blobs;
      blobs.push_back(std::move(blob));
      const bool ask = i % often == 0 || i + 1 == messages;
      send(Message(std::vector<std::uint64_t>{ask ? kAnswer : 0}, std::move(blobs)));
      wait(ahead);
    }
    wait(0);
    return static_cast<double>(bytes * messages) * 1e-9 / seconds_since(began);
  }
  double trip(int count) override {
    std::vector<double> all;
    for (int i = 0; i < count; ++i) {
      const auto began = Clock::now();
      send(Message(std::vector<std::uint64_t>{kAnswer}, {}));
      wait(0);
      all.push_back(1e6 * seconds_since(began));
    }
    return median(std::move(all));
  }
  void send(Message message) {
    ++sent_;
    mesh_->send(peer_, kFrom, kTo, std::move(message));
  }
  /// Waits until the server has read all but `open` of the sent messages.
  void wait(std::uint64_t open) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return sent_ - read_ <= open; });
  }
  PeerCounts counts() const { return mesh_->counts(peer_); }
  const Child& server() const { return server_; }

 private:
  static std::vector<std::string> arguments(const Setting& setting) {
    std::vector<std::string> words = {"--serve",      "mesh",
                                      "--tls",        setting.tls,
                                      "--window-mib", std::to_string(setting.window_mib)};
    if (setting.shared_memory) words.push_back("--shared-memory");
    return words;
  }
  Child server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t sent_ = 0, read_ = 0;
  PeerId peer_;
  std::unique_ptr<Mesh> mesh_;
};

/// A temporary TLS folder with its own certificate authority.
std::filesystem::path new_tls_folder() {
  std::string folder = (std::filesystem::temp_directory_path() / "mesh-bench-XXXXXX").string();
  if (!mkdtemp(folder.data())) fail("cannot create a temporary folder");
  const auto made = make_certificates({.folder = folder});
  if (!made) fail(made.error().text);
  return made->nodes[0].folder;
}

double resident_mib() {
  return static_cast<double>(resident_bytes()) / (1 << 20);
}

void print_row(const std::string& name, std::vector<double> values, double plain) {
  std::ranges::sort(values);
  std::printf("%-28s %8.2f  (%.2f to %.2f)  %5.2f\n", name.c_str(), median(values), values.front(),
              values.back(), median(values) / plain);
}

void measure_stopped(const Setting& setting) {
  MeshLink link(setting);
  link.stream(4u << 20, 32);
  const std::uint64_t before_bytes = link.counts().bytes_out;
  Blob blob = Blob::allocate(4u << 20);
  write_all_bytes(blob.mutable_data(), blob.size(), 1);
  const Message message(std::vector<std::uint64_t>{0}, {blob});
  link.server().signal(SIGSTOP);
  const double before = resident_mib();
  const auto began = Clock::now();
  std::uint64_t sent = 0;
  for (; seconds_since(began) < setting.stopped; ++sent) {
    link.send(message);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const double after = resident_mib();
  const PeerCounts counts = link.counts();
  std::printf(
      "receiver stopped for %d s: %llu messages of 4 MiB queued, %.1f MiB left this "
      "process, "
      "%llu wait;\nresident memory %.1f MiB before, %.1f after\n",
      setting.stopped, static_cast<unsigned long long>(sent),
      static_cast<double>(counts.bytes_out - before_bytes) / (1 << 20),
      static_cast<unsigned long long>(counts.waiting), before, after);
}

void measure(const Setting& setting) {
  Setting by_memory = setting, over_tls = setting;
  by_memory.shared_memory = true;
  const std::filesystem::path tls = new_tls_folder();
  over_tls.tls = tls;
  std::map<std::string, std::unique_ptr<Link>> links;
  links["1 plain TCP"] = std::make_unique<PlainLink>();
  links["2 mesh, TCP"] = std::make_unique<MeshLink>(setting);
  links["3 mesh, TLS"] = std::make_unique<MeshLink>(over_tls);
  links["4 mesh, shared memory"] = std::make_unique<MeshLink>(by_memory);
  std::filesystem::remove_all(tls.parent_path());
  const std::vector<std::size_t> sizes = {1u << 20, 4u << 20, 64u << 20};
  std::map<std::size_t, std::map<std::string, std::vector<double>>> rates;
  std::map<std::string, std::vector<double>> trips;
  for (int round = -1; round < setting.rounds; ++round)
    for (auto& [name, link] : links) {
      for (const std::size_t size : sizes) {
        const double rate =
            link->stream(size, std::max<std::size_t>(1, (setting.megabytes << 20) / size));
        if (round >= 0) rates[size][name].push_back(rate);
      }
      const double trip = link->trip(setting.trips);
      if (round >= 0) trips[name].push_back(trip);
    }
  for (const std::size_t size : sizes) {
    std::printf("\nstream of %zu MiB messages    GB/s   (range)       of plain\n", size >> 20);
    for (auto& [name, values] : rates[size])
      print_row(name.substr(2), values, median(rates[size]["1 plain TCP"]));
  }
  std::printf("\nround trip of 8 bytes          us    (range)       of plain\n");
  for (auto& [name, values] : trips)
    print_row(name.substr(2), values, median(trips["1 plain TCP"]));
  std::printf("\n");
  if (setting.stopped > 0) measure_stopped(setting);
}

}  // namespace

int main(int argc, char** argv) {
  Setting setting;
  CLI::App app("The mesh compared with plain TCP, between two processes of this host.");
  app.add_option("--rounds", setting.rounds, "Rounds of each row")->check(CLI::PositiveNumber);
  app.add_option("--megabytes", setting.megabytes, "MB per stream")->check(CLI::PositiveNumber);
  app.add_option("--trips", setting.trips, "Round trips per round")->check(CLI::PositiveNumber);
  app.add_option("--window-mib", setting.window_mib, "Window of the mesh in MiB")
      ->check(CLI::PositiveNumber);
  app.add_option("--stopped", setting.stopped,
                 "Seconds for which a receiver is stopped; 0 skips this test");
  app.add_option("--serve", setting.serve)->group("");
  app.add_option("--tls", setting.tls)->group("");
  app.add_flag("--shared-memory", setting.shared_memory)->group("");
  CLI11_PARSE(app, argc, argv);
  if (setting.serve == "tcp")
    serve_tcp();
  else if (setting.serve == "mesh")
    serve_mesh(setting);
  else
    measure(setting);
}
