#include "policies/catalogue.hpp"

namespace leeway {

namespace {

// To add a policy: write its files beside its siblings, add its arm to the plan and to its folder's
// make function, and a line here.
constexpr CatalogueEntry kOptimizers[] = {
    {"sgd", "gradient descent without memory"},
    {"momentum", "gradient descent with a velocity"},
    {"nesterov", "momentum that looks one step ahead"},
    {"adam", "steps scaled by running moments of the gradient"},
    {"adamw", "adam with weight decay apart from the gradient"},
    {"adagrad", "steps scaled by all squared gradients so far"},
};

constexpr CatalogueEntry kSchedules[] = {
    {"constant", "the full learning rate throughout"},
    {"step", "a drop by a factor every so many epochs"},
    {"cosine", "half a cosine from the full rate to a floor at the last epoch"},
};

constexpr CatalogueEntry kConsistency[] = {
    {"bsp", "a barrier every iteration: as one worker with all the batches together"},
    {"ssp", "workers run ahead of the slowest by at most the staleness bound"},
    {"asp", "no worker ever waits"},
    {"adaptive", "as ssp, with a bound that moves in a range by how much the workers wait"},
};

constexpr CatalogueEntry kBalance[] = {
    {"equal", "the batch for every worker"},
    {"by_speed", "the more samples an iteration, the faster a worker computes"},
};

}  // namespace

std::span<const CatalogueEntry> optimizer_catalogue() {
  return kOptimizers;
}
std::span<const CatalogueEntry> schedule_catalogue() {
  return kSchedules;
}
std::span<const CatalogueEntry> consistency_catalogue() {
  return kConsistency;
}
std::span<const CatalogueEntry> balance_catalogue() {
  return kBalance;
}

std::vector<std::string> names_of(std::span<const CatalogueEntry> entries) {
  std::vector<std::string> names;
  for (const auto& entry : entries) names.emplace_back(entry.name);
  return names;
}

}  // namespace leeway
