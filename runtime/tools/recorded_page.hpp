#pragma once
// RecordedPage: the page of a run that has ended, from its folder.
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/expected.hpp"
#include "dashboard/server.hpp"

namespace leeway {

class RecordedPage {
 public:
  /// Errors: a file of the run is missing or malformed.
  static Expected<std::unique_ptr<RecordedPage>> load(const std::string& folder);

  /// The whole state as JSON; see dashboard/state.hpp. With `predicted`, also the predictions,
  /// which takes as long as some simulations of the run; without them if the run cannot be
  /// simulated.
  std::string state(bool predicted) const;
  dashboard::PageSource source();

 private:
  RecordedPage() = default;
  /// As JSON: simulated with the durations of the run, without its worst straggler and under other
  /// settings.
  Expected<std::string> predictions() const;
  /// The first operations of some workers that end in a time, from the events of the run.
  Expected<std::string> operations(const dashboard::OperationsRequest& wanted) const;

  std::string folder_;
  Plan plan_;
  std::unique_ptr<dashboard::RunHistory> history_;
  mutable std::mutex mutex_;
  mutable std::optional<std::string> predictions_;
};

}  // namespace leeway
