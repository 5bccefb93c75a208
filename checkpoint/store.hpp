#pragma once
// Store: the checkpoints of one run, each in a numbered folder.
//
//   run                             the random names of the run and of its last start
//   000012/weights-0.safetensors    the weights on shard 0, with PyTorch's names
//   000012/optimizer-0.safetensors  the optimizer's state for them
//   000012/plan.json                the plan
//   000012/manifest.json            everything else, and the digests of the other files
//
// The shards write their files in parallel, each durably, and the scheduler writes the manifest
// last. A checkpoint exists iff it has a manifest, so a crash at any time leaves the earlier ones.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "core/files.hpp"
#include "models/layout.hpp"
#include "plan/plan.hpp"

namespace leeway::checkpoint {

/// A block of a shard, in host memory.
struct StoredBlock {
  const Block* block = nullptr;
  Blob weights;
  std::vector<Blob> slots;  // state of the optimizer; none for statistics
};

/// All values of a parameter or of one slot of the optimizer: in a file of the checkpoint, which
/// stays open, or in memory.
struct Values {
  const float* as_floats() const { return floats.data(); }

  std::span<const float> floats;  // the parameter's shape, row-major
  std::shared_ptr<const void> owner;
};

/// The state of one parameter, over all shards.
struct ParameterState {
  /// Rows that were updated together.
  struct Rows {
    std::int64_t first = 0, count = 0;
    Version version;
    double progress = 0;  // sum of the weights of the pushes applied
    std::int64_t samples = 0;
  };
  Values weights;
  std::vector<Values> slots;
  std::vector<Rows> rows;  // together all rows, in any order
};

struct Checkpoint {
  std::string folder;  // of the store
  Manifest manifest;
  Plan plan;
  std::vector<ParameterState> parameters;  // as in the model; empty without tensors

  std::string path() const;
  /// Forgets the tensors, and so unmaps their files.
  void release_tensors() { parameters = {}; }
};

/// The name of the folder of a checkpoint.
std::string folder_name(std::uint64_t number);

/// The run and the process that write into a folder of checkpoints.
struct Owner {
  std::string run;
  std::string writer;  // name of the start of this run
};

class Store {
 public:
  /// `folder` holds the numbered folders; it is created with the first checkpoint. `writer` is the
  /// name of this start of the run; empty: the store writes without claim().
  Store(std::shared_ptr<Files> files, std::string folder, std::string writer = "")
      : files_(std::move(files)), folder_(std::move(folder)), writer_(std::move(writer)) {}
  /// With files that outlive the store.
  Store(Files& files, std::string folder, std::string writer = "")
      : Store(borrowed(files), std::move(folder), std::move(writer)) {}

  /// A store that changes its files in other places as well.
  Store with_copies(std::vector<std::shared_ptr<Files>> places) const;

  const std::string& folder() const { return folder_; }
  const std::string& writer() const { return writer_; }
  std::string path(std::uint64_t number) const { return folder_ + "/" + folder_name(number); }

  /// Creates the folder and records in it that this store writes the checkpoints of the run there.
  /// Stores that claimed the folder earlier then refuse to change it. The first checkpoint in a
  /// folder without a claim, or with a damaged one, claims it.
  Status claim(const std::string& run) const;
  /// The last claim. Error: this machine sees none, or it is damaged.
  Expected<Owner> owner() const;
  /// Creates the folder with a mark of this writer, by which other machines see that they share it.
  Status put_mark() const;
  void remove_mark() const;
  /// True if the folder has the mark of this store's writer.
  bool has_mark() const;

  /// Writes the tensors of one shard. Returns the files for the manifest. After an error, removes
  /// its own files.
  Expected<std::vector<msg::StoredFile>> write_tensors(std::uint64_t number, ShardId shard,
                                                       const Model& model,
                                                       std::span<const StoredBlock> blocks) const;
  /// Completes a checkpoint: adds the plan's file, also to `manifest`, and writes the manifest.
  /// Then removes all but the latest `keep` checkpoints, and remains of incomplete ones before
  /// this; what cannot be removed is tried again with the next checkpoint. If the checkpoint cannot
  /// be completed, removes it. Only one process of a run calls this: another may not see a manifest
  /// yet.
  Status commit(Manifest& manifest, const Plan& plan, std::uint32_t keep) const;

  /// The complete checkpoints in ascending order; none without the folder.
  Expected<std::vector<std::uint64_t>> numbers() const;
  /// One more than all numbers here, also of incomplete checkpoints, to which a process that was
  /// left over may still write.
  Expected<std::uint64_t> next_number() const;
  Expected<Manifest> manifest(std::uint64_t number) const;
  Expected<Plan> plan(std::uint64_t number) const;
  /// Checks size and digest of every file. The error names the file and the cause.
  Status verify(std::uint64_t number) const;
  /// Verifies and reads a checkpoint. Error: a file is missing or damaged, or the checkpoint is of
  /// another model.
  Expected<Checkpoint> load(std::uint64_t number, const Model& model) const;
  /// Removes a checkpoint, its manifest first.
  Status remove(std::uint64_t number) const;

 private:
  /// Nullopt if that cannot be found out.
  std::optional<bool> has_manifest(std::uint64_t number) const;
  /// The numbers of all checkpoints, also of incomplete ones; none without the folder.
  Expected<std::vector<std::uint64_t>> folders() const;
  /// The same in all places of the files.
  Expected<std::vector<std::uint64_t>> folders_in_all_places() const;
  std::string mark() const { return folder_ + "/run-" + writer_; }
  Status complete(Manifest& manifest, const Plan& plan) const;
  /// False if the store needs a claim and the folder has none. Error: another store has claimed it.
  Expected<bool> is_claimed() const;
  /// Removes all but the latest `keep` checkpoints up to `number`, as far as possible.
  void remove_old(std::uint64_t number, std::uint32_t keep) const;
  /// Removes remains of incomplete checkpoints with numbers below `end`, as far as possible.
  void remove_incomplete(std::uint64_t end) const;
  /// Removes the folder of a checkpoint without a manifest.
  Status remove_remains(std::uint64_t number) const;
  /// Removes remains of an incomplete checkpoint with the same number, as far as possible.
  void remove_unlisted(const Manifest& manifest) const;
  Expected<Plan> plan_of(const Manifest& manifest) const;
  /// Opens a file of a checkpoint, and compares its size.
  Expected<std::shared_ptr<const Files::Content>> open(std::uint64_t number,
                                                       const msg::StoredFile& file) const;
  /// Opens a file, and compares its digest too.
  Expected<std::shared_ptr<const Files::Content>> read(std::uint64_t number,
                                                       const msg::StoredFile& file) const;
  Status check_digest(std::uint64_t number, const msg::StoredFile& file,
                      std::span<const std::byte> bytes) const;

  std::shared_ptr<Files> files_;
  std::string folder_;
  std::string writer_;
};

}  // namespace leeway::checkpoint
