#pragma once
// For tests of the mesh: a mesh that logs its callbacks, and messages with known bytes.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/rng.hpp"
#include "tests/support/patience.hpp"
#include "transport/mesh_node.hpp"

namespace leeway::test {

/// A header of two words, `number` and the seed of the blobs' bytes, and blobs of these sizes.
inline Message message_of(std::uint64_t number, const std::vector<std::size_t>& sizes = {}) {
  std::vector<Blob> blobs;
  for (const std::size_t size : sizes) {
    blobs.push_back(Blob::allocate(size));
    std::uint64_t word = mix64(number + blobs.size());
    for (std::size_t at = 0; at < size; at += 8, word += 0x9e3779b97f4a7c15ull)
      std::memcpy(blobs.back().mutable_data() + at, &word, std::min<std::size_t>(8, size - at));
  }
  return Message({number, sizes.size()}, std::move(blobs));
}
inline std::uint64_t number_of(const Message& message) {
  return message.header().empty() ? ~0ull : message.header()[0];
}
inline bool same_bytes(const Message& a, const Message& b) {
  if (!std::ranges::equal(a.header(), b.header()) || a.blobs().size() != b.blobs().size())
    return false;
  for (std::size_t i = 0; i < a.blobs().size(); ++i)
    if (bool(a.blobs()[i]) != bool(b.blobs()[i]) ||
        !std::ranges::equal(a.blobs()[i].bytes(), b.blobs()[i].bytes()))
      return false;
  return true;
}

struct Received {
  PeerId peer;
  Address from, to;
  Message message;
};

/// A mesh and the log of its callbacks: "up 0", "silent 0", "gone 0: left", "note: ...". An echo
/// sends messages back and prints its log.
class Station {
 public:
  explicit Station(const MeshOptions& options = {}, bool echo = false)
      : Station(options, echo, transport::own_protocol()) {}
  Station(const MeshOptions& options, bool echo, const transport::Protocol& protocol)
      : prints_(echo) {
    MeshEvents events;
    events.on_message = [this, echo](PeerId peer, Address from, Address to, Message message) {
      std::this_thread::sleep_for(handling.load());
      std::unique_lock lock(mutex_);
      if (echo) {
        // The constructor may not have returned yet.
        changed_.wait(lock, [&] { return mesh_ != nullptr; });
        return mesh_->send(peer, to, from, std::move(message));
      }
      received_.push_back({peer, from, to, std::move(message)});
      changed_.notify_all();
    };
    events.on_up = [this](PeerId peer) { write_event("up", peer); };
    events.on_silent = [this](PeerId peer) { write_event("silent", peer); };
    events.on_heard = [this](PeerId peer) { write_event("heard", peer); };
    events.on_reconnected = [this](PeerId peer) { write_event("reconnected", peer); };
    events.on_gone = [this](PeerId peer, const std::string& reason) {
      write_event("gone", peer, ": " + reason);
    };
    events.on_note = [this](const std::string& note) { write("note: " + note); };
    auto opened = transport::open_mesh_of(options, std::move(events), protocol);
    std::lock_guard lock(mutex_);
    if (opened)
      mesh_ = std::move(*opened);
    else
      error = opened.error().text;
    changed_.notify_all();
  }
  ~Station() { mesh_.reset(); }
  /// The time that each message takes.
  std::atomic<std::chrono::milliseconds> handling{};

  Mesh& mesh() {
    LW_CHECK(mesh_ != nullptr, error);
    return *mesh_;
  }
  void close() { mesh_.reset(); }
  Expected<PeerId> call(std::uint16_t port, Duration limit = seconds(30)) {
    return mesh().connect("127.0.0.1", port, limit);
  }
  PeerId must_call(std::uint16_t port) {
    const auto peer = call(port);
    LW_CHECK(peer.has_value(), peer ? "" : peer.error().text);
    return *peer;
  }

  /// Waits for a line with this beginning. False after the time limit.
  bool logged(const std::string& beginning, std::chrono::nanoseconds patience = kPatience) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [&] {
      return std::ranges::any_of(
          log_, [&](const std::string& piece) { return piece.starts_with(beginning); });
    });
  }
  /// Waits until this peer is gone. Returns the reason; empty after the time limit.
  std::string gone(std::uint64_t peer) {
    const std::string beginning = concat("gone ", peer, ": ");
    if (!logged(beginning)) return "";
    for (const std::string& line : log())
      if (line.starts_with(beginning)) return line.substr(beginning.size());
    return "";
  }
  std::vector<std::string> log() {
    std::lock_guard lock(mutex_);
    return log_;
  }
  /// The log without refusals of bulk lanes, which depend on timing when a peer leaves.
  std::vector<std::string> log_of_peers() {
    auto all = log();
    std::erase_if(all, [](const std::string& piece) {
      return piece.ends_with("no connection matches its bulk lane");
    });
    return all;
  }
  /// Waits for `count` messages. Returns fewer after the time limit.
  std::vector<Received> received(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return received_.size() >= count; });
    return {received_.begin(), received_.end()};
  }
  /// Drops the received messages.
  void forget() {
    std::lock_guard lock(mutex_);
    received_.clear();
  }

  std::string error;

 private:
  void write_event(const char* what, PeerId peer, const std::string& more = "") {
    write(concat(what, " ", peer, more));
  }
  void write(std::string piece) {
    std::lock_guard lock(mutex_);
    if (prints_) std::fprintf(stderr, "%s\n", piece.c_str());
    log_.push_back(std::move(piece));
    changed_.notify_all();
  }

  const bool prints_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> log_;
  std::deque<Received> received_;
  std::unique_ptr<Mesh> mesh_;
};

}  // namespace leeway::test
