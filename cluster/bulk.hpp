#pragma once
// Bulk: connections for messages with large blobs, beside CAF's connection for all others.
//
// The mesh that called the other opens two, one for each direction, before the first large blob.
// Its hello contains the token that the called mesh has given it; the answer is one byte. Then
// letters and chunks follow, each after its head. If a firewall bars the port, large blobs stay on
// CAF's connection.
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

/// The first bytes of a caller.
struct BulkHello {
  std::uint64_t magic = 0x314b4c55424c45ull;  // "ELBULK1"
  Token token = 0;
  std::uint64_t to_caller = 0;  // 1: the called mesh sends; 0: the caller sends
};

/// Precedes the bytes of a letter or a chunk, which are the same as on CAF's connection.
struct BulkHead {
  std::uint64_t number = kLetter;  // of the chunk's message
  std::uint64_t bytes = 0;
  static constexpr std::uint64_t kLetter = ~std::uint64_t{0};
};

/// Opens a bulk connection. Blocks. The error gives the reason of the failure.
Expected<std::unique_ptr<BulkSocket>> open_bulk(const std::string& host, std::uint16_t port,
                                                const BulkTls* tls, const BulkHello& hello,
                                                Duration limit);

/// The sending end: a queue of frames, and the loop of the thread that sends them.
class BulkOut {
 public:
  explicit BulkOut(std::unique_ptr<BulkSocket> socket) : socket_(std::move(socket)) {}
  /// Adds a letter or a chunk. From any thread; does not block.
  void put(Frame frame);
  /// Sends until the connection ends or is cut; calls back after each sent frame.
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

/// Takes bulk connections. Unknown callers get no answer and little time.
class BulkListener {
 public:
  struct Handlers {
    std::function<bool(Token)> knows;
    /// Takes a greeted connection, or refuses it by dropping it.
    std::function<void(const BulkHello&, std::unique_ptr<BulkSocket>)> take;
    std::function<void(const std::string&)> note;  // logs one line
  };
  /// Listens at `address`, at a free port.
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
  // Only for the thread:
  std::deque<Caller> callers_;
  std::int64_t accept_after_ = 0;  // on the steady clock
  Refusals refusals_{"a bulk connection"};
  std::thread thread_;
};

}  // namespace leeway::cluster
