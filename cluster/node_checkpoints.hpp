#pragma once
// How a node agent reads and writes the checkpoints of a job.
//
// A node that sees the folder of the program uses it directly. Any other node sends its files to
// the program and, if the request wants copies, also keeps them under the same path on its own
// disk. A checkpoint counts when all places have it. Only nodes with a shard use checkpoints.
#include "actors/job.hpp"
#include "cluster/file_exchange.hpp"
#include "messages/node.hpp"

namespace leeway {

/// Finds out how this node writes. With a copy, creates the folder for it. Error: the copy cannot
/// be kept.
Expected<node::Answer::Checkpoints> check_checkpoints(const node::Ask& ask, Files& disk);

/// A node's part of a job, for its checkpoints.
struct NodeCheckpoints {
  const node::Ask& ask;
  node::Answer::Checkpoints access;  // as check_checkpoints() returned it
  std::shared_ptr<Files> disk;       // of this machine

  /// What the program may do with the files here.
  FileRights program_rights() const;
  /// Sets the checkpoints of this node's job, and loads the one to resume from: its tensors only if
  /// the node has a shard.
  Status open(const std::shared_ptr<Files>& program, const Model& model, JobOptions& options) const;
};

}  // namespace leeway
