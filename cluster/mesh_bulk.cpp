// MeshNode: opens and takes bulk connections.
#include <chrono>

#include "cluster/mesh_node.hpp"

namespace leeway::cluster {
namespace {

constexpr Duration kOpenLimit = milliseconds(1000);
/// A busy host gets another chance.
constexpr int kOpenTries = 3;
constexpr std::chrono::seconds kOpenPause{3};
/// The peer's other connection reports the end of its process; this one waits for it.
constexpr std::chrono::milliseconds kGrace{300};

}  // namespace

Status MeshNode::listen_for_bulk() {
  auto tls = BulkTls::read(options_.tls);
  if (!tls) return tls.error();
  bulk_tls_ = std::move(*tls);
  auto listener = BulkListener::open(
      options_.address, bulk_tls_,
      {.knows =
           [this](Token token) {
             const auto link = find_token(token);
             return link && link->is_connected_by(token);
           },
       .take =
           [this](const BulkHello& hello, std::unique_ptr<BulkSocket> socket) {
             if (const auto link = find_token(hello.token))
               run_bulk(link, hello.token, hello.to_caller != 0, std::move(socket));
           },
       .note = [this](const std::string& text) { events_.on_note(text); }});
  if (!listener) return listener.error();
  bulk_listener_ = std::move(*listener);
  bulk_port_ = bulk_listener_->port();
  return {};
}

void MeshNode::open_bulk(const LinkPointer& link, std::uint16_t port) {
  in_background([this, link, port] {
    const Link::Connection connection = link->connection();
    for (const bool to_caller : {false, true}) {
      const BulkHello hello{.token = connection.token, .to_caller = to_caller};
      std::unique_ptr<BulkSocket> socket;
      for (int i = 0; i < kOpenTries && !socket; ++i) {
        if (i > 0 && !still_connected(link, connection.token, kOpenPause)) return;
        auto made = cluster::open_bulk(connection.host, port, bulk_tls_.get(), hello, kOpenLimit);
        if (made)
          socket = std::move(*made);
        else if (i + 1 == kOpenTries)
          return events_.on_note(concat("large blobs for ", link->name(),
                                        " travel with everything else, which is slower: port ",
                                        port, " there cannot be reached (", made.error().text,
                                        ")"));
      }
      run_bulk(link, connection.token, !to_caller, std::move(socket));
    }
  });
}

/// Waits. False: this mesh is closing, or the link has another connection.
bool MeshNode::still_connected(const LinkPointer& link, Token token,
                               std::chrono::milliseconds time) {
  std::unique_lock lock(call_mutex_);
  call_changed_.wait_for(lock, time, [&] { return closing_ || !link->is_connected_by(token); });
  return !closing_ && link->is_connected_by(token);
}

void MeshNode::run_bulk(const LinkPointer& link, Token token, bool sends,
                        std::unique_ptr<BulkSocket> socket) {
  if (sends) {
    auto bulk = std::make_shared<BulkOut>(std::move(socket));
    if (!link->send_by(bulk, token)) return;
    return in_background([this, link, token, bulk] {
      bulk->run([&] { link->bulk_sent(*bulk); });
      end_of_bulk(link, token);
    });
  }
  const std::shared_ptr<BulkSocket> read = std::move(socket);
  in_background([this, link, token, read] {
    if (link->read_from(read, token)) end_of_bulk(link, token);
  });
}

/// Its messages are lost, so the whole connection is lost.
void MeshNode::end_of_bulk(const LinkPointer& link, Token token) {
  if (still_connected(link, token, kGrace)) lose(link, token);
}

}  // namespace leeway::cluster
