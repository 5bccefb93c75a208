#include "dashboard/report.hpp"

#include <string_view>

#include "core/check.hpp"
#include "dashboard/assets.hpp"

namespace leeway::dashboard {
namespace {

std::string_view content_of(std::string_view path) {
  for (const Asset& asset : assets())
    if (asset.path.substr(1) == path) return asset.content;
  LW_CHECK(false, "no file of the page:", path);
  return {};
}

/// Replaces each text from `before` to `after` by new_text(the text between them).
template <class NewText>
void replace_all(std::string& text, std::string_view before, std::string_view after,
                 NewText&& new_text) {
  for (std::size_t at = text.find(before); at != std::string::npos;) {
    const std::size_t begin = at + before.size(), end = text.find(after, begin);
    LW_CHECK(end != std::string::npos, before);
    const std::string next = new_text(text.substr(begin, end - begin));
    text.replace(at, end + after.size() - at, next);
    at = text.find(before, at + next.size());
  }
}

}  // namespace

std::string report_of(const std::string& state) {
  std::string page(content_of("index.html"));
  replace_all(page, "<link rel=\"icon\"", ">", [](const std::string&) { return std::string(); });
  replace_all(page, "<link rel=\"stylesheet\" href=\"", "\">", [](const std::string& path) {
    return "<style>\n" + std::string(content_of(path)) + "</style>";
  });
  replace_all(page, "<script src=\"", "\" defer></script>", [](const std::string& path) {
    return "<script>\n" + std::string(content_of(path)) + "</script>";
  });
  std::string escaped;
  for (const char one : state) escaped += one == '<' ? "\\u003c" : std::string(1, one);
  replace_all(page, "<!-- state ", "-->", [&](const std::string&) {
    return "<script type=\"application/json\" id=\"state\">" + escaped + "</script>";
  });
  return page;
}

}  // namespace leeway::dashboard
