#pragma once
// The envelope around every message between actors or hosts: closed into a Message, and opened
// again, though a stranger may have made it. Included by messages/*.cpp alone.
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <type_traits>

#include "messages/wire.hpp"

namespace leeway::wire {

/// What has been built, and the blobs that it refers to, which are taken out of `blobs`.
inline Message sealed(capnp::MessageBuilder& builder, Blobs& blobs) {
  return Message(
      capnp::computeSerializedSizeInWords(builder), blobs, [&](std::span<std::uint64_t> header) {
        kj::ArrayOutputStream stream(
            kj::arrayPtr(reinterpret_cast<kj::byte*>(header.data()), header.size_bytes()));
        capnp::writeMessage(stream, builder);
      });
}

/// What `read` makes of the message's root, an `Envelope` of the schema; `read` may throw
/// Malformed. `kinds` names the arms of the body after the first, which is none, for the Error.
template <class Envelope, class Read>
auto opened(const Message& message, std::span<const std::string_view> kinds, Read read)
    -> Expected<std::invoke_result_t<Read, typename Envelope::Reader>> {
  const auto header = message.header();
  if (header.size_bytes() > limits::kMaxHeaderBytes)
    return Error{concat("message header has ", header.size_bytes(), " bytes, at most ",
                        limits::kMaxHeaderBytes, " are allowed")};
  if (message.blobs().size() > limits::kMaxBlobs)
    return Error{concat("message has ", message.blobs().size(), " blobs, at most ",
                        limits::kMaxBlobs, " are allowed")};
  std::string_view kind = "message";
  try {
    capnp::FlatArrayMessageReader reader(
        kj::arrayPtr(reinterpret_cast<const capnp::word*>(header.data()), header.size()),
        reader_options(header.size()));
    const auto root = reader.getRoot<Envelope>();
    if (root.getProtocol() != kProtocolVersion)
      return Error{concat("message has protocol version ", root.getProtocol(),
                          ", this program speaks ", kProtocolVersion,
                          "; use the same version of Leeway everywhere")};
    const auto which = static_cast<std::size_t>(root.getBody().which());
    if (which >= 1 && which <= kinds.size()) kind = kinds[which - 1];
    return read(root);
  } catch (const Malformed& malformed) {
    return Error{concat(kind, ": ", malformed.text)};
  } catch (const kj::Exception& exception) {
    return Error{concat(kind, ": ", exception.getDescription().cStr())};
  }
}

}  // namespace leeway::wire
