#include "transport/reception.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/text.hpp"
#include "core/this_host.hpp"

namespace leeway::transport {
namespace {

/// Callers that are not greeted yet. At this number the oldest is dropped, after it had some time.
constexpr std::size_t kMaxCallers = 64;
constexpr std::int64_t kCallerNs = 5'000'000'000, kLeastCallerNs = 500'000'000;
constexpr const char* kNotWatched =
    "the kernel watches no more sockets for this user; raise fs.epoll.max_user_watches";
/// Pause when no place, memory or descriptor is left for another connection.
constexpr std::int64_t kPauseNs = 100'000'000;

std::uint16_t port_of(int socket) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size) != 0) return 0;
  if (own.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(own).sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in&>(own).sin_port);
}

/// Listens at the address; prefers IPv4 if a name has both.
Expected<Socket> listen_at(const std::string& address, std::uint16_t port) {
  addrinfo* found = nullptr;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  const int error = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) return Error{gai_strerror(error)};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, freeaddrinfo);
  const addrinfo* chosen = found;
  for (const addrinfo* each = found; each; each = each->ai_next)
    if (chosen->ai_family != AF_INET && each->ai_family == AF_INET) chosen = each;
  Socket made(socket(chosen->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made) return Error{std::strerror(errno)};
  const int yes = 1;
  setsockopt(made.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(made.number(), chosen->ai_addr, chosen->ai_addrlen) != 0 ||
      ::listen(made.number(), SOMAXCONN) != 0)
    return Error{std::strerror(errno)};
  return made;
}

}  // namespace

/// A caller until it is greeted or refused.
class Reception::Caller final : public Poller::Watcher,
                                public std::enable_shared_from_this<Caller> {
 public:
  Caller(Reception& reception, std::unique_ptr<Stream> stream)
      : since(steady_ns()), reception_(reception), stream_(std::move(stream)) {}

  /// False: its socket cannot be watched.
  bool start() {
    id_ = reception_.poller_.add(stream_->number(), EPOLLIN, shared_from_this());
    return id_ != Poller::kNone;
  }
  /// Ends the connection, unless it was handed over.
  void end() {
    if (!stream_) return;
    reception_.poller_.remove(id_, stream_->number());
    stream_.reset();
  }

  void on_ready(std::uint32_t) override {
    const auto self = shared_from_this();
    if (!stream_ || !advance()) return;
    end();
    reception_.drop(self);
  }

  const std::int64_t since;

 private:
  using Progress = Stream::Progress;
  enum class Step : std::uint8_t { shakes_hands, says_hello, confirms };

  /// True: the caller is done here.
  bool advance() {
    if (step_ == Step::shakes_hands) {
      const Progress progress = stream_->shake_hands();
      if (progress != Progress::done)
        return waits(progress, concat("its TLS handshake failed (", stream_->failure(),
                                      "); does it have a certificate of this cluster?"));
      step_ = Step::says_hello;
    }
    if (step_ == Step::says_hello) {
      const Progress progress = reader_.read_from(*stream_);
      if (progress != Progress::done) return waits(progress, "it sent no valid greeting");
      if (!take_hello()) return true;
      step_ = Step::confirms;
    }
    const Progress progress = reader_.read_from(*stream_);
    // A caller may find after Welcome that another call of it goes on, and close this one.
    if (progress != Progress::done) return waits(progress, "");
    take_confirm();
    return true;
  }

  /// `why`: the reason to refuse the caller if its connection has ended; "" for none.
  bool waits(Progress progress, const std::string& why) {
    if (progress == Progress::ended) {
      // A process that only tests whether this one listens sends nothing.
      if (!why.empty() && stream_->has_received()) reception_.refuse(why);
      return true;
    }
    const std::uint32_t events =
        progress == Progress::wants_write ? std::uint32_t{EPOLLOUT} : std::uint32_t{EPOLLIN};
    if (std::exchange(waits_for_, events) != events)
      reception_.poller_.change(id_, stream_->number(), events);
    return false;
  }

  std::unique_ptr<Stream> hand_over() {
    reception_.poller_.remove(id_, stream_->number());
    return std::move(stream_);
  }

  /// False: the caller is done.
  bool take_hello() {
    const Options& options = reception_.options_;
    if (!reader_.take(hello_)) {
      reception_.refuse("it sent no valid greeting");
      return false;
    }
    if (reader_.protocol() == options.protocol && hello_.lane != Lane::small) {
      if (!reception_.handlers_.take_bulk(hello_, hand_over()))
        reception_.refuse("no connection matches its bulk lane");
      return false;
    }
    if (reader_.protocol() != options.protocol) {
      welcome_.refusal =
          concat("Leeway ", options.version, " there speaks protocol ", options.protocol,
                 ", and Leeway ", hello_.version, " here speaks protocol ", reader_.protocol(),
                 "; run the same release on both");
      reception_.refuse("it speaks another protocol");
    } else {
      welcome_ = reception_.handlers_.welcome(hello_);
      if (!welcome_.refusal.empty()) reception_.refuse(welcome_.refusal);
    }
    welcome_.version = options.version;
    welcome_.proof = proof_of(options.secret, Stream::Side::called, hello_, welcome_);
    reader_.clear();
    return send(packet_of(welcome_, options.protocol)) && welcome_.refusal.empty();
  }

  void take_confirm() {
    const Options& options = reception_.options_;
    LinkDetails confirm;
    if (!reader_.take(confirm)) return reception_.refuse("it did not confirm its greeting");
    const Proof expected = proof_of(options.secret, Stream::Side::caller, hello_, welcome_);
    if (is_equal(confirm.proof, expected))
      return reception_.handlers_.connect(hello_, confirm, hand_over());
    reception_.refuse("it does not know the token of this user");
    LinkDetails answer;
    answer.version = options.version;
    answer.refusal =
        "it was started by another user of the host; run both as one user, give both the same "
        "LEEWAY_TOKEN, or use --tls";
    send(packet_of(answer, options.protocol));
  }

  /// A packet fits into the empty buffer of the connection.
  bool send(const Bytes& packet) {
    std::span<const std::byte> left(packet);
    return stream_->write_some(left) == Progress::done;
  }

  Reception& reception_;
  std::unique_ptr<Stream> stream_;  // null when it was handed over
  Poller::Id id_ = Poller::kNone;
  Step step_ = Step::shakes_hands;
  std::uint32_t waits_for_ = EPOLLIN;
  PacketReader reader_;
  Hello hello_;
  Welcome welcome_;
};

