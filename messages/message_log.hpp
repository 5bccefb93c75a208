#pragma once
// The messages of a run in a file, as MessageRecord of trace.capnp: written by MessageLog, read by
// read_messages().
#include <cstdint>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "core/address.hpp"
#include "core/expected.hpp"
#include "core/time.hpp"
#include "messages/message.hpp"

namespace leeway {

/// A message that reached an actor.
struct ReceivedMessage {
  Instant at;
  Address from, to;
  Message message;                 // its blobs may be missing
  std::uint64_t tensor_bytes = 0;  // size of its blobs
};
using OnMessage = std::function<void(const ReceivedMessage&)>;

ReceivedMessage received(Instant at, Address from, Address to, const Message& message);

/// Appends to a file. Thread-safe.
class MessageLog {
 public:
  explicit MessageLog(std::string path);
  void write(const ReceivedMessage& received);
  /// Writes what is buffered. Error: a record could not be written; no later one was.
  Status finish();

 private:
  const std::string path_;
  std::mutex mutex_;
  std::ofstream out_;
};

/// A record of the file, as text.
struct RecordedMessage {
  Instant at;
  std::string from, to;  // "worker2"
  std::string kind;      // "push"
  std::uint64_t tensor_bytes = 0;
  std::string body;  // Cap'n Proto's text form, or JSON
};

struct MessageFilter {
  std::string from, to;  // "worker2"; empty: any
  std::string kind;      // empty: any
  bool json = false;     // the form of `body`
};

/// The kinds of messages, as RecordedMessage::kind names them.
std::vector<std::string> message_kinds();

/// Calls `show` for each message that passes the filter, in the order of their times, until it
/// returns false. Returns a note if the file ends inside a record, otherwise an empty text.
Expected<std::string> read_messages(const std::string& path, const MessageFilter& filter,
                                    const std::function<bool(const RecordedMessage&)>& show);

}  // namespace leeway
