// Bytes per second between two processes of one host, by three transports: loans (blobs read in
// place), a ring in shared memory (one copy per side), and TCP over loopback. Prints one table.
//
//   loans_bench [--rounds 9] [--mib 1024]
//
// The sender writes all bytes of each message and the receiver adds them up, after copying them out
// of the ring or the connection. At most 8 MiB or two messages are in flight. Loans are announced
// over a socket pair, and the receiver acknowledges each. The transports are interleaved within a
// round, after a warm-up round. Figures are the median, minimum and maximum of the rounds.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/text.hpp"
#include "tensor/shared_arena.hpp"
#include "transport/loans.hpp"

namespace {

using namespace leeway;

constexpr std::size_t kMiB = 1 << 20;

void check(bool fine, const char* what) {
  if (fine) return;
  std::perror(concat("loans_bench: ", what).c_str());
  std::_Exit(1);
}

template <class T>
T must(Expected<T> value) {
  if (value) return std::move(*value);
  std::fprintf(stderr, "loans_bench: %s\n", value.error().text.c_str());
  std::_Exit(1);
}

/// A stream between the two processes.
class Wire {
 public:
  explicit Wire(int fd) : fd_(fd) {}
  void send(const void* from, std::size_t bytes) {
    const auto* at = static_cast<const std::byte*>(from);
    while (bytes > 0) {
      const auto sent = ::send(fd_, at, bytes, MSG_NOSIGNAL);
      check(sent > 0, "send");
      at += sent;
      bytes -= static_cast<std::size_t>(sent);
    }
  }
  void receive(void* to, std::size_t bytes) {
    const auto received = ::recv(fd_, to, bytes, MSG_WAITALL);
    check(received == static_cast<ssize_t>(bytes), "recv");
  }
  template <class T>
  void put(const T& value) {
    send(&value, sizeof value);
  }
  template <class T>
  T get() {
    T value;
    receive(&value, sizeof value);
    return value;
  }

 private:
  int fd_;
};

/// A ring buffer with one writer and one reader, which copy. A side that waits yields the CPU.
class Ring {
 public:
  void write(const std::byte* from, std::size_t bytes) {
    while (bytes > 0) {
      const auto at = written_.load(std::memory_order_relaxed);
      const auto room = kBytes - (at - read_.load(std::memory_order_acquire));
      const auto part = std::min({bytes, room, kPart, kBytes - at % kBytes});
      if (part == 0) {
        ::sched_yield();
        continue;
      }
      std::memcpy(bytes_ + at % kBytes, from, part);
      written_.store(at + part, std::memory_order_release);
      from += part;
      bytes -= part;
    }
  }
  void read(std::byte* to, std::size_t bytes) {
    while (bytes > 0) {
      const auto at = read_.load(std::memory_order_relaxed);
      const auto there = written_.load(std::memory_order_acquire) - at;
      const auto part = std::min({bytes, there, kPart, kBytes - at % kBytes});
      if (part == 0) {
        ::sched_yield();
        continue;
      }
      std::memcpy(to, bytes_ + at % kBytes, part);
      read_.store(at + part, std::memory_order_release);
      to += part;
      bytes -= part;
    }
  }

 private:
  static constexpr std::size_t kBytes = 4 * kMiB, kPart = 128u << 10;
  alignas(64) std::atomic<std::size_t> written_{0};
  alignas(64) std::atomic<std::size_t> read_{0};
  alignas(4096) std::byte bytes_[kBytes];
};

Ring* new_ring() {
  void* const memory = ::mmap(nullptr, sizeof(Ring), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  check(memory != MAP_FAILED, "mmap");
  return new (memory) Ring;
}

std::array<int, 2> pair_of_sockets() {
  int ends[2];
  check(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  return {ends[0], ends[1]};
}

std::array<int, 2> tcp_connection() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0),
            caller = ::socket(AF_INET, SOCK_STREAM, 0);
  check(::bind(listener, generic, size) == 0 && ::listen(listener, 1) == 0, "listen");
  check(::getsockname(listener, generic, &size) == 0, "getsockname");
  check(::connect(caller, generic, size) == 0, "connect");
  const int called = ::accept(listener, nullptr, nullptr);
  check(called >= 0, "accept");
  const int on = 1;
  ::setsockopt(caller, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::close(listener);
  return {caller, called};
}

void fill(std::byte* bytes, std::size_t size, std::uint64_t first) {
  auto* const words = reinterpret_cast<std::uint64_t*>(bytes);
  for (std::size_t i = 0; i < size / 8; ++i) words[i] = first + i;
}

std::uint64_t sum(const std::byte* bytes, std::size_t size) {
  const auto* const words = reinterpret_cast<const std::uint64_t*>(bytes);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < size / 8; ++i) sum += words[i];
  return sum;
}

enum class Channel : std::uint64_t { loans, ring, tcp, end };

struct Order {
  Channel channel;
  std::uint64_t size, count;
};

struct Wires {
  Wire control, tcp;
  Ring* ring;
};

std::size_t window(std::size_t size) {
  return std::max<std::size_t>(2, 8 * kMiB / size);
}

class Receiver {
 public:
  explicit Receiver(Wires wires) : wires_(wires), borrower_(must(Borrower::create())) {
    wires_.control.put(borrower_.offer().words());
    const auto attached = borrower_.attach(LoanOffer::of(wires_.control.get<LoanOffer::Words>()));
    check(bool(attached), "attach");
  }
  void run() {
    for (;;) {
      const auto order = wires_.control.get<Order>();
      if (order.channel == Channel::end) return;
      std::uint64_t total = 0;
      for (std::uint64_t i = 0; i < order.count; ++i) total += one(order);
      wires_.control.put(total);
    }
  }

