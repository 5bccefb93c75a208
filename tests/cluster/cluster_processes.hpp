#pragma once
// Clusters of real processes on loopback.
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <optional>

#include "core/text.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/process.hpp"

namespace leeway::test {

using Catch::Contains;
using namespace std::string_literals;

inline const std::string kBin = LEEWAY_BIN;
/// Longer than any silence of a live process on a loaded machine.
inline const std::string kLongSilence = "30s";

/// A process that prints the address at which it listens.
class Listener {
 public:
  explicit Listener(std::vector<std::string> arguments) : process_(std::move(arguments)) {}
  /// The printed address; "" after a time limit.
  std::string name() {
    const std::string mark = "listening on ";
    const auto find = [&] {
      const std::string text = process_.err();
      const auto at = text.find(mark);
      if (at == std::string::npos) return std::string();
      const auto begin = at + mark.size();
      const auto end = text.find_first_of(" \n", begin);
      if (end == std::string::npos) return std::string();
      std::string found = text.substr(begin, end - begin);
      if (found.ends_with(':')) found.pop_back();
      return found;
    };
    comes_true([&] { return !find().empty(); });
    return find();
  }
  bool prints(const std::string& text) {
    return comes_true([&] { return process_.err().find(text) != std::string::npos; });
  }
  Process& process() { return process_; }

 private:
  Process process_;
};

/// Node agents, and their names for a program.
class Nodes {
 public:
  explicit Nodes(int count, const std::string& silence = kLongSilence) {
    for (int i = 0; i < count; ++i)
      add({kBin + "/leeway", "node", "--listen", "127.0.0.1:0", "--silence", silence});
  }
  void add(std::vector<std::string> arguments) {
    nodes_.push_back(std::make_unique<Listener>(std::move(arguments)));
  }
  std::string text() {
    std::vector<std::string> names;
    for (const auto& node : nodes_) names.push_back(node->name());
    return join(names, ",");
  }
  Listener& operator[](std::size_t index) { return *nodes_[index]; }
  std::size_t size() const { return nodes_.size(); }
  /// Whether the last line of each agent reports that it is free.
  bool all_free() {
    return comes_true([&] {
      for (const auto& node : nodes_)
        if (!node->process().err().ends_with("free\n")) return false;
      return true;
    });
  }

 private:
  std::vector<std::unique_ptr<Listener>> nodes_;
};

/// An address at which no process listens.
inline std::string free_address() {
  Nodes nodes(1);
  return nodes[0].name();
}

inline std::vector<std::string> operator+(std::vector<std::string> all,
                                          const std::vector<std::string>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Epochs of a run that the test interrupts: more than any run reaches.
inline const std::string kEndless = "100000";

/// linear-regression with three workers whose iterations take some milliseconds.
inline std::vector<std::string> slow_run(const std::string& nodes, const std::string& out,
                                         const std::string& epochs = kEndless,
                                         const std::string& silence = kLongSilence) {
  return {kBin + "/linear-regression",
          "--nodes",
          nodes,
          "--staleness",
          "2",
          "--workers",
          "3",
          "--batch",
          "16",
          "--slow",
          "all:pauses(4ms/1)",
          "--epochs",
          epochs,
          "--silence",
          silence,
          "--trace-json",
          "--out",
          out};
}
inline std::vector<std::string> slow_run(Nodes& nodes, const std::string& out,
                                         const std::string& epochs = kEndless,
                                         const std::string& silence = kLongSilence) {
  return slow_run(nodes.text(), out, epochs, silence);
}

inline std::uint64_t samples_so_far(const std::string& folder) {
  std::istringstream lines(read_text(folder + "/metrics.jsonl"));
  std::uint64_t samples = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object() && json.contains("samples")) samples = json["samples"];
  }
  return samples;
}

inline bool gets_going(const std::string& folder) {
  return comes_true([&] { return samples_so_far(folder) > 2000; });
}

/// Checks that the process exits by itself, with that code.
inline void check_ends(Process& process, int code) {
  const auto ended = process.wait_up_to(kPatience);
  INFO(process.out() << process.err());
  REQUIRE(ended);
  CHECK(*ended == code);
}

/// Interrupts an endless run after two more epochs.
inline void interrupt_later(Process& program, const std::string& folder, std::uint64_t samples) {
  const std::uint64_t goal = samples_so_far(folder) + 2 * samples;
  REQUIRE(comes_true([&] { return samples_so_far(folder) >= goal; }));
  program.signal(SIGINT);
  check_ends(program, 130);
}

/// Checks by the events of all nodes that each sample of each epoch was trained once. Without
/// `epochs`, the run was interrupted and may lack samples of the last two epochs.
inline void check_trained_once(const std::string& folder, std::int64_t samples,
                               std::optional<std::int64_t> epochs = {}) {
  std::istringstream lines(read_text(folder + "/events.jsonl"));
  std::map<std::int64_t, std::map<std::int64_t, std::int64_t>> ranges;  // by epoch
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json["event"] != "trained") continue;
    const auto added = ranges[json["epoch"]].emplace(json["begin"], json["end"]);
    CHECK(added.second);
  }
  REQUIRE(ranges.size() > 2);
  const std::int64_t last = ranges.rbegin()->first;
  CHECK(static_cast<std::int64_t>(ranges.size()) == epochs.value_or(last + 1));
  for (const auto& [epoch, parts] : ranges) {
    const bool finished = epochs || epoch < last - 1;
    std::int64_t at = 0;
    for (const auto& [begin, end] : parts) {
      CHECK((finished ? begin == at : begin >= at));
      at = end;
    }
    CHECK((finished ? at == samples : at <= samples));
  }
}

}  // namespace leeway::test
