#pragma once
// Bulk: the connections on which the bytes of large blobs travel between two meshes, beside that of
// CAF, on which letters and everything else do.
//
// Whoever called the other opens two, one for each direction, when there is something to send. He
// names a token that the called gave him, who believes him by that and answers with a byte. Then
// messages with large blobs follow, each letter and each chunk behind its head. Where the way is
// barred, by a firewall for example, they go on travelling with all others.
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "cluster/bulk_socket.hpp"
#include "cluster/frame.hpp"
#include "cluster/refusals.hpp"
#include "core/time.hpp"

namespace leeway::cluster {

/// What a caller says first.
struct BulkHello {
  std::uint64_t magic = 0x314b4c55424c45ull;  // "ELBULK1"
  Token token = 0;
  std::uint64_t to_caller =
      0;  // 1: bytes will go from the called to the caller; else the other way
};

/// What stands before the bytes of a chunk, or of a letter, which are as on the other connection.
struct BulkHead {
  std::uint64_t number = kLetter;  // of the chunk's message
  std::uint64_t bytes = 0;
  static constexpr std::uint64_t kLetter = ~std::uint64_t{0};
};

/// Opens a connection to where bulk connections are taken. Blocks; the error says what happened.
Expected<std::unique_ptr<BulkSocket>> open_bulk(const std::string& host, std::uint16_t port,
                                                const BulkTls* tls, const BulkHello& hello,
                                                Duration limit);

/// The sending end: frames wait here as references, until a thread that may block has sent them.
class BulkOut {
 public:
  explicit BulkOut(std::unique_ptr<BulkSocket> socket) : socket_(std::move(socket)) {}
  /// A letter or a chunk. From any thread; does not block.
  void put(Frame frame);
  /// Sends until the connection ends or is cut, and tells of each frame that has been sent.
  void run(const std::function<void()>& on_sent);
  void cut();

 private:
  bool send(const Frame& frame);
  const std::unique_ptr<BulkSocket> socket_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Frame> waiting_;
  bool cut_ = false;
};

/// Takes bulk connections. Strangers get no answer and little time.
class BulkListener {
 public:
  struct Handlers {
    std::function<bool(Token)> knows;
    /// A connection, greeted. It may be refused still, by dropping it.
    std::function<void(const BulkHello&, std::unique_ptr<BulkSocket>)> take;
    std::function<void(const std::string&)> note;  // something to log
  };
  /// At `address`, at any port that is free.
  static Expected<std::unique_ptr<BulkListener>> open(const std::string& address,
                                                      std::shared_ptr<const BulkTls> tls,
                                                      Handlers handlers);
  ~BulkListener();
  BulkListener(const BulkListener&) = delete;
  BulkListener& operator=(const BulkListener&) = delete;
  std::uint16_t port() const { return port_; }

 private:
  struct Caller;
  BulkListener(Socket socket, Socket wakes, std::uint16_t port, std::shared_ptr<const BulkTls> tls,
               Handlers handlers);
  void run();
  bool has_room();
  void accept_one();
  bool advance(Caller& caller);
  void welcome(Caller& caller);
  void refuse(const char* why);

  const Socket socket_, wakes_;
  const std::uint16_t port_;
  const std::shared_ptr<const BulkTls> tls_;
  const Handlers handlers_;
  // Of the thread:
  std::deque<Caller> callers_;
  std::int64_t accept_after_ = 0;  // on the steady clock
  Refusals refusals_{"a bulk connection"};
  std::thread thread_;
};

}  // namespace leeway::cluster
