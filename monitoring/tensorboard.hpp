#pragma once
// TensorBoardFile: writes the metrics of a run as a TensorBoard event file in its folder.
//
// Leeway writes the format itself, because the packaged writers of it need TensorFlow: a file is a
// sequence of records, each with its length, two checksums, and a message of protocol buffers that
// uses a dozen fields. Source: tensorflow/core/lib/io/record_writer.h for the framing,
// tensorflow/core/util/event.proto and framework/summary.proto for the messages.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "actors/monitor/monitor.hpp"
#include "actors/monitor/recent_progress.hpp"
#include "core/descriptor.hpp"

namespace leeway {

/// The step of each value is the number of samples trained. Its wall time is the time of the run
/// after the creation of this object, so it is virtual in a simulation.
///
/// A failure to write never stops the run: a record that does not fit is left out as a whole, and
/// the next one tries again.
class TensorBoardFile final : public Audience {
 public:
  /// Names a new file events.out.tfevents.SECONDS.HOST in `folder`. A resumed run hides the values
  /// of earlier files that are beyond its checkpoint.
  TensorBoardFile(const std::string& folder, const Job& job);
  TensorBoardFile(const TensorBoardFile&) = delete;
  TensorBoardFile& operator=(const TensorBoardFile&) = delete;

  void progress(const Progress& progress) override;
  void evaluated(const EvaluationResult& result) override;
  void ended(const RunTotals& totals) override;

  const std::string& path() const { return path_; }
  /// Error: the file lacks records.
  Status finish() const;

 private:
  /// Appends an event with these bytes of its message, or counts it as lost.
  void add(Instant at, std::uint64_t step, std::string_view content);
  bool append(std::string_view records);

  std::string path_;
  double began_at_;  // Unix time, in seconds
  bool has_losses_;
  bool has_classes_;
  std::string first_records_;  // empty: written
  std::unique_ptr<Descriptor> file_;
  std::uint64_t written_ = 0;
  std::uint64_t lost_ = 0;
  std::string cause_;  // of the first loss
  RecentProgress recent_;
};

}  // namespace leeway
