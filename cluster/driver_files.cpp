// Driver: the files of checkpoints that nodes send to the program, or read from it.
#include <algorithm>

#include "checkpoint/store.hpp"
#include "cluster/driver.hpp"
#include "core/text.hpp"

namespace leeway {

void Driver::exchange_files(Node& node) {
  node.files = std::make_unique<FileExchange>(
      node.name, disk(),
      FileRights{.write = ask_.checkpoints.folder, .read = ask_.resumed.folder},
      [this, peer = node.peer](node::Body body) {
        mesh_->send(peer, kHost, kHost, encode(NodeEnvelope{number_, std::move(body)}));
      });
  using Checkpoints = node::Answer::Checkpoints;
  if (node.checkpoints == Checkpoints::sent || node.checkpoints == Checkpoints::copied)
    say(concat("node ", node.name, " does not see ", ask_.checkpoints.folder,
               ": it sends its files of checkpoints to this program",
               node.checkpoints == Checkpoints::copied ? ", and keeps a copy in that folder" : ""));
}

std::shared_ptr<const Job> Driver::with_copies(const std::shared_ptr<const Job>& job) const {
  std::vector<std::shared_ptr<Files>> places;
  for (const Node& node : nodes_)
    if (node.checkpoints == node::Answer::Checkpoints::copied)
      places.push_back(node.files->remote());
  if (places.empty()) return job;
  auto copy = std::make_shared<Job>(*job);
  copy->checkpoints = std::make_shared<const checkpoint::Store>(
      job->checkpoints->with_copies(std::move(places)));
  return copy;
}

std::int64_t Driver::last_file_request_ns() const {
  std::int64_t last = 0;
  for (const Node& node : nodes_)
    if (node.files) last = std::max(last, node.files->last_request_ns());
  return last;
}

}  // namespace leeway
