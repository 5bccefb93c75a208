// Any bytes are a message between hosts, or an error.
#include "core/check.hpp"
#include "messages/node.hpp"
#include "tests/fuzz/message_bytes.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto message = leeway::fuzz::message_of(data, size);
  if (!message) return 0;
  const auto envelope = leeway::decode_node(*message);
  if (!envelope) {
    LW_CHECK(!envelope.error().text.empty());
    return 0;
  }
  const auto again = leeway::decode_node(leeway::encode(*envelope));
  LW_CHECK(again.has_value());
  LW_CHECK(again->job == envelope->job);
  LW_CHECK(again->body.index() == envelope->body.index());
  return 0;
}
