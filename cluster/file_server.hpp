#pragma once
// FileServer: executes the file operations that another process of a job requests, in order, on a
// thread of its own.
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/files.hpp"
#include "messages/node.hpp"

namespace leeway {

/// The folders of checkpoints that another process may use, absolute; empty: none. Other paths are
/// refused.
struct FileRights {
  std::string write_folder;  // also to read
  std::string read_folder;
};

class FileServer {
 public:
  /// `reply` is called on the server's thread, or in submit() if too many requests wait.
  FileServer(Files& files, FileRights rights, std::function<void(node::FileAnswer)> reply);
  /// Completes the operation in progress, and drops the others.
  ~FileServer();
  FileServer(const FileServer&) = delete;
  FileServer& operator=(const FileServer&) = delete;

  void submit(node::FileRequest request);
  /// Time of the last request on the steady clock; 0: none yet.
  std::int64_t last_request_ns() const { return last_request_ns_; }

 private:
  void serve();
  void answer(node::FileRequest& request);
  /// Sets `answer`, or returns the error.
  Status execute(node::FileRequest& request, node::FileAnswer& answer);
  Status create(const node::FileRequest& request);
  Status read(const node::FileRequest& request, node::FileAnswer& answer);
  /// Error: the process may not use the path in this way.
  Status check_rights(const node::FileRequest& request) const;

  Files& files_;
  const FileRights rights_;
  const std::function<void(node::FileAnswer)> reply_;
  std::atomic<std::int64_t> last_request_ns_ = 0;

  // Of the server's thread.
  std::map<std::uint64_t, std::unique_ptr<Files::Writer>> open_;
  std::string read_path_;  // of the file that was read last
  std::shared_ptr<const Files::Content> read_content_;

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<node::FileRequest> requests_;
  bool ending_ = false;
  std::thread thread_;  // begins with the first request
};

}  // namespace leeway
