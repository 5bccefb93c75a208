#include "cli/manifest.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <system_error>

#include "core/text.hpp"

namespace leeway::cli {
namespace fs = std::filesystem;
namespace {

Place place_of(const fs::path& programs) {
  return {programs, (programs / ".." / "share" / "leeway" / "scenarios").lexically_normal()};
}

std::vector<fs::path> json_files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".json") files.push_back(it->path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::vector<Place> search_places() {
  std::vector<Place> places;
  std::set<fs::path> seen;
  const auto add = [&](const fs::path& programs) {
    std::error_code error;
    const fs::path real = fs::weakly_canonical(programs, error);
    if (!error && seen.insert(real).second) places.push_back(place_of(real));
  };
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error) add(self.parent_path());
  const char* variable = std::getenv("PATH");
  std::string path = variable ? variable : "";
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    if (end > begin) add(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return places;
}

Expected<Manifest> read_manifest(const fs::path& file) {
  const auto broken = [&](const char* what) {
    return Error{concat(file.string(), ": ", what, "; build its scenario program again")};
  };
  std::ifstream in(file);
  if (!in) return broken("cannot be read");
  const auto json = nlohmann::ordered_json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return broken("is not a JSON object");
  Manifest manifest;
  for (const auto& [key, field] :
       {std::pair{"name", &manifest.name}, std::pair{"summary", &manifest.summary},
        std::pair{"description", &manifest.description}}) {
    if (!json.contains(key) || !json[key].is_string())
      return broken(concat("has no text \"", key, '"').c_str());
    *field = json[key].get<std::string>();
  }
  if (!json.contains("plan") || !json["plan"].is_object()) return broken("has no \"plan\"");
  manifest.plan = json["plan"];
  return manifest;
}

Found find_scenarios(const std::vector<Place>& places) {
  Found found;
  std::set<std::string> names;
  for (const Place& place : places) {
    for (const fs::path& file : json_files_in(place.manifests)) {
      auto manifest = read_manifest(file);
      if (!manifest) {
        found.broken.push_back(manifest.error().text);
        continue;
      }
      manifest->program = place.programs / file.stem();
      if (names.insert(manifest->name).second) found.scenarios.push_back(std::move(*manifest));
    }
  }
  std::sort(found.scenarios.begin(), found.scenarios.end(),
            [](const Manifest& a, const Manifest& b) { return a.name < b.name; });
  return found;
}

}  // namespace leeway::cli
