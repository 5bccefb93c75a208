#include "blame/result_file.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/text.hpp"

namespace leeway::blame {

WorkerSeconds worker_seconds(const nlohmann::json& result) {
  WorkerSeconds seconds;
  for (const auto& worker : result.at("workers")) {
    seconds.compute += worker.at("compute_seconds").get<double>();
    seconds.wait += worker.at("wait_seconds").get<double>();
  }
  return seconds;
}

Status read_result(const std::string& folder,
                   const std::function<void(const nlohmann::json&)>& handle) {
  const std::string path = folder + "/result.json";
  std::ifstream file(path);
  if (!file)
    return Error{concat("no file \"", path,
                        "\"; give the folder of a run that has ended, such as "
                        "runs/fashion-mlp-20261127-120000")};
  try {
    handle(nlohmann::json::parse(file));
  } catch (const nlohmann::json::exception& error) {
    return Error{concat('"', path, "\" is not the result of a run: ", error.what())};
  }
  return {};
}

}  // namespace leeway::blame
