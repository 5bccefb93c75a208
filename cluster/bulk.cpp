#include "cluster/bulk.hpp"

#include <cstring>

#include "cluster/probe.hpp"
#include "cluster/this_host.hpp"

namespace leeway::cluster {

Expected<std::unique_ptr<BulkSocket>> open_bulk(const std::string& host, std::uint16_t port,
                                                const BulkTls* tls, const BulkHello& hello,
                                                Duration limit) {
  Probe reached = probe(host, port, limit);
  if (reached.reach != Reach::listens) return Error{reached.why};
  auto socket =
      std::make_unique<BulkSocket>(std::move(reached.socket), BulkSocket::Side::caller, tls);
  const std::int64_t until = steady_ns() + limit.ns;
  using Progress = BulkSocket::Progress;
  const auto go_on = [&](auto step) {
    Progress progress = step();
    while (progress == Progress::wants_read || progress == Progress::wants_write)
      progress = socket->wait(progress, until) ? step() : Progress::ended;
    return progress == Progress::done;
  };
  std::byte answer{};
  std::span missing(&answer, 1);
  // The hello fits into the empty buffer, so this does not block.
  if (!go_on([&] { return socket->shake_hands(); }) || !socket->write(&hello, sizeof hello) ||
      !go_on([&] { return socket->read_some(missing); }))
    return Error{"it closed the connection, or did not answer"};
  socket->block(0);
  return socket;
}

void BulkOut::put(Frame frame) {
  {
    std::lock_guard lock(mutex_);
    if (cut_) return;
    waiting_.push_back(std::move(frame));
  }
  changed_.notify_one();
}

void BulkOut::run(const std::function<void()>& on_sent) {
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return cut_ || !waiting_.empty(); });
    if (cut_) return;
    const Frame frame = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    if (!send(frame)) return cut();
    on_sent();
  }
}

bool BulkOut::send(const Frame& frame) {
  if (frame.kind == FrameKind::letter) {
    struct Bytes final : Sink {
      bool put(const void* bytes, std::size_t count) override {
        const auto* const first = static_cast<const std::byte*>(bytes);
        all.insert(all.end(), first, first + count);
        return true;
      }
      std::vector<std::byte> all = std::vector<std::byte>(sizeof(BulkHead));
    } sink;
    save(frame, sink);
    const BulkHead head{.bytes = sink.all.size() - sizeof head};
    std::memcpy(sink.all.data(), &head, sizeof head);
    return socket_->write(sink.all.data(), sink.all.size(), true);
  }
  const BulkHead head{.number = frame.number, .bytes = frame.bytes};
  return socket_->write(&head, sizeof head, true) &&
         for_each_piece(frame.message, *frame.packing, frame.place, frame.bytes,
                        [&](const std::byte* bytes, std::uint64_t count) {
                          return socket_->write(bytes, count);
                        });
}

void BulkOut::cut() {
  {
    std::lock_guard lock(mutex_);
    cut_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  socket_->cut();
}

}  // namespace leeway::cluster
