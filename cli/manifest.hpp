#pragma once
// Scenario programs that the `leeway` command can find: each left a manifest beside its folder of
// programs.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/expected.hpp"

namespace leeway::cli {

struct Manifest {
  std::string name;
  std::string summary;            // one line
  std::string description;        // paragraphs
  nlohmann::ordered_json plan;    // the default plan
  std::filesystem::path program;  // to run
};

/// A folder of programs, and the folder of the manifests that belong to them.
struct Place {
  std::filesystem::path programs;
  std::filesystem::path manifests;
};

/// Where scenarios are looked for: beside the running program, then beside each folder of PATH.
std::vector<Place> search_places();

struct Found {
  std::vector<Manifest> scenarios;  // by name; of two with one name, the one that is found first
  std::vector<std::string> broken;  // why a manifest was passed over
};
Found find_scenarios(const std::vector<Place>& places);

/// Reads {"name", "summary", "description", "plan"}. `program` is left empty.
Expected<Manifest> read_manifest(const std::filesystem::path& file);

}  // namespace leeway::cli
