#pragma once
// The mesh events of an agent or a driver: messages for actors go to the job's node at once, all
// others into the inbox.
#include <functional>
#include <memory>
#include <shared_mutex>

#include "cluster/job_node.hpp"
#include "cluster/mesh_inbox.hpp"

namespace leeway {

/// open_mesh, or a test's replacement.
using OpenMesh =
    std::function<Expected<std::unique_ptr<Mesh>>(const MeshOptions& options, MeshEvents events)>;

/// All three outlive the mesh. `mutex` guards the pointer, which may be null.
inline MeshEvents events_into(MeshInbox& inbox, std::shared_mutex& mutex,
                              const std::shared_ptr<JobNode>& node) {
  using Kind = MeshInbox::Item::Kind;
  const auto with_node = [&mutex, &node](auto call) {
    std::shared_lock lock(mutex);
    if (node) call(*node);
  };
  MeshEvents events;
  events.on_message = [&inbox, with_node](PeerId peer, Address from, Address to, Message message) {
    if (to.kind == RoleKind::host) return inbox.push_message(peer, message);
    with_node([&](JobNode& it) { it.on_message(peer, from, to, std::move(message)); });
  };
  events.on_up = [](PeerId) {};
  events.on_silent = [&inbox, with_node](PeerId peer) {
    with_node([&](JobNode& it) { it.on_silent(peer); });
    inbox.push({Kind::silent, peer, {}, {}, {}});
  };
  events.on_heard = [&inbox, with_node](PeerId peer) {
    with_node([&](JobNode& it) { it.on_heard(peer); });
    inbox.push({Kind::heard, peer, {}, {}, {}});
  };
  events.on_gone = [&inbox, with_node](PeerId peer, const std::string& reason) {
    with_node([&](JobNode& it) { it.on_gone(peer, reason); });
    inbox.push({Kind::gone, peer, {}, reason, {}});
  };
  events.on_note = [&inbox](const std::string& text) {
    inbox.push({Kind::note, {}, {}, text, {}});
  };
  return events;
}

}  // namespace leeway