Expected<std::shared_ptr<Reception>> Reception::open(Options options, Poller& poller) {
  auto socket = listen_at(options.address, options.port);
  if (!socket)
    return Error{concat("cannot listen on ", options.address, ":", options.port, ": ",
                        socket.error().text, "; give another port, or 0 for any that is free")};
  const std::uint16_t port = port_of(socket->number());
  return std::shared_ptr<Reception>(
      new Reception(std::move(options), poller, std::move(*socket), port));
}

Reception::Reception(Options options, Poller& poller, Socket socket, std::uint16_t port)
    : options_(std::move(options)), poller_(poller), socket_(std::move(socket)), port_(port) {}

Reception::~Reception() = default;

void Reception::start(Handlers handlers) {
  handlers_ = std::move(handlers);
  watch();
  if (id_ == Poller::kNone) refuse(kNotWatched);
}

/// Again at the next tick if the kernel refuses.
void Reception::watch() {
  // The mesh owns the reception, and stops the poller before it.
  id_ = poller_.add(socket_.number(), EPOLLIN, std::shared_ptr<Watcher>(this, [](Watcher*) {}));
}

void Reception::stop() {
  if (id_ != Poller::kNone) poller_.remove(std::exchange(id_, Poller::kNone), socket_.number());
  for (const auto& caller : std::exchange(callers_, {})) caller->end();
}

void Reception::tick() {
  const std::int64_t now = steady_ns();
  if (id_ == Poller::kNone) watch();
  while (!callers_.empty() && now - callers_.front()->since > kCallerNs) {
    refuse("it sent no greeting in time");
    callers_.front()->end();
    callers_.pop_front();
  }
  if (accept_after_ == 0 || now < accept_after_) return;
  accept_after_ = 0;
  poller_.change(id_, socket_.number(), EPOLLIN);
}

void Reception::on_ready(std::uint32_t) {
  accept_one();
}

bool Reception::has_room() {
  if (callers_.size() < kMaxCallers) return true;
  if (steady_ns() - callers_.front()->since < kLeastCallerNs) return false;
  refuse("too many callers without a greeting");
  callers_.front()->end();
  callers_.pop_front();
  return true;
}

void Reception::accept_one() {
  Socket accepted;
  if (has_room())
    accepted = Socket(accept4(socket_.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!accepted) {
    accept_after_ = steady_ns() + kPauseNs;
    return poller_.change(id_, socket_.number(), 0);
  }
  auto stream = std::make_unique<Stream>(std::move(accepted), Stream::Side::called, options_.tls);
  callers_.push_back(std::make_shared<Caller>(*this, std::move(stream)));
  if (callers_.back()->start()) return;
  callers_.pop_back();
  refuse(kNotWatched);
}

void Reception::refuse(const std::string& why) {
  if (const std::string note = refusals_.note(why); !note.empty()) handlers_.note(note);
}

void Reception::drop(const std::shared_ptr<Caller>& caller) {
  std::erase(callers_, caller);
}

}  // namespace leeway::transport
