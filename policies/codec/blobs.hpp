#pragma once
// Codecs on whole blobs.
#include "policies/codec/codec.hpp"
#include "tensor/blob.hpp"

namespace leeway {

/// The encoding, in host memory, of `count` floats on any device.
inline Blob encode_blob(const Codec& codec, const Blob& values, std::int64_t count,
                        std::uint64_t seed = 0) {
  const auto floats = static_cast<std::size_t>(count);
  const Blob host = values.on_host();
  Blob encoded = Blob::allocate(codec.size(floats));
  codec.encode({host.as_floats(), floats}, seed, {encoded.mutable_data(), encoded.size()});
  return encoded;
}

/// Whether decode_blob() can read data that another process has sent as `count` values with the
/// codec `sent`. `codec` is the plan's, or null, and `id` its number. The error names the fault.
inline Status check_encoding(CodecId sent, const Blob& data, std::int64_t count, CodecId id,
                             const Codec* codec) {
  if (sent == CodecId::none) return {};
  if (!codec || sent != id) return Error{"it has an encoding that the plan does not name"};
  return codec->check(data.bytes(), static_cast<std::size_t>(count));
}

/// The `count` floats of an encoding that passes Codec::check.
inline Blob decode_blob(const Codec& codec, const Blob& encoded, std::int64_t count) {
  Blob values = Blob::floats(count);
  codec.decode(encoded.bytes(), {values.mutable_floats(), static_cast<std::size_t>(count)});
  return values;
}

}  // namespace leeway
