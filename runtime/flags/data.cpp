#include "runtime/flags/data.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/text.hpp"
#include "plan/settings.hpp"

namespace leeway {
namespace {

namespace fs = std::filesystem;

bool has_ending(const std::string& path, std::string_view ending) {
  return path.ends_with(ending) || path.ends_with(concat(ending, ".gz"));
}

bool has_subfolder(const std::string& path) {
  std::error_code error, ignored;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
    if (it->is_directory(ignored)) return true;
  return false;
}

/// The data as `Kind`, with the settings that it has already.
template <class Kind>
Kind& as(plan::DataSource& data) {
  auto* const same = std::get_if<Kind>(&data);
  return same ? *same : data.emplace<Kind>();
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// Changes the kind of data to that of the path. Text data stays text.
void set_path(const std::string& path, plan::DataSource& data) {
  const bool table = std::holds_alternative<plan::Csv>(data) || has_ending(path, ".csv") ||
                     has_ending(path, ".tsv") || is_file(path);
  if (auto* const text = std::get_if<plan::TextCorpus>(&data)) {
    text->file = path;
  } else if (has_ending(path, ".npy")) {
    as<plan::Npy>(data).features = path;
  } else if (table) {
    auto& csv = as<plan::Csv>(data);
    csv.train = path;
    if (has_ending(path, ".tsv") && csv.separator == ",") csv.separator = "tab";
  } else if (std::holds_alternative<plan::ImageFolder>(data) || has_subfolder(path)) {
    as<plan::ImageFolder>(data).train = path;
  } else {
    as<plan::FashionMnist>(data).directory = path;
  }
}

Error not_csv(std::string_view flag) {
  return Error{concat(flag, ": applies to CSV files only; give --data FILE.csv, or leave it out")};
}

Expected<plan::Missing> parse_missing(const std::string& text) {
  for (const auto value : {plan::Missing::refuse, plan::Missing::mean})
    if (text == name_of(value)) return value;
  return Error{concat("--missing: \"", text, "\" is not known; give ",
                      join(plan::choices("data.csv.missing"), " or "))};
}

Expected<std::vector<std::string>> parse_columns(const std::string& text) {
  auto names = comma_separated(text);
  if (std::ranges::count(names, "") > 0)
    return Error{"--text-columns: a name is empty; give names separated by commas"};
  return names;
}

Status apply_csv(const DataFlags& flags, plan::DataSource& data) {
  auto* const csv = std::get_if<plan::Csv>(&data);
  for (const auto& [flag, given] : {std::pair{"--separator", flags.separator.has_value()},
                                    std::pair{"--missing", flags.missing.has_value()},
                                    std::pair{"--text-columns", flags.text_columns.has_value()},
                                    std::pair{"--no-header", flags.no_header}})
    if (given && !csv) return not_csv(flag);
  if (flags.separator) csv->separator = *flags.separator;
  if (flags.no_header) csv->header = false;
  if (flags.missing) {
    const auto missing = parse_missing(*flags.missing);
    if (!missing) return missing.error();
    csv->missing = *missing;
  }
  if (flags.text_columns) {
    auto columns = parse_columns(*flags.text_columns);
    if (!columns) return columns.error();
    csv->text_columns = std::move(*columns);
  }
  return {};
}

}  // namespace

std::string data_path(const plan::DataSource& data) {
  if (const auto* fashion = std::get_if<plan::FashionMnist>(&data)) return fashion->directory;
  if (const auto* table = std::get_if<plan::Csv>(&data)) return table->train;
  if (const auto* text = std::get_if<plan::TextCorpus>(&data)) return text->file;
  if (const auto* npy = std::get_if<plan::Npy>(&data)) return npy->features;
  if (const auto* images = std::get_if<plan::ImageFolder>(&data)) return images->train;
  return "";
}

Status apply_data(const DataFlags& flags, plan::DataSource& data) {
  if (flags.path) {
    if (std::holds_alternative<plan::Synthetic>(data) ||
        std::holds_alternative<plan::CustomData>(data))
      return Error{"--data: this scenario generates its data; leave the flag out"};
    set_path(*flags.path, data);
  }
  if (flags.label) {
    if (auto* const csv = std::get_if<plan::Csv>(&data)) {
      csv->label = *flags.label;
    } else if (auto* const npy = std::get_if<plan::Npy>(&data)) {
      npy->labels = *flags.label;
    } else {
      return Error{
          "--label: applies to CSV and .npy files only; give --data FILE, or leave it out"};
    }
  }
  const auto* const npy = std::get_if<plan::Npy>(&data);
  if (flags.path && npy && npy->labels.empty())
    return Error{
        concat("--data: ", *flags.path, " needs the file of its labels; give --label FILE.npy")};
  return apply_csv(flags, data);
}

}  // namespace leeway
