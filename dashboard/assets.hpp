#pragma once
// The files of the page, which the program contains.
#include <span>
#include <string_view>

namespace leeway::dashboard {

struct Asset {
  std::string_view path;  // "/page.css"
  std::string_view type;  // of its content
  std::string_view content;
};

/// The first one is the page itself.
std::span<const Asset> assets();

}  // namespace leeway::dashboard
