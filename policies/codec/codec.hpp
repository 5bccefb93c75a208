#pragma once
// Codec: how a message carries an array of floats in fewer bytes.
//
// The bytes of an encoding depend only on the values, the seed and the kind of processor, and their
// number only on the number of values, so a receiver refuses any other size. Codecs other than
// two_bit are contractions: |x - decode(encode(x))|^2 <= (1 - delta) |x|^2, for random_k on
// average. A sender of gradients adds what an encoding has lost, the residual, to the next gradient
// (error feedback: Seide et al. 2014; Karimireddy et al., ICML 2019, algorithm 2).
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/expected.hpp"
#include "plan/plan.hpp"
#include "tensor/codec_id.hpp"

namespace leeway {

namespace kernels {
struct Encoding;
}

class Codec {
 public:
  virtual ~Codec() = default;
  virtual std::string_view name() const = 0;
  // For simulations: the time of a value, as the bytes of memory traffic that take as long
  // (bench/codec_bench.cpp).
  virtual std::int64_t encoding_traffic() const { return 12; }
  std::int64_t decoding_traffic() const { return 6; }
  /// To encode a gradient and to update its residual.
  std::int64_t pushing_traffic() const { return encoding_traffic() + 20; }
  /// The encoding that an executor computes on its device, in the same bytes (Executor::encode).
  /// Null for sparse codecs, which run on the host.
  virtual const kernels::Encoding* encoding() const { return nullptr; }
  /// Bytes of an encoding of `count` values.
  virtual std::size_t size(std::size_t count) const = 0;
  /// Requires size(values.size()) bytes. Encodings with other seeds choose other elements.
  virtual void encode(std::span<const float> values, std::uint64_t seed,
                      std::span<std::byte> bytes) const = 0;
  /// Whether accumulate() can read the bytes of an unknown sender as `count` values. The error says
  /// what is wrong with them.
  Status check(std::span<const std::byte> bytes, std::size_t count) const;
  /// sum += scale * the values. Requires check().
  virtual void accumulate(std::span<const std::byte> bytes, float scale,
                          std::span<float> sum) const = 0;
  /// The values. Requires check().
  void decode(std::span<const std::byte> bytes, std::span<float> values) const;

 private:
  /// check() of bytes of the right size.
  virtual Status check_content(std::span<const std::byte> /*bytes*/, std::size_t /*count*/) const {
    return {};
  }
};

/// Null for `none`.
std::unique_ptr<Codec> make_codec(const plan::Codec& spec);
/// How messages name it.
CodecId id_of(const plan::Codec& spec);
/// Whether an encoding has only a share of the values: top_k and random_k.
bool is_sparse(const plan::Codec& spec);

}  // namespace leeway
