#include "dashboard/server.hpp"

#include <httplib.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "core/number.hpp"
#include "core/text.hpp"
#include "core/this_host.hpp"
#include "dashboard/assets.hpp"
#include "dashboard/page_text.hpp"

namespace leeway::dashboard {
namespace {

constexpr int kMostViewers = 24;  // pages that follow the run; each holds a thread
constexpr std::size_t kThreads = kMostViewers + 8;
constexpr std::size_t kMostWaiting = 64;    // accepted connections
constexpr int kIdleSeconds = 2;             // a client that sends nothing holds a thread for this
constexpr std::size_t kMostPayload = 1024;  // no request has a body
constexpr std::size_t kLeastToken = 8;
constexpr int kNoContent = 204, kBadRequest = 400, kForbidden = 403, kServerError = 500,
              kUnavailable = 503;

/// Accepts no further connection while many are waiting.
class BoundedQueue final : public httplib::TaskQueue {
 public:
  BoundedQueue() {
    for (std::size_t i = 0; i < kThreads; ++i) threads_.emplace_back([this] { work(); });
  }
  void enqueue(std::function<void()> task) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stops_ || tasks_.size() < kMostWaiting; });
    tasks_.push_back(std::move(task));
    changed_.notify_all();
  }
  void shutdown() override {
    {
      std::lock_guard lock(mutex_);
      stops_ = true;
    }
    changed_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stops_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      changed_.notify_all();
      task();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool stops_ = false;
  std::vector<std::thread> threads_;
};

/// The address by which other machines reach this one, for a wildcard address.
std::string reachable(const ListenAddress& address) {
  if (address.host != "0.0.0.0" && address.host != "::") return address.host;
  const std::string name = host_name();
  return name.empty() ? address.host : name;
}

std::string without_brackets(const std::string& host) {
  return host.starts_with('[') ? host.substr(1, host.find(']') - 1) : host;
}

/// "127.0.0.1:8080" and "[::1]:8080" without the port and the brackets.
std::string host_of(const std::string& address) {
  if (address.starts_with('[')) return without_brackets(address);
  return address.substr(0, address.rfind(':'));
}

/// Takes the same time for each wrong token.
bool same(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

void refuse(httplib::Response& response, int status, const std::string& text) {
  response.status = status;
  response.set_content(without_folders(text), "text/plain");
}

}  // namespace

std::string random_token() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::random_device random;
  std::string token;
  for (int word = 0; word < 4; ++word)
    for (std::uint32_t bits = random(), digit = 0; digit < 8; ++digit, bits >>= 4)
      token += kDigits[bits & 15];
  return token;
}

Expected<ServerOptions> server_options(const std::string& serve, const std::string& token,
                                       const std::string& tls) {
  const auto address = find_listen_address("--serve", serve);
  if (!address) return address.error();
  return ServerOptions{.address = *address,
                       .token = token == "auto" ? random_token() : token,
                       .certificate = tls.empty() ? "" : tls + "/node.pem",
                       .key = tls.empty() ? "" : tls + "/node.key"};
}

/// The server lives until its last connection has ended, which a slow client can delay. The source
/// is only used under `in_use`, until `stops`.
struct Server::Http {
  std::unique_ptr<httplib::Server> server;
  ServerOptions options;
  PageSource source;
  std::atomic<int> viewers{0};
  std::atomic<bool> predicts{false};
  std::shared_mutex in_use;
  std::atomic<bool> stops{false};  // set before in_use is taken, so that no further use begins

  void add_routes();
  bool is_allowed(const httplib::Request& request) const;
  void follow(httplib::Response& response);
  void predict(httplib::Response& response);
  void operations(const httplib::Request& request, httplib::Response& response);
  /// Calls use() unless the run has ended.
  template <class Use>
  bool with_source(Use&& use) {
    if (stops) return false;
    std::shared_lock lock(in_use);
    if (!stops) use();
    return !stops;
  }
};

