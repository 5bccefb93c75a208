#include "monitoring/progress_line.hpp"

#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "core/text.hpp"
#include "monitoring/format.hpp"

namespace leeway {
namespace {

constexpr Duration kPlainInterval = seconds(5);  // between lines if `out` is no terminal

}  // namespace

ProgressLine::ProgressLine(const Job& job, std::ostream& out)
    : out_(out),
      stages_(job.stages),
      terminal_(isatty(STDERR_FILENO) == 1),
      data_size_(job.data.train->size()),
      epochs_(job.plan.stop.epochs),
      has_losses_(job.has_losses()),
      adaptive_(job.consistency->has_moving_bound()) {
  const auto bound = job.consistency->largest_bound();
  // A worker's clock is i + 1 after it has pushed iteration i.
  gap_limit_ = bound == kUnbounded ? "" : concat('/', bound + 1);
}

std::string ProgressLine::text(const Progress& progress) {
  recent_.add(progress);
  const double epoch =
      static_cast<double>(progress.samples_trained) / static_cast<double>(data_size_);
  const double rate = recent_.samples_per_second();
  std::string line = concat("epoch ", fixed(epoch, 1));
  if (epochs_ > 0) line += concat('/', fixed(epochs_, epochs_ == std::floor(epochs_) ? 0 : 1));
  line += concat("  ", grouped(static_cast<std::uint64_t>(rate)), " samples/s");
  if (const double loss = recent_.train_loss(); has_losses_ && !std::isnan(loss))
    line += concat("  loss ", fixed(loss, 4));
  line += concat("  clock gap ", progress.clock_gap, gap_limit_, "  parked ", progress.parked_now,
                 stages_->piped() ? "  pipelines " : "  workers ",
                 progress.live_workers / static_cast<std::uint32_t>(stages_->spec().stages));
  if (adaptive_) line += concat("  bound ", progress.staleness);
  if (!evaluation_.empty()) line += concat("  test ", evaluation_);
  if (checkpoint_at_)
    line += concat("  checkpoint ", duration((progress.now - *checkpoint_at_).seconds()), " ago");
  if (epochs_ > 0 && rate > 0) {
    const double left = (epochs_ - epoch) * static_cast<double>(data_size_) / rate;
    line += concat("  ", duration(std::max(left, 0.0)), " left");
  }
  return line;
}

void ProgressLine::progress(const Progress& progress) {
  const std::string line = text(progress);
  if (terminal_) {
    out_ << "\r\x1b[K" << line << std::flush;
  } else if (printed_at_.ns < 0 || progress.now - printed_at_ >= kPlainInterval) {
    if (printed_at_.ns >= 0) out_ << line << std::endl;
    printed_at_ = progress.now;
  }
}

void ProgressLine::clear() {
  if (terminal_) out_ << "\r\x1b[K" << std::flush;
}

void ProgressLine::note(const std::string& text) {
  clear();
  out_ << text << std::endl;
}

void ProgressLine::evaluated(const EvaluationResult& result) {
  if (!has_losses_) return;
  if (!result.error.empty()) return note(concat(result.error, "; the run continues without it"));
  evaluation_ = result.accuracy > 0 ? percent(result.accuracy) : fixed(result.loss, 4);
}

void ProgressLine::checkpointed(const CheckpointResult& result) {
  if (result.error.empty()) {
    checkpoint_at_ = result.now;
    checkpoint_failed_ = false;
  } else if (!std::exchange(checkpoint_failed_, true)) {
    note(concat("checkpoint ", result.number, " could not be written: ", result.error,
                "; the run continues without it"));
  }
}

void ProgressLine::evicted(WorkerId worker, const msg::Evicted& evicted) {
  note(concat(stages_->name_of_member(worker), " ended and was evicted: ", evicted.reason, " (",
              evicted.returned_samples, " samples are leased again",
              evicted.partial ? ", one push is partial)" : ")"));
}

void ProgressLine::came_back(WorkerId worker) {
  note(concat(stages_->name_of_member(worker), " is back"));
}

void ProgressLine::bound_moved(const msg::BoundMoved& moved) {
  note(concat("staleness bound ", moved.before, " -> ", moved.staleness,
              ": workers wait for each other ", moved.lost_percent, "% of their time"));
}

void ProgressLine::replicas_changed(const msg::ReplicasChanged& changed) {
  using Change = msg::ReplicasChanged::Change;
  const auto shard = address_of(changed.shard);
  switch (changed.change) {
    case Change::shard_lost:
      return;  // the run's end says so
    case Change::primary_lost:
      return note(concat(shard, " ended: ", changed.reason, "; its standby takes over"));
    case Change::took_over:
      return note(concat("the standby of ", shard, " has taken over"));
    case Change::standby_lost:
      return note(concat("the standby of ", shard, " ended: ", changed.reason,
                         "; the shard continues without it"));
    case Change::in_sync:
      return note(concat(shard, " has a standby again"));
  }
}

void ProgressLine::ended(const RunTotals&) {
  clear();
}

}  // namespace leeway
