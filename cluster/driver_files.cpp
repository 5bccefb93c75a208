// Driver: the files of checkpoints that nodes send to the program, or read from it.
#include <algorithm>

#include "checkpoint/store.hpp"
#include "cluster/driver.hpp"
#include "core/text.hpp"

namespace leeway {

void Driver::exchange_files(std::size_t index, const node::Answer& answer) {
  using Checkpoints = node::Answer::Checkpoints;
  Node& node = nodes_[index];
  const std::string& folder = ask_.checkpoints.folder;
  const bool writes =
      !folder.empty() && placement_.has_shard(NodeIndex(static_cast<std::uint32_t>(index)));
  node.files = std::make_unique<FileExchange>(
      node.name, disk(),
      FileRights{.write_folder = writes ? folder : "", .read_folder = ask_.resumed.folder},
      [this, peer = node.peer](node::Body body) {
        mesh_->send(peer, kHostFiles, kHostFiles, encode(NodeEnvelope{number_, std::move(body)}));
      });
  if (!writes || answer.checkpoints == Checkpoints::shared) return;
  if (ask_.checkpoints.copies) {
    node.checkpoints = answer.checkpoints;
    node.next_checkpoint = answer.next_checkpoint;
  }
  say(concat("node ", node.name, " does not see ", folder,
             ": it sends its files of checkpoints to this program",
             ask_.checkpoints.copies ? ", and keeps copies in its own folder" : ""));
}

std::shared_ptr<const Job> Driver::with_copies(const std::shared_ptr<const Job>& job) const {
  std::vector<std::shared_ptr<Files>> places;
  std::uint64_t next = job->next_checkpoint;
  for (const Node& node : nodes_) {
    next = std::max(next, node.next_checkpoint);
    if (node.checkpoints == node::Answer::Checkpoints::copied)
      places.push_back(node.files->remote());
  }
  if (places.empty()) return job;
  auto copy = std::make_shared<Job>(*job);
  copy->next_checkpoint = next;
  copy->checkpoints =
      std::make_shared<const checkpoint::Store>(job->checkpoints->with_copies(std::move(places)));
  return copy;
}

std::int64_t Driver::last_file_request_ns() const {
  std::int64_t last = 0;
  for (const Node& node : nodes_)
    if (node.files) last = std::max(last, node.files->last_request_ns());
  return last;
}

}  // namespace leeway
