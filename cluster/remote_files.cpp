#include "cluster/remote_files.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include "core/limits.hpp"
#include "core/text.hpp"

namespace leeway {
namespace {

using Operation = node::FileRequest::Operation;

/// Pieces of one file that are requested ahead.
constexpr std::size_t kPiecesAhead = 4;

class MemoryContent final : public Files::Content {
 public:
  explicit MemoryContent(Blob bytes) : bytes_(std::move(bytes)) {}
  std::span<const std::byte> bytes() const override { return bytes_.bytes(); }

 private:
  Blob bytes_;
};

}  // namespace

/// The requests for pieces of one file, in their order.
class RemoteFiles::Pieces {
 public:
  explicit Pieces(RemoteFiles& files) : files_(files) {}
  /// Waits for the requests that are left, so that no answer is kept forever.
  ~Pieces() {
    while (!numbers_.empty()) (void)take();
  }
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;

  void begin(node::FileRequest request) { numbers_.push_back(files_.begin(std::move(request))); }
  bool empty() const { return numbers_.empty(); }
  bool full() const { return numbers_.size() >= kPiecesAhead; }
  /// Waits for the answer to the first request.
  Answer take() {
    const std::uint64_t number = numbers_.front();
    numbers_.pop_front();
    return files_.wait(number);
  }

 private:
  RemoteFiles& files_;
  std::deque<std::uint64_t> numbers_;
};

class RemoteFiles::RemoteWriter final : public Files::Writer {
 public:
  /// Takes one of files.free_writers_.
  RemoteWriter(RemoteFiles& files, std::uint64_t file)
      : files_(files), file_(file), pieces_(files) {}
  ~RemoteWriter() override {
    (void)files_.call({.operation = Operation::close, .file = file_});
    files_.free_writers_.release();
  }
  RemoteWriter(const RemoteWriter&) = delete;
  RemoteWriter& operator=(const RemoteWriter&) = delete;

  Status append(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      if (pieces_.full())
        if (const auto done = pieces_.take(); !done) return done.error();
      const auto piece = bytes.first(std::min(bytes.size(), limits::kMaxFilePiece));
      pieces_.begin(
          {.operation = Operation::append, .file = file_, .content = Blob::copy_of(piece)});
      bytes = bytes.subspan(piece.size());
    }
    return {};
  }

  Status flush() override {
    while (!pieces_.empty())
      if (const auto done = pieces_.take(); !done) return done.error();
    return files_.change({.operation = Operation::flush, .file = file_});
  }

 private:
  RemoteFiles& files_;
  const std::uint64_t file_;
  Pieces pieces_;
};

std::uint64_t RemoteFiles::begin(node::FileRequest request) {
  {
    std::lock_guard lock(mutex_);
    request.number = ++last_number_;
    auto& answer = pending_[request.number];
    if (!closed_.empty()) {
      answer = Error{closed_};
      return request.number;
    }
  }
  const std::uint64_t number = request.number;
  if (!request.content) request.content = Blob::allocate(0);
  send_(std::move(request));
  return number;
}

RemoteFiles::Answer RemoteFiles::wait(std::uint64_t number) {
  std::unique_lock lock(mutex_);
  const auto found = pending_.find(number);
  answered_.wait(lock, [&] { return found->second.has_value(); });
  Answer answer = std::move(*found->second);
  pending_.erase(found);
  return answer;
}

Status RemoteFiles::change(node::FileRequest request) {
  const Answer answer = call(std::move(request));
  return answer ? Status() : Status(answer.error());
}

void RemoteFiles::on_answer(node::FileAnswer answer) {
  {
    std::lock_guard lock(mutex_);
    const auto found = pending_.find(answer.number);
    if (found == pending_.end() || found->second) return;
    if (answer.error.empty()) {
      found->second = std::move(answer);
    } else {
      found->second = Error{concat("on ", name_, ": ", answer.error)};
    }
  }
  answered_.notify_all();
}

void RemoteFiles::close(const std::string& reason) {
  std::lock_guard lock(mutex_);
  if (closed_.empty()) closed_ = concat("on ", name_, ": ", reason);
  for (auto& [number, answer] : pending_)
    if (!answer) answer = Error{closed_};
  answered_.notify_all();
}

Expected<std::unique_ptr<Files::Writer>> RemoteFiles::create(const std::string& path) {
  free_writers_.acquire();
  const std::uint64_t number = begin({.operation = Operation::create, .path = path});
  auto writer = std::make_unique<RemoteWriter>(*this, number);  // closes the file after an error
  if (const auto created = wait(number); !created) return created.error();
  return std::unique_ptr<Writer>(std::move(writer));
}

Status RemoteFiles::rename(const std::string& from, const std::string& to) {
  return change({.operation = Operation::rename, .path = from, .to = to});
}

Status RemoteFiles::make_folder(const std::string& path) {
  return change({.operation = Operation::make_folder, .path = path});
}

Status RemoteFiles::flush_folder(const std::string& path) {
  return change({.operation = Operation::flush_folder, .path = path});
}

Status RemoteFiles::remove(const std::string& path) {
  return change({.operation = Operation::remove, .path = path});
}

Expected<std::vector<std::string>> RemoteFiles::list(const std::string& folder) {
  auto answer = call({.operation = Operation::list, .path = folder});
  if (!answer) return answer.error();
  return std::move(answer->names);
}

Expected<std::shared_ptr<const Files::Content>> RemoteFiles::read(const std::string& path) {
  const auto request = [&](std::uint64_t offset) {
    return node::FileRequest{.operation = Operation::read, .path = path, .offset = offset};
  };
  auto first = call(request(0));
  if (!first) return first.error();
  const std::uint64_t size = first->bytes;
  if (size > limits::kMaxFileBytes)
    return Error{concat("on ", name_, ": ", path, ": has ", size, " bytes, more than ",
                        limits::kMaxFileBytes)};
  Blob bytes = Blob::allocate(size);
  Pieces pieces(*this);
  std::uint64_t requested = limits::kMaxFilePiece;
  const auto request_ahead = [&] {
    for (; !pieces.full() && requested < size; requested += limits::kMaxFilePiece)
      pieces.begin(request(requested));
  };
  request_ahead();
  for (std::uint64_t offset = 0; offset < size; offset += limits::kMaxFilePiece) {
    auto answer = offset == 0 ? std::move(first) : pieces.take();
    if (!answer) return answer.error();
    const std::size_t expected = std::min<std::uint64_t>(limits::kMaxFilePiece, size - offset);
    if (answer->content.size() != expected || answer->bytes != size)
      return Error{concat("on ", name_, ": ", path, ": has changed while it was read")};
    std::memcpy(bytes.mutable_data() + offset, answer->content.data(), expected);
    request_ahead();
  }
  return std::shared_ptr<const Content>(std::make_shared<MemoryContent>(std::move(bytes)));
}

}  // namespace leeway
