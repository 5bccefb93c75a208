#pragma once
// The state of a run as text for a terminal: the views of the page that fit into it.
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace leeway::dashboard {

struct TerminalSize {
  std::size_t columns = 80, lines = 24;
};

/// At most `size.lines` lines of at most `size.columns` characters. Control characters in names are
/// replaced. Throws nlohmann::json::exception if `state` lacks a field.
std::string screen_of(const nlohmann::json& state, TerminalSize size);

}  // namespace leeway::dashboard
