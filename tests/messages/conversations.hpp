#pragma once
// The two kinds of envelopes, of actors and of hosts, for tests that cover all messages.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/messages/any_messages.hpp"

namespace leeway::test {

struct Actors {
  static std::vector<Envelope> any() { return any_envelopes(); }
  static Expected<Envelope> read(const Message& message) { return decode(message); }
};
struct Hosts {
  static std::vector<NodeEnvelope> any() { return any_node_envelopes(); }
  static Expected<NodeEnvelope> read(const Message& message) { return decode_node(message); }
};

using Words = std::vector<std::uint64_t>;
using Blobs = std::vector<Blob>;

inline Words words_of(const Message& message) {
  return {message.header().begin(), message.header().end()};
}
inline Blobs blobs_of(const Message& message) {
  return {message.blobs().begin(), message.blobs().end()};
}

/// The error of decoding, or "".
inline std::string error_of(const Message& message) {
  const auto envelope = decode(message);
  return envelope ? "" : envelope.error().text;
}
inline std::string error_of(Body body) {
  return error_of(encode({.body = std::move(body)}));
}
inline std::string error_of(node::Body body) {
  const auto envelope = decode_node(encode(NodeEnvelope{1, std::move(body)}));
  return envelope ? "" : envelope.error().text;
}

}  // namespace leeway::test
