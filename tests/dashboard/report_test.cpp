#include "dashboard/report.hpp"

#include <catch2/catch.hpp>

#include "dashboard/assets.hpp"

namespace leeway::dashboard {

TEST_CASE("the page and its files are part of the program") {
  CHECK(assets().front().path == "/index.html");
  bool has_charts = false;
  for (const Asset& asset : assets()) {
    CHECK(!asset.content.empty());
    has_charts |= asset.path == "/chart.js";
  }
  CHECK(has_charts);
}

TEST_CASE("a report has no reference to another file, and its state cannot end its element") {
  const std::string report = report_of(R"({"run":{"name":"</script><img src=x>"}})");
  CHECK(report.find("src=\"") == std::string::npos);
  CHECK(report.find("rel=\"stylesheet\"") == std::string::npos);
  CHECK(report.find("http://www") == report.find("http://www.w3.org/2000/svg"));
  CHECK(report.find("</script><img") == std::string::npos);
  CHECK(report.find(R"("name":"\u003c/script>\u003cimg src=x>")") != std::string::npos);
  CHECK(report.size() < 2'000'000);
}

}  // namespace leeway::dashboard
