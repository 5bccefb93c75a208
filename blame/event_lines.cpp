#include "blame/event_lines.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "core/text.hpp"
#include "models/datasets/file.hpp"

namespace leeway::blame {
namespace {

struct Line {
  std::int64_t ns = 0;
  std::size_t number = 0;
  std::string_view text;
};

}  // namespace

Status read_events(const std::string& path,
                   const std::function<void(const nlohmann::json&)>& handle) {
  if (!file_exists(path))
    return Error{concat("no file \"", path, "\"; run the program with --trace")};
  const auto content = read_file(path, "give the folder of a run with --trace");
  if (!content) return content.error();
  std::string_view rest(reinterpret_cast<const char*>(content->data()), content->size());
  std::vector<Line> lines;
  std::size_t number = 0;
  try {
    for (auto end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      const std::string_view text = rest.substr(0, end);
      rest.remove_prefix(end + 1);
      ++number;
      const auto event = nlohmann::json::parse(text);
      if (event.at("event") == "resumed")
        lines.clear();
      else
        lines.push_back({event.at("ns"), number, text});
    }
    std::ranges::stable_sort(lines, {}, &Line::ns);
    for (const Line& line : lines) {
      number = line.number;
      handle(nlohmann::json::parse(line.text));
    }
  } catch (const nlohmann::json::exception& error) {
    return Error{concat('"', path, "\", line ", number, ": ", error.what())};
  }
  return {};
}

}  // namespace leeway::blame
