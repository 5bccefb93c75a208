#pragma once
// Finds scenario programs by their manifests, which the build installs next to the programs'
// folder.
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

/// A folder of programs and the folder of their manifests.
struct Place {
  std::filesystem::path programs;
  std::filesystem::path manifests;
};

/// Places to search for scenarios: next to the running program, then next to each folder of PATH.
std::vector<Place> search_places();

struct Found {
  std::vector<Manifest> scenarios;  // sorted by name; the first found wins
  std::vector<std::string> broken;  // errors of invalid manifests
};
Found find_scenarios(const std::vector<Place>& places);

/// Reads {"name", "summary", "description", "plan"}; leaves `program` empty.
Expected<Manifest> read_manifest(const std::filesystem::path& file);

}  // namespace leeway::cli