bool Server::Http::is_allowed(const httplib::Request& request) const {
  const std::string origin = request.get_header_value("Origin");
  const std::string host = request.get_header_value("Host");
  // Browsers name the site whose script or element has made the request.
  if (!origin.empty() && origin != concat("http://", host) && origin != concat("https://", host))
    return false;
  if (request.get_header_value("Sec-Fetch-Site").ends_with("-site")) return false;
  if (!options.token.empty()) return same(request.get_param_value("token"), options.token);
  return is_loopback(host_of(host));
}

void Server::Http::predict(httplib::Response& response) {
  if (predicts.exchange(true))
    return refuse(response, kUnavailable, "a prediction is being computed\n");
  const std::unique_ptr<std::atomic<bool>, void (*)(std::atomic<bool>*)> reset(
      &predicts, [](std::atomic<bool>* flag) { *flag = false; });
  const auto json =
      source.predict ? source.predict() : Expected<std::string>(Error{"no predictions"});
  if (!json) return refuse(response, kServerError, json.error().text);
  response.set_content(*json, "application/json");
}

void Server::Http::operations(const httplib::Request& request, httplib::Response& response) {
  const auto number = [&]<class T>(const char* name, T& value) {
    const auto parsed = parse_number<T>(request.get_param_value(name));
    if (parsed) value = *parsed;
    return parsed.has_value();
  };
  OperationsRequest wanted;
  if (!number("from", wanted.from) || !number("until", wanted.until) ||
      !number("first", wanted.first) || !number("workers", wanted.workers) ||
      !std::isfinite(wanted.from) || !std::isfinite(wanted.until))
    return refuse(response, kBadRequest, "give from, until, first and workers\n");
  const auto json =
      source.operations ? source.operations(wanted) : Expected<std::string>(Error{"no operations"});
  if (!json) return refuse(response, kServerError, json.error().text);
  response.set_content(*json, "application/json");
}

void Server::Http::follow(httplib::Response& response) {
  if (viewers.fetch_add(1) >= kMostViewers) {
    --viewers;
    return refuse(response, kUnavailable, "too many pages follow this run; close one of them\n");
  }
  auto first = source.state(0);
  if (!first) {
    --viewers;
    return refuse(response, kUnavailable, first.error().text);
  }
  response.set_chunked_content_provider(
      "text/event-stream",
      [this, state = std::move(first), since = std::uint64_t{0},
       next = std::chrono::steady_clock::now()](std::size_t, httplib::DataSink& sink) mutable {
        std::this_thread::sleep_until(next);
        next = std::max(next, std::chrono::steady_clock::now() - source.period) + source.period;
        if (since > 0 && (!with_source([&] { state = source.state(since); }) || !state))
          return false;
        if (state->revision == since) {
          if (state->has_ended) sink.done();
          return sink.is_writable();
        }
        const std::string text =
            concat("event: ", since == 0 ? "state" : "change", "\ndata: ", state->json, "\n\n");
        since = state->revision;
        return sink.write(text.data(), text.size());
      },
      [this](bool) { --viewers; });
}

