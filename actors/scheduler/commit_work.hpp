#pragma once
// CommitWork: writes the manifest of a checkpoint, and removes old checkpoints.
#include <cstdint>
#include <memory>
#include <string>

#include "actors/job.hpp"
#include "actors/outbox.hpp"
#include "checkpoint/store.hpp"

namespace leeway {

class CommitWork final : public Work {
 public:
  CommitWork(std::shared_ptr<const Job> job, checkpoint::Manifest manifest)
      : job_(std::move(job)), manifest_(std::move(manifest)) {}

  int parts() const override { return 1; }
  Cost cost(int) const override { return {.bytes = 4096}; }
  bool waits_for_disk() const override { return true; }
  void run(int) override;

  const checkpoint::Manifest& manifest() const { return manifest_; }
  std::uint64_t bytes() const { return bytes_; }
  /// Empty if the checkpoint is complete.
  const std::string& error() const { return error_; }

 private:
  std::shared_ptr<const Job> job_;
  checkpoint::Manifest manifest_;
  std::uint64_t bytes_ = 0;
  std::string error_;
};

}  // namespace leeway