 private:
  std::uint64_t one(const Order& order) {
    if (order.channel == Channel::loans) {
      Blob blob = must(borrower_.borrow(Loan::of(wires_.control.get<Loan::Words>())));
      const std::uint64_t added = sum(blob.data(), blob.size());
      blob.reset();
      wires_.control.put(char{});
      return added;
    }
    if (buffer_.size() != order.size) buffer_ = Blob::allocate(order.size);
    if (order.channel == Channel::ring) wires_.ring->read(buffer_.mutable_data(), order.size);
    if (order.channel == Channel::tcp) wires_.tcp.receive(buffer_.mutable_data(), order.size);
    return sum(buffer_.data(), order.size);
  }

  Wires wires_;
  Borrower borrower_;
  Blob buffer_;
};

class Sender {
 public:
  explicit Sender(Wires wires)
      : wires_(wires),
        own_(must(Borrower::create())),
        lender_(must(Lender::create(LoanOffer::of(wires_.control.get<LoanOffer::Words>())))) {
    wires_.control.put(own_.offer().words());
  }
  ~Sender() { wires_.control.put(Order{Channel::end, 0, 0}); }

  /// Returns bytes per second.
  double measure(const Order& order) {
    if (buffer_.size() != order.size) buffer_ = Blob::allocate(order.size);
    const auto began = std::chrono::steady_clock::now();
    wires_.control.put(order);
    std::uint64_t expected = 0;
    for (std::uint64_t i = 0; i < order.count; ++i) {
      one(order, i);
      const std::uint64_t words = order.size / 8;
      expected += words * i + words * (words - 1) / 2;
    }
    if (order.channel == Channel::loans)
      for (std::uint64_t i = 0; i < std::min(order.count, window(order.size)); ++i)
        wires_.control.get<char>();
    check(wires_.control.get<std::uint64_t>() == expected, "the sum is wrong");
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - began;
    return static_cast<double>(order.size * order.count) / taken.count();
  }

 private:
  void one(const Order& order, std::uint64_t i) {
    if (order.channel == Channel::loans) {
      if (i >= window(order.size)) wires_.control.get<char>();
      Blob blob = Blob::allocate(order.size);
      fill(blob.mutable_data(), order.size, i);
      const auto loan = lender_.lend(blob);
      check(loan.has_value(), "lend");
      wires_.control.put(loan->words());
      return;
    }
    fill(buffer_.mutable_data(), order.size, i);
    if (order.channel == Channel::ring) wires_.ring->write(buffer_.data(), order.size);
    if (order.channel == Channel::tcp) wires_.tcp.send(buffer_.data(), order.size);
  }

  Wires wires_;
  Borrower own_;
  Lender lender_;
  Blob buffer_;
};

struct Spread {
  double median, low, high;
};

Spread spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

void print_line(Sender& sender, std::size_t size, std::size_t total, int rounds) {
  std::vector<double> rates[3], over_ring, over_tcp;
  for (int round = 0; round <= rounds; ++round) {
    double now[3];
    for (const Channel channel : {Channel::loans, Channel::ring, Channel::tcp})
      now[std::size_t(channel)] =
          sender.measure({channel, size, std::max<std::size_t>(total / size, 4)});
    if (round == 0) continue;
    for (std::size_t i = 0; i < 3; ++i) rates[i].push_back(now[i] * 1e-9);
    over_ring.push_back(now[0] / now[1]);
    over_tcp.push_back(now[0] / now[2]);
  }
  std::printf("%4zu MiB", size / kMiB);
  for (const auto& values : rates) {
    const Spread s = spread(values);
    std::printf("  %5.1f (%4.1f to %4.1f)", s.median, s.low, s.high);
  }
  for (const auto& values : {over_ring, over_tcp}) {
    const Spread s = spread(values);
    std::printf("  %4.2f (%4.2f to %4.2f)", s.median, s.low, s.high);
  }
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** words) {
  int rounds = 9;
  std::size_t mib = 1024;
  CLI::App app("Loans against a ring in shared memory and TCP.", "loans_bench");
  app.add_option("--rounds", rounds, "Measured rounds")->check(CLI::Range(1, 1000));
  app.add_option("--mib", mib, "MiB per transport and round")->check(CLI::Range(64, 1 << 20));
  CLI11_PARSE(app, count, words);

  const auto control = pair_of_sockets(), tcp = tcp_connection();
  Ring* const ring = new_ring();
  const pid_t child = ::fork();  // before either process has an arena
  check(child >= 0, "fork");
  check(bool(use_shared_arena()), "use_shared_arena");
  if (child == 0) {
    ::close(control[0]);
    ::close(tcp[0]);
    Receiver({Wire(control[1]), Wire(tcp[1]), ring}).run();
    std::_Exit(0);
  }
  ::close(control[1]);
  ::close(tcp[1]);
  std::printf(
      "GB/s, median of %d rounds (lowest to highest)\n%8s  %-20s  %-20s  %-20s  %-19s  %s\n",
      rounds, "", "loans", "ring", "TCP", "loans over ring", "loans over TCP");
  {
    Sender sender({Wire(control[0]), Wire(tcp[0]), ring});
    for (const std::size_t size : {1 * kMiB, 4 * kMiB, 64 * kMiB})
      print_line(sender, size, mib * kMiB, rounds);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}
