#pragma once
// Post: CAF's middleman for a mesh: one actor system with one actor, the gate, at a port.
//
// Handlers run on the thread that reads the sockets. This saves a change of threads for each frame,
// and the place of a message's first chunk is known before the chunk is loaded.
#include <functional>
#include <memory>
#include <string>

#include "cluster/compat.hpp"
#include "core/expected.hpp"
#include "core/time.hpp"

namespace leeway::cluster {

struct PostOptions {
  std::string address;
  std::uint16_t port = 0;
  std::string tls;  // folder; empty: no TLS
  unsigned threads = 1;
};

class Post {
 public:
  struct Handlers {
    std::function<void(const Route& from, Frame&)> on_frame;
    std::function<void(const caf::actor_control_block*)> on_lost;  // a watched route is lost
  };

  /// Reads the certificates.
  static Expected<std::unique_ptr<Post>> open(const PostOptions& options);
  /// Closes, and joins all threads.
  ~Post();
  Post(const Post&) = delete;
  Post& operator=(const Post&) = delete;

  /// Begins to listen; calls handlers from now on.
  Status listen(Handlers handlers);
  std::uint16_t port() const;
  /// Returns the gate that listens there. Blocks; not from a handler.
  Expected<Route> call(const std::string& host, std::uint16_t port, Duration limit);
  bool is_own(const Route& route) const;
  /// From any thread; does not block. A frame for a lost connection is lost.
  void send(const Route& to, Frame frame);
  void watch(const Route& route);
  /// Closes all connections and calls no handler any more. Waits for the running handler, which may
  /// still send. Not from a handler.
  void close();

 private:
  struct State;
  explicit Post(std::unique_ptr<State> state);
  void cut_connections();
  std::unique_ptr<State> state_;
};

}  // namespace leeway::cluster
