#pragma once
// FileExchange: file operations between this process and another of the same job, both ways.
#include <memory>
#include <string>
#include <variant>

#include "cluster/file_server.hpp"
#include "cluster/remote_files.hpp"

namespace leeway {

/// Files have an address of their own at each host, so that no other message waits for their
/// pieces: messages between two addresses stay in order.
inline constexpr Address kHostFiles{RoleKind::host, 1};

class FileExchange {
 public:
  /// `rights`: of the other process, to `files`. `name`: its name. `send` is called from any
  /// thread, until the destructor has returned.
  FileExchange(std::string name, Files& files, FileRights rights,
               const std::function<void(node::Body)>& send)
      : remote_(std::make_shared<RemoteFiles>(
            std::move(name), [send](node::FileRequest request) { send(std::move(request)); })),
        server_(files, std::move(rights),
                [send](node::FileAnswer answer) { send(std::move(answer)); }) {}
  ~FileExchange() { close("the job ends"); }

  /// The files of the other process.
  const std::shared_ptr<RemoteFiles>& remote() const { return remote_; }
  /// Handles a request or an answer; returns false for another message.
  bool handle(node::Body& body) {
    if (auto* request = std::get_if<node::FileRequest>(&body))
      server_.submit(std::move(*request));
    else if (auto* answer = std::get_if<node::FileAnswer>(&body))
      remote_->on_answer(std::move(*answer));
    else
      return false;
    return true;
  }
  /// No answer will follow.
  void close(const std::string& reason) { remote_->close(reason); }
  std::int64_t last_request_ns() const { return server_.last_request_ns(); }

 private:
  const std::shared_ptr<RemoteFiles> remote_;
  FileServer server_;
};

}  // namespace leeway
