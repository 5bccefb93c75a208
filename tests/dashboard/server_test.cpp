// The page's server, over real sockets.
#include "dashboard/server.hpp"

#include <arpa/inet.h>
#include <httplib.h>
#include <sys/socket.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/descriptor.hpp"
#include "dashboard/client.hpp"

namespace leeway::dashboard {
namespace {

using Catch::Matchers::Contains;
using Json = nlohmann::json;

/// A run that grows, and its page.
class ServedRun {
 public:
  explicit ServedRun(ServerOptions options = {})
      : feed({.name = "<b>tiny</b>", .kind = "threads", .policy = "bsp", .workers = 2, .bound = 0},
             Feed::IfFull::lose) {
    auto opened = Server::open(options, {.state = [this](auto since) { return feed.state(since); },
                                         .stop =
                                             [this] {
                                               stopped = true;
                                               return Status();
                                             },
                                         .predict = {},
                                         .period = std::chrono::milliseconds(10)});
    REQUIRE(opened);
    server = std::move(*opened);
  }
  std::string origin() const {
    return server->url().substr(0, server->url().find('/', std::string("https://").size()));
  }
  httplib::Client client() const { return httplib::Client(origin()); }
  int port() const { return std::stoi(origin().substr(origin().rfind(':') + 1)); }
  void advance(int seconds_of_run) {
    Progress progress;
    progress.now = Instant{} + seconds(seconds_of_run);
    progress.samples = static_cast<std::uint64_t>(seconds_of_run);
    feed.progress(progress);
  }

