#pragma once
// What programs that run several plans and compare them have in common: a table that is shown and
// kept as its rows come, data that is loaded once, and a look at all plans before the first runs.
#include <leeway/monitoring/picture.hpp>
#include <leeway/runtime/scenario.hpp>

#include <span>
#include <string>
#include <vector>

namespace leeway::study {

// Flags that make no sense where all is simulated, where workers train the whole model, and where
// nothing but a table is kept: for Scenario::decides().
const std::vector<std::string> kOfClusters = {"--nodes",     "--hosts", "--place",  "--port",
                                              "--transport", "--tls",   "--silence"};
const std::vector<std::string> kOfPipelines = {"--stages", "--pipelines", "--schedule",
                                               "--chunks", "--split",     "--recompute"};
const std::vector<std::string> kOfRunFolders = {"--trace", "--profile", "--check-determinism"};

/// `text` at the end of so many columns, behind one space at least.
std::string cell(std::size_t width, const std::string& text);

/// Loads the plan's data, which all of its copies share from then on; for runs in this process.
/// Keeps at most so many of the test samples.
Status share_data(Plan& plan, std::int64_t test_samples);

struct Named {
  std::string name;
  Plan plan;
};
/// Whether all of them can run, so that a table does not end in the middle. Errors begin with the
/// name of the first that cannot.
Status check(std::span<const Named> plans);

/// The table of a study. Where its command line names a folder, table.txt there has all that has
/// been told, whatever becomes of the rest.
class Report {
 public:
  explicit Report(const CommandLine& line);
  /// Makes the folder, if there is to be one.
  Status open();
  void tell(const std::string& text);
  /// Writes loss.svg anew.
  void draw(std::span<const Chart> charts, const PictureOptions& options = {});
  /// Says which run did not end well, and why. Returns the exit code.
  int failed(const std::string& run, const Result& result);
  /// Says why nothing was run. Returns the exit code.
  int refuse(const std::string& text);
  /// Says what is kept, and `more` of it. Returns 0.
  int end(const std::string& more = "");

 private:
  std::string name_, folder_;
  bool quiet_;
  bool told_ = false, drawn_ = false;
};

}  // namespace leeway::study
