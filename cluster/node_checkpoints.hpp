#pragma once
// How a node agent reads and writes the checkpoints of a job.
//
// A node that sees the folder of the program uses it directly. Any other node sends its files to
// the program and, if the request wants copies, also keeps them under the same path on its own
// disk. A checkpoint counts when all places have it. Only nodes with a shard use checkpoints.
#include "actors/job.hpp"
#include "checkpoint/store.hpp"
#include "cluster/file_exchange.hpp"
#include "messages/node.hpp"

namespace leeway {

/// Finds out how this node writes, and sets it in the answer. Creates the folder for copies. Error:
/// copies cannot be kept there.
Status check_checkpoints(const node::Ask& ask, Files& disk, node::Answer& answer);

/// A node's part of a job, for its checkpoints.
class NodeCheckpoints {
 public:
  /// `access`: as check_checkpoints() has set it. `disk`: the files of this machine.
  NodeCheckpoints(const node::Ask& ask, node::Answer::Checkpoints access,
                  std::shared_ptr<Files> disk)
      : ask_(ask), access_(access), disk_(std::move(disk)) {}

  /// The program's rights to the files here.
  FileRights program_rights() const;
  /// Sets the checkpoints of this node's job, and loads the one to resume from: its tensors only if
  /// the node has a shard.
  Status open(const std::shared_ptr<Files>& program, const Model& model, JobOptions& options) const;

 private:
  /// From this machine if it has the same checkpoint intact, otherwise from the program.
  Expected<checkpoint::Checkpoint> load_here_or_there(const std::shared_ptr<Files>& program,
                                                      const Model& model) const;

  const node::Ask& ask_;
  node::Answer::Checkpoints access_;
  std::shared_ptr<Files> disk_;
};

}  // namespace leeway
