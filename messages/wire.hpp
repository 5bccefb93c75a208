#pragma once
// Converts messages and their tensors to and from Cap'n Proto. Only messages/*.cpp and generated
// .cpp files include it.
#include <array>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "core/address.hpp"
#include "core/expected.hpp"
#include "messages/common.capnp.h"
#include "messages/generator/wire.hpp"
#include "messages/message.hpp"
#include "messages/tensors.hpp"

namespace leeway::wire {

using Blobs = std::vector<Blob>;
using ConstBlobs = std::span<const Blob>;

/// Writes a tensor's reference and appends its data to `blobs`.
void write(schema::TensorRef::Builder out, const msg::StageTensor& in, Blobs& blobs);
void read(msg::StageTensor& out, schema::TensorRef::Reader in, ConstBlobs blobs);
/// The tensor is absent if the block has no data.
void write(schema::BlockRef::Builder out, const msg::BlockData& in, Blobs& blobs);
void read(msg::BlockData& out, schema::BlockRef::Reader in, ConstBlobs blobs);

inline unsigned count_of(const Shape& in) {
  return static_cast<unsigned>(in.rank());
}

void write(schema::Actor::Builder out, Address in);
void read(Address& out, schema::Actor::Reader in);

/// A message inside another, without blobs.
capnp::Data::Reader plain(const Message& in);
void read(Message& out, capnp::Data::Reader in, const char* field);

inline void require_blobs(ConstBlobs blobs, std::size_t count) {
  require(blobs.size() == count, "has ", blobs.size(), " blobs, must have ", count);
}

/// The message of `builder` with the blobs that it refers to. Moves from `blobs`.
Message message_of(capnp::MessageBuilder& builder, Blobs& blobs);

/// The message that `write(root, blobs)` builds.
template <class Schema, class Write>
Message sealed(Write write) {
  // Most headers fit in the stack segment, so that encoding one allocates only the message itself.
  std::array<capnp::word, 128> first_segment;
  std::memset(first_segment.data(), 0, sizeof first_segment);
  capnp::MallocMessageBuilder builder(kj::arrayPtr(first_segment.data(), first_segment.size()));
  Blobs blobs;
  write(builder.initRoot<Schema>(), blobs);
  return message_of(builder, blobs);
}

/// Refuses an oversized message before any of it is read.
Status check_size(const Message& message);
Error wrong_version(unsigned version);

/// Decodes a message of an untrusted sender by `read(out, root, blobs)`. `kinds` names the arms of
/// the body after `none`, for errors.
template <class Schema, class T, class Read>
Expected<T> opened(const Message& message, std::span<const std::string_view> kinds, Read read) {
  if (const Status status = check_size(message); !status) return status.error();
  const auto header = message.header();
  std::string_view kind = "message";
  try {
    capnp::FlatArrayMessageReader reader(
        kj::arrayPtr(reinterpret_cast<const capnp::word*>(header.data()), header.size()),
        reader_options(header.size()));
    const auto root = reader.getRoot<Schema>();
    if (root.getProtocol() != kProtocolVersion) return wrong_version(root.getProtocol());
    const auto which = static_cast<std::size_t>(root.getBody().which());
    if (which >= 1 && which <= kinds.size()) kind = kinds[which - 1];
    T out;
    read(out, root, message.blobs());
    return out;
  } catch (const Malformed& malformed) {
    return Error{concat(kind, malformed.text.starts_with(' ') ? "" : ": ", malformed.text)};
  } catch (const kj::Exception& exception) {
    return Error{concat(kind, ": ", exception.getDescription().cStr())};
  }
}

}  // namespace leeway::wire