void Server::Http::add_routes() {
  server->set_payload_max_length(kMostPayload);
  server->set_read_timeout(kIdleSeconds);
  server->set_keep_alive_timeout(kIdleSeconds);
  // Not the library's SO_REUSEPORT, with which two runs could share a port.
  server->set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  server->new_task_queue = [] { return new BoundedQueue; };
  server->set_default_headers({{"Content-Security-Policy",
                                "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; "
                                "base-uri 'none'; form-action 'none'"},
                               {"X-Frame-Options", "DENY"},
                               {"X-Content-Type-Options", "nosniff"},
                               {"Referrer-Policy", "no-referrer"},
                               {"Cache-Control", "no-store"}});
  for (const Asset& asset : assets()) {
    const auto get = [&asset](const httplib::Request&, httplib::Response& response) {
      response.set_content(asset.content.data(), asset.content.size(), std::string(asset.type));
    };
    server->Get(std::string(asset.path), get);
    if (&asset == &assets().front()) server->Get("/", get);
  }
  const auto guarded = [this](auto handle) {
    return [this, handle](const httplib::Request& request, httplib::Response& response) {
      if (!is_allowed(request)) {
        refuse(response, kForbidden, "open the page with the URL that the run has printed\n");
      } else if (!with_source([&] { handle(request, response); })) {
        refuse(response, kUnavailable, "the run has ended\n");
      }
    };
  };
  server->Get("/state", guarded([this](const auto&, httplib::Response& response) {
                const auto state = source.state(0);
                if (!state) return refuse(response, kUnavailable, state.error().text);
                response.set_content(state->json, "application/json");
              }));
  server->Get("/events",
              guarded([this](const auto&, httplib::Response& response) { follow(response); }));
  server->Get("/predict",
              guarded([this](const auto&, httplib::Response& response) { predict(response); }));
  server->Get("/operations", guarded([this](const auto& request, httplib::Response& response) {
                operations(request, response);
              }));
  server->Post("/stop", guarded([this](const auto&, httplib::Response& response) {
                 if (!source.stop) {
                   response.status = kForbidden;
                 } else if (const Status stopped = source.stop(); stopped) {
                   response.status = kNoContent;
                 } else {
                   refuse(response, kUnavailable, stopped.error().text);
                 }
               }));
}

Server::Server() : http_(std::make_shared<Http>()) {}

Expected<std::unique_ptr<Server>> Server::open(const ServerOptions& options, PageSource source) {
  const bool has_tls = !options.certificate.empty();
  const std::string numeric = without_brackets(options.address.numeric);
  const bool is_word =
      options.token.find_first_not_of(
          "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == std::string::npos;
  if (!options.token.empty() && (!is_word || options.token.size() < kLeastToken))
    return Error{
        concat("the token of a page has at least ", kLeastToken,
               " letters, digits, \"-\" and \"_\"; give --serve-token auto for a random one")};
  if (!is_loopback(numeric) && options.token.empty())
    return Error{
        concat(options.address.host,
               " is not the loopback interface: any machine that reaches it could stop the run; "
               "give --serve-token auto")};
  std::unique_ptr<Server> server(new Server);
  Http& http = *server->http_;
  http.options = options;
  http.source = std::move(source);
  if (has_tls)
    http.server =
        std::make_unique<httplib::SSLServer>(options.certificate.c_str(), options.key.c_str());
  else
    http.server = std::make_unique<httplib::Server>();
  if (!http.server->is_valid())
    return Error{concat(options.certificate, " and ", options.key,
                        " are not a certificate and its key; make them with `leeway cert`")};
  http.add_routes();
  int port = options.address.port;
  const bool bound = port == 0 ? (port = http.server->bind_to_any_port(numeric.c_str())) > 0
                               : http.server->bind_to_port(numeric.c_str(), port);
  if (!bound)
    return Error{concat(options.address.host, ':', options.address.port,
                        " cannot be used, it may be taken; give another port, or 0 for any")};
  std::thread([http = server->http_] { http->server->listen_after_bind(); }).detach();
  // stop() has no effect before.
  while (!http.server->is_running()) std::this_thread::yield();
  std::string url = http_url(reachable(options.address), port);
  if (has_tls) url.replace(0, 4, "https");
  server->url_ = concat(url, '/', options.token.empty() ? "" : "?token=" + options.token);
  return server;
}

void Server::finish() {
  constexpr int kMostWaits = 100;
  constexpr std::chrono::milliseconds kWait(10);
  for (int i = 0; i < kMostWaits && http_->viewers > 0; ++i) std::this_thread::sleep_for(kWait);
}

Server::~Server() {
  http_->stops = true;
  { std::unique_lock lock(http_->in_use); }
  http_->server->stop();
}

}  // namespace leeway::dashboard
