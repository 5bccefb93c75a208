#pragma once
// RemoteFiles: the files of another process of a job. Each operation sends a request and waits for
// the answer; the other process has a FileServer.
//
// Appended and read pieces of a file are requested ahead, so that the network and the disk work at
// the same time.
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <semaphore>
#include <string>

#include "core/files.hpp"
#include "core/limits.hpp"
#include "messages/node.hpp"

namespace leeway {

class RemoteFiles final : public Files {
 public:
  /// `name`: of the other process, for errors. `send` is called from any thread.
  RemoteFiles(std::string name, std::function<void(node::FileRequest)> send)
      : name_(std::move(name)), send_(std::move(send)) {}

  // Not on the thread that calls on_answer().
  /// Waits while limits::kMaxRemoteWriters files are being written.
  Expected<std::unique_ptr<Writer>> create(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status make_folder(const std::string& path) override;
  Status flush_folder(const std::string& path) override;
  Status remove(const std::string& path) override;
  Expected<std::vector<std::string>> list(const std::string& folder) override;
  /// Reads the whole file into memory.
  Expected<std::shared_ptr<const Content>> read(const std::string& path) override;

  void on_answer(node::FileAnswer answer);
  /// Fails all operations in progress, and all later ones.
  void close(const std::string& reason);

 private:
  class RemoteWriter;
  class Pieces;
  using Answer = Expected<node::FileAnswer>;

  /// Sends a request and returns its number.
  std::uint64_t begin(node::FileRequest request);
  /// Waits for the answer to a request.
  Answer wait(std::uint64_t number);
  Answer call(node::FileRequest request) { return wait(begin(std::move(request))); }
  Status change(node::FileRequest request);

  std::counting_semaphore<> free_writers_{limits::kMaxRemoteWriters};

  const std::string name_;
  const std::function<void(node::FileRequest)> send_;
  std::mutex mutex_;
  std::condition_variable answered_;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, std::optional<Answer>> pending_;  // by number; nullopt: no answer yet
  std::string closed_;                                      // empty: open
};

}  // namespace leeway
