#pragma once
// CommitWork: writes the manifest of a checkpoint, and removes old checkpoints. If a shard has
// failed, removes the files of the other shards instead.
#include <cstdint>
#include <memory>
#include <string>

#include "actors/job.hpp"
#include "actors/outbox.hpp"
#include "checkpoint/store.hpp"

namespace leeway {

class CommitWork final : public Work {
 public:
  /// `error`: why a shard could not store its files; empty if all have.
  CommitWork(std::shared_ptr<const Job> job, checkpoint::Manifest manifest, std::string error)
      : job_(std::move(job)), manifest_(std::move(manifest)), error_(std::move(error)) {}

  int parts() const override { return 1; }
  Cost cost(int) const override { return {.bytes = 4096}; }
  bool waits_for_disk() const override { return true; }
  void run(int) override;

  const checkpoint::Manifest& manifest() const { return manifest_; }
  /// Of the complete checkpoint.
  std::uint64_t bytes() const { return error_.empty() ? total_bytes(manifest_) : 0; }
  /// Empty if the checkpoint is complete.
  const std::string& error() const { return error_; }

 private:
  std::shared_ptr<const Job> job_;
  checkpoint::Manifest manifest_;
  std::string error_;
};

}  // namespace leeway