  Feed feed;
  std::atomic<bool> stopped{false};
  std::unique_ptr<Server> server;
};

void connect(const Descriptor& socket, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  (void)!::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

}  // namespace

TEST_CASE("the page, its files and the state are served, with a strict policy") {
  ServedRun run;
  auto client = run.client();
  const auto page = client.Get("/");
  REQUIRE(page);
  CHECK_THAT(page->body, Contains("<!doctype html>"));
  CHECK(page->get_header_value("Content-Type") == "text/html; charset=utf-8");
  CHECK_THAT(page->get_header_value("Content-Security-Policy"), Contains("default-src 'self'"));
  CHECK(client.Get("/chart.js")->status == 200);
  CHECK(client.Get("/../server.cpp")->status == 404);
  CHECK(client.Get("/etc/passwd")->status == 404);
  const auto state = fetch_state(run.server->url(), "");
  REQUIRE(state);
  CHECK(Json::parse(*state)["run"]["name"] == "<b>tiny</b>");
}

TEST_CASE("a viewer receives the state, its changes, and the end") {
  ServedRun run;
  run.advance(1);
  std::string received;
  std::thread changes([&] {
    for (int i = 2; i < 6; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      run.advance(i);
    }
    run.feed.failed("the end");
  });
  auto client = run.client();
  const auto answer = client.Get("/events", [&](const char* data, std::size_t size) {
    received.append(data, size);
    return true;
  });
  changes.join();
  REQUIRE(answer);
  CHECK(answer->get_header_value("Content-Type") == "text/event-stream");
  CHECK_THAT(received, Catch::Matchers::StartsWith("event: state\ndata: {\"run\":"));
  CHECK_THAT(received, Contains("event: change\ndata: {\"now\":"));
  CHECK_THAT(received, Contains("\"ended\":{\"reason\":\"failed\",\"text\":\"the end\"}"));
  CHECK(received.ends_with("\n\n"));
}

TEST_CASE("random tokens have 128 bits and differ") {
  CHECK(random_token().size() == 32);
  CHECK(random_token() != random_token());
}

TEST_CASE("with a token, requests without it are refused") {
  ServedRun run(ServerOptions{.token = "secret-text"});
  CHECK_THAT(run.server->url(), Catch::Matchers::EndsWith("/?token=secret-text"));
  auto client = run.client();
  CHECK(client.Get("/state")->status == 403);
  CHECK(client.Get("/state?token=secret-texT")->status == 403);
  CHECK(client.Get("/events")->status == 403);
  CHECK(client.Post("/stop")->status == 403);
  CHECK_FALSE(run.stopped);
  CHECK(client.Get("/state?token=secret-text")->status == 200);
  CHECK(client.Post("/stop?token=secret-text")->status == 204);
  CHECK(run.stopped);
  CHECK(fetch_state(run.server->url(), ""));
  CHECK_THAT(fetch_state(run.origin(), "").error().text, Contains("403") && Contains("token"));
}

TEST_CASE("other websites can neither read nor stop a run through a browser") {
  ServedRun run;
  auto client = run.client();
  for (const char* host : {"evil.example", "127.evil.example", "127.0.0.1.evil.example:80", ""})
    CHECK(client.Get("/state", httplib::Headers{{"Host", host}})->status == 403);
  for (const char* site : {"cross-site", "same-site"})
    CHECK(client.Get("/state", httplib::Headers{{"Sec-Fetch-Site", site}})->status == 403);
  CHECK(client.Get("/state", httplib::Headers{{"Sec-Fetch-Site", "same-origin"}})->status == 200);
  CHECK(client.Post("/stop", httplib::Headers{{"Origin", "http://evil.example"}}, "", "text/plain")
            ->status == 403);
  CHECK_FALSE(run.stopped);
  const std::string host = run.origin().substr(std::string("http://").size());
  CHECK(client
            .Post("/stop", httplib::Headers{{"Origin", run.origin()}, {"Host", host}}, "",
                  "text/plain")
            ->status == 204);
  CHECK(run.stopped);
}

TEST_CASE("a request with a body is refused before it is read") {
  ServedRun run;
  CHECK(run.client().Post("/stop", std::string(100'000, 'x'), "text/plain")->status == 413);
  CHECK_FALSE(run.stopped);
}

TEST_CASE("a client that sends slowly does not delay the end of the run") {
  const auto began = std::chrono::steady_clock::now();
  Descriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  {
    const ServedRun run;
    connect(socket, run.port());
    (void)!::send(socket.get(), "GET / HT", 8, MSG_NOSIGNAL);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::milliseconds(1500));
}

TEST_CASE("errors of the page name no folders of the machine") {
  const Error error{"/home/me/run/events.bin: cannot be read"};
  const auto server = Server::open({}, {.state = [&](auto) { return error; },
                                        .stop = [&] { return Status(error); },
                                        .predict = [&] { return error; }});
  REQUIRE(server);
  httplib::Client client((*server)->url().substr(0, (*server)->url().size() - 1));
  for (const char* path : {"/state", "/events", "/predict"})
    CHECK(client.Get(path)->body == "events.bin: cannot be read");
  CHECK(client.Post("/stop")->body == "events.bin: cannot be read");
}

TEST_CASE("operations of a time are served if the request names a time and workers") {
  OperationsRequest asked;
  const auto server = Server::open({}, {.state = [](auto) { return Feed::State(); },
                                        .stop = {},
                                        .predict = {},
                                        .operations =
                                            [&](const OperationsRequest& wanted) {
                                              asked = wanted;
                                              return std::string("[]");
                                            }});
  REQUIRE(server);
  httplib::Client client((*server)->url().substr(0, (*server)->url().size() - 1));
  CHECK(client.Get("/operations?from=1.5&until=2e1&first=4&workers=8")->body == "[]");
  CHECK(asked.from == 1.5);
  CHECK(asked.until == 20);
  CHECK(asked.first == 4);
  CHECK(asked.workers == 8);
  for (const char* query : {"", "?from=0&until=1&first=0", "?from=0&until=nan&first=0&workers=1",
                            "?from=0&until=1&first=-1&workers=1"})
    CHECK(client.Get(std::string("/operations") + query)->status == 400);
  CHECK(ServedRun().client().Get("/operations?from=0&until=1&first=0&workers=1")->status == 500);
}

TEST_CASE("a public page needs a token, and each page a free port") {
  const auto refused = [](const ServerOptions& options) {
    const auto server = Server::open(
        options, {.state = [](auto) { return Feed::State(); }, .stop = {}, .predict = {}});
    REQUIRE_FALSE(server);
    return server.error().text;
  };
  CHECK_THAT(refused({.address = {"0.0.0.0", "0.0.0.0", 0}}), Contains("--serve-token"));
  CHECK_THAT(refused({.token = "a+b"}), Contains("--serve-token auto"));
  CHECK_THAT(refused({.token = "short"}), Contains("at least 8"));
  CHECK_THAT(refused({.certificate = "/missing.pem", .key = "/missing.key"}),
             Contains("leeway cert"));
  const ServedRun run;
  CHECK_THAT(
      refused({.address = {"127.0.0.1", "127.0.0.1", static_cast<std::uint16_t>(run.port())}}),
      Contains("may be taken"));
}

TEST_CASE("a flood of connections takes a bounded number of file descriptors") {
  ServedRun run;
  const auto open_files = [] {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator("/proc/self/fd"))
      ++count;
    return count;
  };
  const std::size_t before = open_files();
  constexpr std::size_t kConnections = 400;
  std::vector<std::unique_ptr<Descriptor>> sockets;
  for (std::size_t i = 0; i < kConnections; ++i) {
    auto socket = std::make_unique<Descriptor>(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    connect(*socket, run.port());
    sockets.push_back(std::move(socket));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(open_files() - before - kConnections < 150);
  // The run goes on.
  run.advance(3);
  CHECK(run.feed.state().revision > 0);
  sockets.clear();
  for (int i = 0; i < 100; ++i) {
    if (const auto answer = run.client().Get("/state"); answer && answer->status == 200) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  FAIL("the page does not answer after the flood");
}

}  // namespace leeway::dashboard
