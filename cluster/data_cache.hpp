#pragma once
// DataCache: the last data sets of a node agent. The next job with the same data starts sooner.
#include <list>
#include <optional>

#include "messages/node.hpp"
#include "models/datasets/dataset.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// The data with that mark, if this machine can load or make it by the plan. May take minutes.
std::optional<TrainTest> load_matching(const Plan& plan, const node::DataMark& mark);

class DataCache {
 public:
  std::optional<TrainTest> find(const node::DataMark& mark);
  void keep(const node::DataMark& mark, TrainTest data);

 private:
  struct Entry {
    node::DataMark mark;
    TrainTest data;
  };
  std::list<Entry> entries_;  // newest first
};

}  // namespace leeway
