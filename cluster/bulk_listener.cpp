// Callers are greeted without blocking, so that a silent caller does not delay the others.
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "cluster/bulk.hpp"
#include "cluster/this_host.hpp"
#include "core/check.hpp"
#include "core/text.hpp"

namespace leeway::cluster {
namespace {

/// Callers without a greeting. At this number the oldest is dropped, after it had some time.
constexpr std::size_t kMaxCallers = 64;
constexpr std::int64_t kCallerNs = 5'000'000'000, kLeastCallerNs = 500'000'000;
/// Pause when the system has no memory or descriptor for another connection.
constexpr std::int64_t kPauseNs = 100'000'000;
/// For one byte into an empty buffer.
constexpr int kAnswerMs = 1000;

std::uint16_t port_of(int socket) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size) != 0) return 0;
  if (own.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(own).sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in&>(own).sin_port);
}

}  // namespace

struct BulkListener::Caller {
  std::unique_ptr<BulkSocket> socket;
  std::int64_t since = 0;
  bool shaken = false;
  std::size_t taken = 0;
  std::array<std::byte, sizeof(BulkHello)> hello{};
  short waits_for = POLLIN;
};

Expected<std::unique_ptr<BulkListener>> BulkListener::open(const std::string& address,
                                                           std::shared_ptr<const BulkTls> tls,
                                                           Handlers handlers) {
  addrinfo* found = nullptr;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  if (const int error = getaddrinfo(address.c_str(), "0", &hints, &found); error != 0)
    return Error{concat(address, ": ", gai_strerror(error))};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, freeaddrinfo);
  const addrinfo* chosen = found;  // prefer IPv4
  for (const addrinfo* each = found; each; each = each->ai_next)
    if (chosen->ai_family != AF_INET && each->ai_family == AF_INET) chosen = each;
  Socket made(socket(chosen->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  Socket wakes(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made || !wakes || bind(made.number(), chosen->ai_addr, chosen->ai_addrlen) != 0 ||
      ::listen(made.number(), SOMAXCONN) != 0)
    return Error{concat("cannot listen on ", address, ": ", std::strerror(errno))};
  const std::uint16_t port = port_of(made.number());
  return std::unique_ptr<BulkListener>(new BulkListener(std::move(made), std::move(wakes), port,
                                                        std::move(tls), std::move(handlers)));
}

BulkListener::BulkListener(Socket socket, Socket wakes, std::uint16_t port,
                           std::shared_ptr<const BulkTls> tls, Handlers handlers)
    : socket_(std::move(socket)),
      wakes_(std::move(wakes)),
      port_(port),
      tls_(std::move(tls)),
      handlers_(std::move(handlers)),
      thread_([this] { run(); }) {}

BulkListener::~BulkListener() {
  const std::uint64_t one = 1;
  LW_CHECK(write(wakes_.number(), &one, sizeof one) == sizeof one);
  thread_.join();
}

void BulkListener::run() {
  std::vector<pollfd> polled;
  while (true) {
    const bool accepts = steady_ns() >= accept_after_;
    polled = {{.fd = wakes_.number(), .events = POLLIN, .revents = 0},
              {.fd = accepts ? socket_.number() : -1, .events = POLLIN, .revents = 0}};
    for (const Caller& caller : callers_)
      polled.push_back({.fd = caller.socket->number(), .events = caller.waits_for, .revents = 0});
    const int limit_ms = !accepts ? 50 : callers_.empty() ? -1 : 500;
    if (poll(polled.data(), polled.size(), limit_ms) < 0) continue;  // EINTR
    if (polled[0].revents != 0) return;
    for (std::size_t i = callers_.size(); i-- > 0;) {
      const bool done = polled[i + 2].revents != 0 && advance(callers_[i]);
      const bool late = !done && steady_ns() - callers_[i].since > kCallerNs;
      if (late) refuse("it sent no greeting in time");
      if (done || late) callers_.erase(callers_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (polled[1].revents != 0) accept_one();
  }
}

bool BulkListener::has_room() {
  if (callers_.size() < kMaxCallers) return true;
  if (steady_ns() - callers_.front().since < kLeastCallerNs) return false;
  refuse("too many callers without a greeting");
  callers_.pop_front();
  return true;
}

void BulkListener::accept_one() {
  const auto pause = [&] { accept_after_ = steady_ns() + kPauseNs; };
  if (!has_room()) return pause();
  Socket accepted(accept4(socket_.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!accepted) return pause();
  Caller caller;
  caller.socket =
      std::make_unique<BulkSocket>(std::move(accepted), BulkSocket::Side::called, tls_.get());
  caller.since = steady_ns();
  callers_.push_back(std::move(caller));
}

void BulkListener::refuse(const char* why) {
  if (const std::string note = refusals_.note(why); !note.empty()) handlers_.note(note);
}

/// True if the caller is done here.
bool BulkListener::advance(Caller& caller) {
  using Progress = BulkSocket::Progress;
  const auto wait_or_refuse = [&](Progress progress, const char* why) {
    caller.waits_for = progress == Progress::wants_write ? POLLOUT : POLLIN;
    if (progress == Progress::ended) refuse(why);
    return progress == Progress::ended;
  };
  if (!caller.shaken) {
    const Progress progress = caller.socket->shake_hands();
    if (progress != Progress::done)
      return wait_or_refuse(progress,
                            "its TLS handshake failed; is its certificate of this cluster?");
    caller.shaken = true;
  }
  auto missing = std::span(caller.hello).subspan(caller.taken);
  const Progress progress = caller.socket->read_some(missing);
  caller.taken = caller.hello.size() - missing.size();
  if (progress != Progress::done)
    return wait_or_refuse(progress, "it closed the connection without a greeting");
  welcome(caller);
  return true;
}

void BulkListener::welcome(Caller& caller) {
  BulkHello hello;
  std::memcpy(&hello, caller.hello.data(), sizeof hello);
  if (hello.magic != BulkHello{}.magic || !handlers_.knows(hello.token))
    return refuse("no matching connection");
  const char answer = 1;
  caller.socket->block(kAnswerMs);
  if (!caller.socket->write(&answer, sizeof answer)) return;
  caller.socket->block(0);
  handlers_.take(hello, std::move(caller.socket));
}

}  // namespace leeway::cluster
