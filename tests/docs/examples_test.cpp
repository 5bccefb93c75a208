// Every C++ and C example of the docs and of the headers compiles unchanged.
//
// In docs an example is a block that begins with ```cpp. In a header it is the indented text of a
// comment below a line that begins with `// Example`, or ` * Example` for C; and the expressions
// after "Example: " or "Examples: " in a comment that begins with ///.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/text.hpp"

using namespace leeway;
namespace fs = std::filesystem;

namespace {

struct Example {
  std::string place;  // "docs/scenarios.md:28"
  std::string code;
  bool is_c = false;
};

/// Finds the examples of a document.
void find_fenced(const std::string& name, std::istream& in, std::vector<Example>& out) {
  int number = 0;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (inside && line == "```")
      inside = false;
    else if (inside)
      out.back().code += line + '\n';
    else if ((inside = line == "```cpp"))
      out.push_back({concat(name, ':', number), ""});
  }
}

/// Finds the examples of a header.
void find_marked(const std::string& name, std::istream& in, bool is_c, std::vector<Example>& out) {
  const std::string empty = is_c ? " *" : "//", indent = empty + "   ";
  int number = 0;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.starts_with(empty + " Example")) {
      inside = true;
      out.push_back({concat(name, ':', number), "", is_c});
    } else if (inside && line.starts_with(indent)) {
      out.back().code += line.substr(indent.size()) + '\n';
    } else if (inside && line != empty) {
      inside = out.back().code.empty() && line.starts_with(empty);  // of the introduction
    }
  }
}

/// The end of the expression that begins at `at`: before ", " or a final stop, outside of brackets
/// and quotes.
std::size_t end_of_expression(const std::string& text, std::size_t at) {
  int depth = 0;
  bool quoted = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '(' || c == '{') ++depth;
    if (c == ')' || c == '}') --depth;
    const bool separates = c == ',' || c == '.';
    if (depth == 0 && separates && (at + 1 == text.size() || text[at + 1] == ' ')) break;
  }
  return at;
}

/// The expressions of one comment.
std::vector<std::string> expressions_of(const std::string& comment) {
  std::vector<std::string> found;
  for (const std::string mark : {"Example: ", "Examples: "}) {
    std::size_t at = comment.find(mark);
    if (at == std::string::npos) continue;
    for (at += mark.size(); at < comment.size();) {
      const std::size_t end = end_of_expression(comment, at);
      found.push_back(comment.substr(at, end - at));
      if (end == comment.size() || comment[end] == '.') break;
      at = end + 2;
    }
  }
  return found;
}

/// Makes one program of the expressions in the comments of a header. Those of the class Scenario
/// are calls of its methods.
void find_expressions(const std::string& name, std::istream& in, std::vector<Example>& out) {
  const bool are_methods = name == "runtime/scenario.hpp";
  std::string statements, comment;
  for (std::string line; std::getline(in, line);) {
    const std::size_t slashes = line.find("/// ");
    if (slashes != std::string::npos && line.find_first_not_of(' ') == slashes) {
      comment += (comment.empty() ? "" : " ") + line.substr(slashes + 4);
      continue;
    }
    for (std::string& expression : expressions_of(std::exchange(comment, {}))) {
      if (expression.starts_with('.')) expression.erase(0, 1);
      statements += are_methods ? concat("  scenario.", expression, ";\n")
                                : concat("  (void)(", expression, ");\n");
    }
  }
  if (statements.empty()) return;
  out.push_back({name, concat("#include <leeway/leeway.hpp>\n#include <leeway/testing.hpp>\n"
                              "using namespace leeway;\nusing namespace std::chrono_literals;\n"
                              "void use(Scenario scenario, const SimulatedRun& run) {\n"
                              "  (void)scenario, (void)run;\n",
                              statements, "}\n")});
}

std::vector<Example> all_examples() {
  const fs::path root = LEEWAY_SOURCE_DIR;
  std::vector<Example> examples;
  const auto add = [&](const fs::path& path) {
    const std::string name = fs::relative(path, root).generic_string();
    std::ifstream in(path);
    if (path.extension() == ".md") find_fenced(name, in, examples);
    if (path.extension() == ".hpp") find_marked(name, in, /*is_c=*/false, examples);
    if (path.extension() == ".hpp") {
      std::ifstream again(path);
      find_expressions(name, again, examples);
    }
    if (path.extension() == ".h") find_marked(name, in, /*is_c=*/true, examples);
  };
  for (const auto& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file()) add(entry.path());
    if (!entry.is_directory() || name == "build" || name.starts_with('.')) continue;
    for (const auto& file : fs::recursive_directory_iterator(entry.path())) add(file.path());
  }
  return examples;
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

/// The compiler's errors; empty if the example compiles.
std::string errors_in(const Example& example) {
  const fs::path base = fs::temp_directory_path() / concat("leeway-example-", getpid());
  const std::string source = concat(base.string(), ".cpp"), log = concat(base.string(), ".log");
  std::ofstream(source) << example.code;
  const std::string command = concat(
      LEEWAY_COMPILER " ", example.is_c ? "-x c -std=c11" : "-std=c++20",
      " -Wall -Wextra -Wno-missing-field-initializers -Werror "
      "-fsyntax-only -I" LEEWAY_INCLUDE_DIR " -I" LEEWAY_SOURCE_DIR " -I" LEEWAY_GENERATED_DIR " ",
      source, " > ", log, " 2>&1");
  const bool compiles = std::system(command.c_str()) == 0;
  const std::string errors = compiles ? "" : text_of(log);
  fs::remove(source);
  fs::remove(log);
  return errors;
}

}  // namespace

TEST_CASE("every C++ and C example of docs and headers compiles") {
  const auto examples = all_examples();
  CHECK(examples.size() >= 4);
  CHECK(std::ranges::any_of(examples, &Example::is_c));
  for (const auto& example : examples) {
    INFO(example.place);
    CHECK(errors_in(example) == "");
  }
}

TEST_CASE("expressions are found in comments of headers") {
  CHECK(expressions_of("Two. Examples: f({1, 2}, \"a, b.\"), g(0.5). More text.") ==
        std::vector<std::string>{"f({1, 2}, \"a, b.\")", "g(0.5)"});
  CHECK(expressions_of("One. Example: .h(5ms).") == std::vector<std::string>{".h(5ms)"});
  CHECK(expressions_of("No expression.").empty());
}

TEST_CASE("an example that does not compile is reported with the compiler's error") {
  CHECK(errors_in({"here", "int main() { return nothing; }\n"}).find("nothing") !=
        std::string::npos);
}
