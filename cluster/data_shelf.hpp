#pragma once
// DataShelf: the data sets that a node agent has at hand, so that the next job of the same data
// need not wait for them.
#include <list>
#include <optional>

#include "messages/node.hpp"
#include "models/datasets/dataset.hpp"
#include "plan/plan.hpp"

namespace leeway {

class DataShelf {
 public:
  /// The data of that mark, when it is on the shelf, or when this machine can load or make it as
  /// the plan says.
  std::optional<TrainTest> find(const Plan& plan, const node::DataMark& mark);
  /// Keeps data that was sent.
  void keep(const node::DataMark& mark, TrainTest data);

 private:
  struct Entry {
    node::DataMark mark;
    TrainTest data;
  };
  std::list<Entry> entries_;  // the newest first
};

}  // namespace leeway
