#include "cluster/file_server.hpp"

#include <algorithm>
#include <climits>
#include <exception>
#include <filesystem>
#include <utility>

#include "core/limits.hpp"
#include "core/text.hpp"
#include "core/this_host.hpp"

namespace leeway {
namespace {

using Operation = node::FileRequest::Operation;

/// Bytes of the names in one answer.
constexpr std::size_t kMaxNameBytes = std::size_t{8} << 20;

/// An answer without content; `error`: empty if the request succeeds.
node::FileAnswer answer_with(const node::FileRequest& request, std::string error = {}) {
  return {.number = request.number, .error = std::move(error), .content = Blob::allocate(0)};
}

bool is_normal(const std::string& path) {
  return std::filesystem::path(path).lexically_normal().string() == path;
}

/// True for the folder and everything in it.
bool is_inside(const std::string& path, const std::string& folder) {
  return !folder.empty() && is_normal(path) && path.starts_with(folder) &&
         (path.size() == folder.size() || path[folder.size()] == '/');
}

/// True for what a Store creates, renames and removes: the file that names the run, and folders of
/// checkpoints with everything in them.
bool is_of_store(const std::string& path, const std::string& folder) {
  if (!is_inside(path, folder) || path.size() <= folder.size() + 1) return false;
  const std::string below = path.substr(folder.size() + 1);
  const std::string first = below.substr(0, below.find('/'));
  const bool is_number =
      !first.empty() && first.find_first_not_of("0123456789") == std::string::npos;
  return is_number || first == "run" || first.starts_with("run-") || first.starts_with("run.");
}

}  // namespace

FileServer::FileServer(Files& files, FileRights rights, std::function<void(node::FileAnswer)> reply)
    : files_(files), rights_(std::move(rights)), reply_(std::move(reply)) {}

FileServer::~FileServer() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void FileServer::submit(node::FileRequest request) {
  last_request_ns_ = steady_ns();
  {
    std::lock_guard lock(mutex_);
    if (requests_.size() < limits::kMaxFileRequests) {
      requests_.push_back(std::move(request));
      if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
      changed_.notify_all();
      return;
    }
  }
  reply_(answer_with(request, "too many requests wait"));
}

void FileServer::serve() {
  while (true) {
    node::FileRequest request;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ending_ || !requests_.empty(); });
      if (ending_) return;
      request = std::move(requests_.front());
      requests_.pop_front();
    }
    answer(request);
  }
}

void FileServer::answer(node::FileRequest& request) {
  node::FileAnswer answer = answer_with(request);
  try {
    if (const Status done = execute(request, answer); !done) answer.error = done.error().text;
  } catch (const std::exception& error) {  // no memory
    answer = answer_with(request, error.what());
  }
  reply_(std::move(answer));
}

Status FileServer::check_rights(const node::FileRequest& request) const {
  if (std::max(request.path.size(), request.to.size()) > PATH_MAX) return Error{"path is too long"};
  const auto& [write, read] = rights_;
  bool allowed = false;
  switch (request.operation) {
    case Operation::append:
    case Operation::flush:
    case Operation::close:
      return {};
    case Operation::list:
    case Operation::read:
      allowed = is_inside(request.path, write) || is_inside(request.path, read);
      break;
    case Operation::flush_folder:
      allowed =
          is_inside(request.path, write) || (!write.empty() && request.path == folder_of(write));
      break;
    case Operation::rename:
      allowed = is_of_store(request.path, write) && is_of_store(request.to, write);
      break;
    case Operation::make_folder:
      allowed = request.path == write || is_of_store(request.path, write);
      break;
    case Operation::create:
    case Operation::remove:
      allowed = is_of_store(request.path, write);
      break;
  }
  if (allowed) return {};
  return Error{concat(request.path, ": lies outside of the folder of the checkpoints")};
}

Status FileServer::execute(node::FileRequest& request, node::FileAnswer& answer) {
  if (Status allowed = check_rights(request); !allowed) return allowed;
  switch (request.operation) {
    case Operation::create:
      return create(request);
    case Operation::append:
    case Operation::flush: {
      const auto file = open_.find(request.file);
      if (file == open_.end()) return Error{concat("file ", request.file, ": is not open")};
      return request.operation == Operation::append ? file->second->append(request.content.bytes())
                                                    : file->second->flush();
    }
    case Operation::close:
      open_.erase(request.file);
      return {};
    case Operation::rename:
      return files_.rename(request.path, request.to);
    case Operation::make_folder:
      return files_.make_folder(request.path);
    case Operation::flush_folder:
      return files_.flush_folder(request.path);
    case Operation::remove:
      return files_.remove(request.path);
    case Operation::list: {
      auto names = files_.list(request.path);
      if (!names) return names.error();
      std::size_t bytes = 0;
      for (const std::string& name : *names) bytes += name.size() + 2 * sizeof(std::uint64_t);
      if (names->size() > limits::kMaxFolderNames || bytes > kMaxNameBytes)
        return Error{concat(request.path, ": has ", names->size(), " names, too many to list")};
      answer.names = std::move(*names);
      return {};
    }
    case Operation::read:
      return read(request, answer);
  }
  return Error{"unknown operation"};
}

Status FileServer::create(const node::FileRequest& request) {
  if (std::ssize(open_) >= limits::kMaxRemoteWriters)
    return Error{concat(request.path, ": cannot be created: ", open_.size(), " files are open")};
  auto writer = files_.create(request.path);
  if (!writer) return writer.error();
  open_.insert_or_assign(request.number, std::move(*writer));
  return {};
}

Status FileServer::read(const node::FileRequest& request, node::FileAnswer& answer) {
  if (request.offset == 0 || request.path != read_path_) {
    auto content = files_.read(request.path);
    if (!content) return content.error();
    read_path_ = request.path;
    read_content_ = std::move(*content);
  }
  const auto bytes = read_content_->bytes();
  answer.bytes = bytes.size();
  if (request.offset > bytes.size())
    return Error{concat(request.path, ": has only ", bytes.size(), " bytes")};
  const auto rest = bytes.subspan(request.offset);
  const auto piece = rest.first(std::min(rest.size(), limits::kMaxFilePiece));
  answer.content = Blob::copy_of(piece);
  if (piece.size() == rest.size()) {
    read_path_.clear();
    read_content_.reset();
  }
  return {};
}

}  // namespace leeway
