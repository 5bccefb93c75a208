#include "campaign.hpp"

#include <leeway/core/exit_codes.hpp>
#include <leeway/core/text.hpp>

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>

namespace leeway::study {
namespace {

/// The figures: one JSON object per line.
constexpr const char* kTrialsFile = "trials.jsonl";
/// Without a terminal, a line is printed when another tenth of the runs is done, or this long after
/// the line before.
constexpr std::chrono::seconds kBetweenLines{60};

/// "3 min"
std::string about(double seconds) {
  return seconds < 90 ? concat(std::llround(seconds), " s")
                      : concat(std::llround(seconds / 60), " min");
}

Error unwritable(const std::string& path) {
  return Error{concat(path, ": cannot be written; is the disk full?")};
}

}  // namespace

Campaign::Campaign(std::size_t total, bool quiet)
    : total_(total), shows_(!quiet), on_terminal_(isatty(2) == 1) {}

Status Campaign::open(Report& report, const nlohmann::json& settings) {
  if (const Status opened = report.open(kTrialsFile); !opened) return opened;
  if (report.folder().empty()) return {};
  const std::string path = report.folder() + '/' + kTrialsFile;
  std::string line;
  std::ifstream in(path);
  if (std::getline(in, line)) {
    if (nlohmann::json::parse(line, nullptr, false) != settings)
      return Error{concat(path, ": belongs to a study with other settings; give another --out")};
    while (std::getline(in, line)) take(nlohmann::json::parse(line, nullptr, false));
  }
  in.close();
  // Without a last line that a kill has cut off.
  const std::string fresh = path + ".new";
  out_.open(fresh);
  out_ << settings << std::endl;
  for (const auto& [trial, figures] : known_) write(trial, figures);
  if (!out_) return unwritable(fresh);
  std::error_code failed;
  std::filesystem::rename(fresh, path, failed);
  if (failed) return Error{concat(path, ": cannot be written: ", failed.message())};
  return {};
}

int Campaign::run(const std::vector<Named>& trials,
                  const std::function<Figures(const Result&)>& figures, const Figures& failed,
                  Report& report, const Runner& runner) {
  std::vector<const Named*> left;
  for (const Named& trial : trials)
    if (!known_.contains(trial.name)) left.push_back(&trial);
  return in_parallel(
      left.size(),
      [&](std::size_t i) {
        return runner ? runner(*left[i]) : leeway::run(left[i]->plan, {.quiet = true});
      },
      [&](std::size_t i, const Result& result) {
        if (!result.ran || !result.violated.empty() || result.exit_code == kExitInterrupted)
          return report.failed(left[i]->name, result);
        known_[left[i]->name] = result.ok() ? figures(result) : failed;
        if (out_.is_open()) {
          write(left[i]->name, known_[left[i]->name]);
          if (!out_) return report.refuse(unwritable(report.folder() + '/' + kTrialsFile).text);
        }
        show_progress();
        return 0;
      });
}

void Campaign::write(const std::string& trial, const Figures& figures) {
  nlohmann::json line{{"trial", trial}};
  for (const auto& [name, value] : figures)
    line[name] = std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
  out_ << line << std::endl;
}

void Campaign::take(const nlohmann::json& line) {
  if (!line.contains("trial")) return;  // the last line of a study that was killed
  Figures& figures = known_[line["trial"]];
  for (const auto& [name, value] : line.items())
    if (name != "trial") figures[name] = value.is_null() ? kNever : value.get<double>();
}

void Campaign::show_progress() {
  ++ran_;
  if (!shows_) return;
  const auto now = std::chrono::steady_clock::now();
  const double spent = std::chrono::duration<double>(now - begin_).count();
  const std::size_t left = total_ - std::min(total_, known_.size());
  const std::string text =
      concat(known_.size(), " of ", total_, " runs, ",
             about(spent / static_cast<double>(ran_) * static_cast<double>(left)), " left");
  if (on_terminal_) {
    std::cerr << "\r\x1b[K" << text << (left == 0 ? "\r\x1b[K" : "") << std::flush;
    return;
  }
  const std::size_t tenth = known_.size() * 10 / std::max<std::size_t>(total_, 1);
  if (tenth == line_tenth_ && now - line_at_ < kBetweenLines) return;
  line_tenth_ = tenth;
  line_at_ = now;
  std::cerr << text << std::endl;
}

std::string fingerprint(std::span<const Named> trials) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto add = [&](const std::string& text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  };
  for (const auto& [name, plan] : trials) add(concat(name, '\n', to_json(plan), '\n'));
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

double middle(const std::vector<double>& values) {
  return values[values.size() / 2];
}

std::string range_text(const std::vector<double>& values,
                       const std::function<std::string(double)>& text) {
  return concat('(', text(values.front()), " to ", text(values.back()), ')');
}

std::string median_text(const std::vector<double>& values,
                        const std::function<std::string(double)>& text) {
  return concat(text(middle(values)), ' ', range_text(values, text));
}

}  // namespace leeway::study
