#pragma once
// MemoryMesh: meshes in one process, connected through memory, for tests of protocols over a mesh.
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "core/text.hpp"
#include "transport/mesh.hpp"

namespace leeway::test {

class MemoryMesh;

/// All meshes that can connect to each other, by port.
struct MemoryNet {
  std::mutex mutex;
  std::map<std::uint16_t, MemoryMesh*> meshes;
  std::uint16_t next_port = 1000;
};

class MemoryMesh final : public Mesh {
 public:
  MemoryMesh(std::shared_ptr<MemoryNet> net, MeshOptions options, MeshEvents events)
      : net_(std::move(net)), options_(std::move(options)), events_(std::move(events)) {
    std::lock_guard lock(net_->mutex);
    port_ = options_.port != 0 ? options_.port : net_->next_port++;
    net_->meshes[port_] = this;
    thread_ = std::thread([this] { run(); });
  }
  ~MemoryMesh() override {
    {
      std::lock_guard lock(net_->mutex);
      net_->meshes.erase(port_);
      for (const auto& [peer, other] : peers_) other.mesh->lose(other.id, "its process has ended");
      peers_.clear();
    }
    {
      std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  std::string address() const override { return "127.0.0.1"; }
  std::uint16_t port() const override { return port_; }

  Expected<PeerId> connect(const std::string& host, std::uint16_t port, Duration,
                           const std::string& advice = kCheckAddress) override {
    std::lock_guard lock(net_->mutex);
    const auto found = net_->meshes.find(port);
    if (found == net_->meshes.end() || found->second == this)
      return Error{concat(host, ':', port, ": no process listens there; ", advice)};
    MemoryMesh* const other = found->second;
    for (const auto& [peer, known] : peers_)
      if (known.mesh == other) return peer;
    const PeerId here(++last_peer_), there(++other->last_peer_);
    peers_[here] = {other, there};
    other->peers_[there] = {this, here};
    other->push([other, there] { other->events_.on_up(there); });
    return here;
  }

  void send(PeerId to_peer, Address from, Address to, Message message) override {
    std::lock_guard lock(net_->mutex);
    const auto found = peers_.find(to_peer);
    if (found == peers_.end()) return;
    const auto [mesh, id] = found->second;
    mesh->push([mesh, id, from, to, message] { mesh->events_.on_message(id, from, to, message); });
  }

  void leave(PeerId peer) override {
    std::lock_guard lock(net_->mutex);
    const auto found = peers_.find(peer);
    if (found == peers_.end()) return;
    found->second.mesh->lose(found->second.id, "left");
    peers_.erase(found);
  }

  /// Reports to the other end that this peer is silent.
  void fall_silent(PeerId peer) {
    std::lock_guard lock(net_->mutex);
    const auto [mesh, id] = peers_.at(peer);
    mesh->push([mesh, id] { mesh->events_.on_silent(id); });
  }

  /// Both sides give up their connection, as after a long outage.
  void cut(MemoryMesh& other) {
    std::lock_guard lock(net_->mutex);
    for (const auto& [peer, known] : std::map(peers_)) {
      if (known.mesh != &other) continue;
      other.lose(known.id, "it could not be reached in time");
      lose(peer, "it could not be reached in time");
    }
  }

  /// Makes is_connected() false on this side, although messages still arrive.
  void hold_connection(PeerId peer, bool lost) {
    std::lock_guard lock(net_->mutex);
    const auto [mesh, id] = peers_.at(peer);
    if (lost)
      mesh->lost_.insert(id);
    else
      mesh->lost_.erase(id);
  }
  bool is_connected(PeerId peer) const override {
    std::lock_guard lock(net_->mutex);
    return peers_.contains(peer) && !lost_.contains(peer);
  }

  PeerCounts counts(PeerId) const override { return {}; }
  std::string name(PeerId) const override { return "?"; }

 private:
  struct Other {
    MemoryMesh* mesh;
    PeerId id;  // of this mesh at the other one
  };
  /// Requires the net's mutex.
  void lose(PeerId peer, const std::string& reason) {
    if (peers_.erase(peer) > 0) push([this, peer, reason] { events_.on_gone(peer, reason); });
  }
  void push(std::function<void()> call) {
    {
      std::lock_guard lock(mutex_);
      calls_.push_back(std::move(call));
    }
    changed_.notify_all();
  }
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return ending_ || !calls_.empty(); });
      if (ending_) return;
      const auto call = std::move(calls_.front());
      calls_.pop_front();
      lock.unlock();
      call();
      lock.lock();
    }
  }

  const std::shared_ptr<MemoryNet> net_;
  const MeshOptions options_;
  const MeshEvents events_;
  std::uint16_t port_ = 0;
  std::map<PeerId, Other> peers_;  // under the net's mutex
  std::set<PeerId> lost_;          // peers without a connection
  std::uint32_t last_peer_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> calls_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace leeway::test
