// Pages that node agents serve, of the runs that they take part in.
#include <nlohmann/json.hpp>

#include "dashboard/client.hpp"
#include "tests/cluster/cluster_processes.hpp"

namespace leeway::test {
namespace {

/// The URL that a process prints.
std::string page_of(Listener& listener) {
  const std::string mark = "page: http";
  REQUIRE(listener.prints(mark));
  const std::string text = listener.process().err();
  const auto begin = text.find(mark) + mark.size() - 4;
  return text.substr(begin, text.find('\n', begin) - begin);
}

Expected<nlohmann::json> state_of(const std::string& page) {
  const auto text = dashboard::fetch_state(page, "");
  if (!text) return text.error();
  return nlohmann::json::parse(*text);
}

/// Two nodes, of which the second serves its page.
struct NodesWithPage : Nodes {
  NodesWithPage() : Nodes(1) {
    add({kBin + "/leeway", "node", "--listen", "127.0.0.1:0", "--silence", kLongSilence, "--serve",
         "0"});
    page = page_of((*this)[1]);
  }
  std::string page;
};

}  // namespace

TEST_CASE("a node serves the page of its program, also the end, and its viewers can stop the run") {
  NodesWithPage nodes;
  const TemporaryFolder out;
  CHECK_THAT(state_of(nodes.page).error().text, Contains("no job runs on this node"));
  CHECK_FALSE(dashboard::request_stop(nodes.page, ""));
  for (const std::string name : {"first", "second"}) {
    Listener run(slow_run(nodes, out / name) + std::vector{"--serve"s, "0"s});
    const std::string own_page = page_of(run);
    REQUIRE(gets_going(out / name));
    const auto own = state_of(own_page), shown = state_of(nodes.page);
    REQUIRE(own);
    REQUIRE(shown);
    CHECK(shown->at("run") == own->at("run"));
    CHECK(shown->at("totals").at("iterations") > 0);
    CHECK(dashboard::request_stop(nodes.page, ""));
    bool has_end = false;
    for (auto state = state_of(nodes.page); state; state = state_of(nodes.page))
      has_end = has_end || !state->at("ended").is_null();
    CHECK(has_end);
    CHECK(run.process().wait() == 130);
    REQUIRE(nodes.all_free());
    CHECK_THAT(state_of(nodes.page).error().text, Contains("no job runs on this node"));
  }
}

TEST_CASE("the page of a node without one of its program says what to do") {
  NodesWithPage nodes;
  const TemporaryFolder out;
  Process run(slow_run(nodes, out / "run"));
  REQUIRE(gets_going(out / "run"));
  CHECK_THAT(state_of(nodes.page).error().text,
             Contains("the program serves no page; start it with --serve 0"));
  const auto top = run_program({kBin + "/leeway", "top", nodes.page, "--once"});
  CHECK(top.code == 2);
  CHECK_THAT(top.err, Contains("the program serves no page"));
  CHECK_FALSE(dashboard::request_stop(nodes.page, ""));
  run.signal(SIGINT);
  run.wait();
}

TEST_CASE("a node that joins refuses a wrong page before it offers itself") {
  const auto token =
      run_program({kBin + "/leeway", "join", "127.0.0.1:1", "--serve-token", "a-long-token"});
  CHECK(token.code == 2);
  CHECK_THAT(token.err, Contains("--serve-token belongs to --serve"));
  const auto address =
      run_program({kBin + "/leeway", "join", "127.0.0.1:1", "--serve", "nowhere.invalid:80"});
  CHECK(address.code == 2);
  CHECK_THAT(address.err, Contains("--serve nowhere.invalid:80"));
}

}  // namespace leeway::test
