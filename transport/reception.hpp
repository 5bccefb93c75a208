#pragma once
// Reception: accepts connections and greets callers on the poller's thread, without blocking.
//
// A caller that has not finished its greeting is a stranger: it has a few kilobytes, five seconds,
// and one of 64 places.
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "transport/greeting.hpp"
#include "transport/poller.hpp"
#include "transport/refusals.hpp"

namespace leeway::transport {

class Reception final : public Poller::Watcher {
 public:
  /// All run on the poller's thread.
  struct Handlers {
    /// The answer to a Hello for the small lane; with a refusal, the caller is refused.
    std::function<Welcome(const Hello&)> welcome;
    /// Takes a caller that has proved itself: connects the link, with `ready`, or gives a refusal.
    std::function<void(const Hello&, const LinkDetails& confirm, std::unique_ptr<Stream>)> connect;
    /// Takes a bulk lane. False: no connection has this token.
    std::function<bool(const Hello&, std::unique_ptr<Stream>)> take_bulk;
    std::function<void(const std::string&)> note;  // logs one line
  };
  struct Options {
    std::string address;
    std::uint16_t port = 0;
    std::shared_ptr<const Tls> tls;  // null: none
    Secret secret{};
    std::uint32_t protocol = kTransportProtocol;
    std::string version;
  };

  static Expected<std::shared_ptr<Reception>> open(Options options, Poller& poller);
  ~Reception() override;
  std::uint16_t port() const { return port_; }
  void start(Handlers handlers);
  /// From the poller's thread, or when it has stopped.
  void stop();
  /// Called periodically: callers that take too long are refused.
  void tick();

  void on_ready(std::uint32_t events) override;

 private:
  class Caller;
  Reception(Options options, Poller& poller, Socket socket, std::uint16_t port);
  bool has_room();
  void accept_one();
  void refuse(const std::string& why);
  void watch();
  void drop(const std::shared_ptr<Caller>& caller);

  const Options options_;
  Poller& poller_;
  const Socket socket_;
  const std::uint16_t port_;
  Handlers handlers_;
  Poller::Id id_ = Poller::kNone;
  std::deque<std::shared_ptr<Caller>> callers_;  // the oldest first
  std::int64_t accept_after_ = 0;                // on the steady clock; 0: accepts
  Refusals refusals_{"a call"};
};

}  // namespace leeway::transport
