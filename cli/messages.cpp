// `leeway messages`: prints the messages of a run with --trace-messages.
#include "messages/message_log.hpp"

#include <algorithm>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "core/text.hpp"
#include "monitoring/format.hpp"

namespace leeway::cli {
namespace {

Status read_actor(const char* flag, const std::string& text, std::string& name) {
  name = text;
  // A fault cannot name these two.
  if (text.empty() || text == "monitor" || text == "host") return {};
  const auto address = parse_address(text);
  if (!address) return Error{concat(flag, ": ", address.error().text)};
  name = spelled(*address);
  return {};
}

/// The filter of the options. Error: an actor or a kind is unknown.
Expected<MessageFilter> read_filter(const MessagesOptions& options) {
  MessageFilter filter{.from = "", .to = "", .kind = options.kind, .json = options.json};
  if (const auto from = read_actor("--from", options.from, filter.from); !from) return from.error();
  if (const auto to = read_actor("--to", options.to, filter.to); !to) return to.error();
  const auto kinds = message_kinds();
  if (!filter.kind.empty() && std::find(kinds.begin(), kinds.end(), filter.kind) == kinds.end())
    return Error{
        concat("--kind: no message is called \"", filter.kind, '"', suggest(filter.kind, kinds))};
  return filter;
}

void print_text(const RecordedMessage& message) {
  std::cout << std::setw(12) << fixed(static_cast<double>(message.at.ns) * 1e-6, 3) << " ms  "
            << message.from << " -> " << message.to << "  " << message.kind << ' ' << message.body;
  if (message.tensor_bytes > 0) std::cout << "  + " << size_text(message.tensor_bytes);
  std::cout << '\n';
}

void print_json(const RecordedMessage& message) {
  const nlohmann::ordered_json json{{"ns", message.at.ns},
                                    {"from", message.from},
                                    {"to", message.to},
                                    {"kind", message.kind},
                                    {"tensor_bytes", message.tensor_bytes},
                                    {"body", nlohmann::ordered_json::parse(message.body)}};
  std::cout << json.dump() << '\n';
}

}  // namespace

int messages(const std::string& folder, const MessagesOptions& options) {
  const auto filter = read_filter(options);
  if (!filter) return refuse(filter.error());
  const std::string file =
      std::filesystem::is_directory(folder) ? folder + "/messages.bin" : folder;
  std::uint64_t left = options.limit;
  const auto note = read_messages(file, *filter, [&](const RecordedMessage& message) {
    (options.json ? print_json : print_text)(message);
    return std::cout.good() && (options.limit == 0 || --left > 0);
  });
  std::cout.flush();
  if (!note) return refuse(note.error());
  if (!note->empty()) std::cerr << "leeway: " << *note << '\n';
  return kExitOk;
}

}  // namespace leeway::cli
