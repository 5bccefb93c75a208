#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "core/text.hpp"
#include "tests/tidy/rules.hpp"

using namespace leeway;
using namespace leeway::tidy;

namespace {

using Rule = std::vector<std::string> (*)(const SourceFile&);

/// All offences of the tree against one rule, one per line.
std::string offences_of_tree(Rule rule) {
  std::vector<std::string> all;
  for (const auto& file : source_files(LEEWAY_SOURCE_DIR))
    for (const auto& offence : rule(file)) all.push_back(offence);
  return join(all, "\n");
}

std::string offences(Rule rule, const std::string& path, const std::string& text) {
  return join(rule({path, text}), "\n");
}

}  // namespace

TEST_CASE("includes run one way through the tree") {
  CHECK(source_files(LEEWAY_SOURCE_DIR).size() > 50);
  CHECK(offences_of_tree(wrong_includes) == "");
}

TEST_CASE("files and lines are within their limits") {
  CHECK(offences_of_tree(wrong_layout) == "");
}

TEST_CASE("README shows an unchanged scenario program") {
  const auto text = [](const std::string& path) {
    std::ifstream in(std::string(LEEWAY_SOURCE_DIR) + "/" + path);
    std::stringstream content;
    content << in.rdbuf();
    return content.str();
  };
  const std::string program = text("scenarios/fashion_mlp.cpp");
  REQUIRE_FALSE(program.empty());
  CHECK(text("README.md").find("```cpp\n" + program + "```") != std::string::npos);
}

TEST_CASE("headers begin with their purpose") {
  CHECK(offences_of_tree(wrong_header) == "");
}

TEST_CASE("the offence of an include that runs back names its arrow") {
  CHECK(offences(wrong_includes, "kernels/relu.cpp", "// x\n#include \"plan/plan.hpp\"\n") ==
        "kernels/relu.cpp:2: the arrow kernels -> plan runs back: plan/plan.hpp");
  CHECK(offences(wrong_includes, "plan/a.cpp", "#include \"messages/wire.hpp\"") != "");
  CHECK(offences(wrong_includes, "plan/a.cpp", "#include \"messages/generator/wire.hpp\"") == "");
  CHECK(offences(wrong_includes, "messages/a.cpp", "#include \"plan/plan.hpp\"") != "");
  CHECK(offences(wrong_includes, "models/a.cpp", "#include \"messages/node.hpp\"") != "");
  CHECK(offences(wrong_includes, "core/a.hpp", "#include <leeway/tensor/blob.hpp>") ==
        "core/a.hpp:1: the arrow core -> tensor runs back: tensor/blob.hpp");
  CHECK(offences(wrong_includes, "runtime/a.cpp", "#include \"tests/support/pch.hpp\"") != "");
  CHECK(offences(wrong_includes, "models/a.cpp", "#include \"policies/optimizer/sgd.hpp\"") != "");
  CHECK(offences(wrong_includes, "cluster/a.cpp", "#include \"sim/network.hpp\"") != "");
  CHECK(offences(wrong_includes, "models/a.cpp",
                 "#include <vector>\n#include \"models/layer.hpp\"\n"
                 "#include \"plan/plan.hpp\"\n#include \"core/check.hpp\"\n") == "");
  CHECK(offences(wrong_includes, "scenarios/a.cpp", "#include <leeway/runtime/scenario.hpp>") ==
        "");
}

TEST_CASE("an include of a library outside its folder is an offence") {
  CHECK(offences(wrong_includes, "actors/a.cpp", "#include <caf/all.hpp>") ==
        "actors/a.cpp:1: <caf/all.hpp> is included outside cluster/");
  CHECK(offences(wrong_includes, "runtime/a.cpp", "#include <kj/common.h>") != "");
  CHECK(offences(wrong_includes, "runtime/a.cpp", "#include \"plan.capnp.h\"") != "");
  CHECK(offences(wrong_includes, "models/a.cpp", "#include <oneapi/dnnl/dnnl.hpp>") != "");
  CHECK(offences(wrong_includes, "cluster/a.cpp", "#include <caf/all.hpp>") == "");
  CHECK(offences(wrong_includes, "tests/cluster/a.cpp", "#include <caf/all.hpp>") == "");
  CHECK(offences(wrong_includes, "tests/actors/a.cpp", "#include <caf/all.hpp>") != "");
}

TEST_CASE("long files, long lines, tabs, and headers without a purpose are offences") {
  CHECK(offences(wrong_layout, "core/a.cpp", std::string(101, 'x')) ==
        "core/a.cpp:1: has 101 columns, at most 100");
  CHECK(offences(wrong_layout, "core/a.cpp", std::string(501, '\n')) ==
        "core/a.cpp: has 501 lines, at most 500 are allowed; split it");
  CHECK(offences(wrong_layout, "core/a.cpp", "\tx\ny \n") ==
        "core/a.cpp:1: has a tab\ncore/a.cpp:2: ends in a blank");
  CHECK(offences(wrong_header, "core/a.hpp", "#include <vector>\n") != "");
  CHECK(offences(wrong_header, "core/a.hpp", "#pragma once\n#include <vector>\n") != "");
  CHECK(offences(wrong_header, "core/a.hpp", "#pragma once\n// Vectors of the plane.\n") == "");
}
