#pragma once
// Server: serves the page of a run over HTTP, and its changes as server-sent events.
//
// Without a token, it listens only on the loopback interface and answers only requests that name
// this interface, so that a website cannot read the run through the browser of its user.
// Connections beyond a bound wait in the system's queue: a flood of them takes no file descriptors
// from the run.
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "core/expected.hpp"
#include "dashboard/feed.hpp"
#include "monitoring/listen_address.hpp"

namespace leeway::dashboard {

struct ServerOptions {
  ListenAddress address{.host = "127.0.0.1", .numeric = "127.0.0.1"};
  /// Part of the page's URL: at least 8 letters, digits, "-" and "_". Required outside of the
  /// loopback interface.
  std::string token;
  std::string certificate, key;  // PEM files: serves HTTPS
};

/// The options of the flags --serve, [HOST:]PORT, and --serve-token, where "auto" is a random
/// token. `tls`: the folder with the certificate; empty: none.
Expected<ServerOptions> server_options(const std::string& serve, const std::string& token,
                                       const std::string& tls = {});
/// A token that cannot be guessed: 128 bits, as hex digits.
std::string random_token();

/// Operations of the stages that the page asks for.
struct OperationsRequest {
  double from = 0, until = 0;  // seconds of the run
  std::uint32_t first = 0, workers = 0;
};

/// The run that the page shows. The functions are called from several threads.
struct PageSource {
  std::function<Expected<Feed::State>(std::uint64_t since)> state;
  std::function<Status()> stop;                    // empty: the run cannot be stopped
  std::function<Expected<std::string>()> predict;  // JSON; empty: no predictions
  /// JSON, as in the state; empty: the state has all that are known.
  std::function<Expected<std::string>(const OperationsRequest&)> operations = {};
  std::chrono::milliseconds period{100};  // between two changes
};

class Server {
 public:
  /// Errors: the address is taken, the page would be public without a token, or the certificate
  /// cannot be read.
  static Expected<std::unique_ptr<Server>> open(const ServerOptions& options, PageSource source);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Call at the end of the run: waits, for a second at most, until all viewers have received it.
  void finish();

  /// With the token.
  const std::string& url() const { return url_; }

 private:
  struct Http;
  Server();

  std::string url_;
  std::shared_ptr<Http> http_;
};

}  // namespace leeway::dashboard
