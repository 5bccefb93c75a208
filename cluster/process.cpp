#include "cluster/process.hpp"

#include <chrono>
#include <exception>
#include <utility>

#include "cluster/node_name.hpp"
#include "core/text.hpp"

namespace leeway {

Status Process::open(const MeshOptions& options, const OpenMesh& open_mesh) {
  auto mesh = open_mesh(options, mesh_events());
  if (!mesh) return mesh.error();
  mesh_ = std::move(*mesh);
  return {};
}

void Process::close() {
  calls_.clear();  // waits for them
  mesh_.reset();
}

void Process::post(std::function<void()> call) {
  {
    std::lock_guard lock(queue_mutex_);
    queue_.push_back(std::move(call));
  }
  queued_.notify_one();
}

void Process::poll(Duration limit) {
  std::unique_lock lock(queue_mutex_);
  queued_.wait_for(lock, std::chrono::nanoseconds(limit.ns), [&] { return !queue_.empty(); });
  // Calls that arrive meanwhile wait for the next poll, so that a caller that polls has its turn.
  for (std::size_t left = queue_.size(); left > 0 && !queue_.empty(); --left) {
    const auto call = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    call();
    lock.lock();
  }
}

void Process::call(const std::string& name, Duration limit, const std::string& advice,
                   std::function<void(const Expected<PeerId>&)> then) {
  std::erase_if(calls_, [](const auto& call) {
    return call.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  });
  calls_.push_back(std::async(std::launch::async, [=, this] {
    Expected<PeerId> peer = Error{};
    try {
      const auto where = parse_node(name);
      peer = where ? mesh_->connect(where->host, where->port, limit, advice)
                   : Expected<PeerId>(where.error());
    } catch (const std::exception& error) {
      peer = Error{concat(name, ": ", error.what())};
    }
    post([then, peer] { then(peer); });
  }));
}

void Process::set_job(std::shared_ptr<JobNode> job) {
  {
    std::lock_guard lock(job_mutex_);
    job_.swap(job);
  }
  job.reset();  // waits for its actors
}

MeshEvents Process::mesh_events() {
  MeshEvents events;
  events.on_message = [this](PeerId peer, Address from, Address to, Message message) {
    if (to.kind != RoleKind::host)
      return with_routes(
          [&](JobRoutes& routes) { routes.on_message(peer, from, to, std::move(message)); });
    auto decoded = decode_node(message);
    if (!decoded) return post([this, text = decoded.error().text] { inputs_.note(text); });
    bool taken = false;
    with_routes([&](JobRoutes& routes) { taken = routes.on_notice(peer, *decoded); });
    if (taken) return;
    const auto envelope = std::make_shared<NodeEnvelope>(std::move(*decoded));
    post([this, peer, envelope] { inputs_.received(peer, envelope->job, envelope->body); });
  };
  events.on_up = [](PeerId) {};
  events.on_silent = [this](PeerId peer) {
    with_routes([&](JobRoutes& routes) { routes.on_silent(peer); });
    post([this, peer] { inputs_.silent(peer); });
  };
  events.on_heard = [this](PeerId peer) {
    with_routes([&](JobRoutes& routes) { routes.on_heard(peer); });
    post([this, peer] { inputs_.heard(peer); });
  };
  events.on_gone = [this](PeerId peer, const std::string& reason) {
    with_routes([&](JobRoutes& routes) { routes.on_gone(peer, reason); });
    post([this, peer, reason] { inputs_.gone(peer, reason); });
  };
  events.on_note = [this](const std::string& text) { post([this, text] { inputs_.note(text); }); };
  return events;
}

}  // namespace leeway
