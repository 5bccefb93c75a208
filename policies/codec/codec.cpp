#include "policies/codec/codec.hpp"

#include <algorithm>

#include "core/text.hpp"
#include "policies/codec/half.hpp"
#include "policies/codec/int4.hpp"
#include "policies/codec/int8.hpp"
#include "policies/codec/one_bit.hpp"
#include "policies/codec/random_k.hpp"
#include "policies/codec/top_k.hpp"
#include "policies/codec/two_bit.hpp"

namespace leeway {
namespace {

struct CodecMaker {
  std::unique_ptr<Codec> operator()(const plan::NoCodec&) const { return nullptr; }
  std::unique_ptr<Codec> operator()(const plan::Bf16&) const {
    return std::make_unique<HalfCodec>(DType::bf16);
  }
  std::unique_ptr<Codec> operator()(const plan::Fp16&) const {
    return std::make_unique<HalfCodec>(DType::f16);
  }
  std::unique_ptr<Codec> operator()(const plan::Int8&) const {
    return std::make_unique<Int8Codec>();
  }
  std::unique_ptr<Codec> operator()(const plan::Int4&) const {
    return std::make_unique<Int4Codec>();
  }
  std::unique_ptr<Codec> operator()(const plan::TwoBit& spec) const {
    return std::make_unique<TwoBitCodec>(spec);
  }
  std::unique_ptr<Codec> operator()(const plan::OneBit&) const {
    return std::make_unique<OneBitCodec>();
  }
  std::unique_ptr<Codec> operator()(const plan::TopK& spec) const {
    return std::make_unique<TopKCodec>(spec);
  }
  std::unique_ptr<Codec> operator()(const plan::RandomK& spec) const {
    return std::make_unique<RandomKCodec>(spec);
  }
};

}  // namespace

CodecId id_of(const plan::Codec& spec) {
  static_assert(std::variant_size_v<plan::Codec::variant> ==
                static_cast<int>(CodecId::random_k) + 1);
  return static_cast<CodecId>(spec.index());
}

bool is_sparse(const plan::Codec& spec) {
  return std::holds_alternative<plan::TopK>(spec) || std::holds_alternative<plan::RandomK>(spec);
}

std::unique_ptr<Codec> make_codec(const plan::Codec& spec) {
  return std::visit(CodecMaker{}, spec);
}

Status Codec::check(std::span<const std::byte> bytes, std::size_t count) const {
  if (bytes.size() != size(count))
    return Error{
        concat(name(), " of ", count, " values has ", size(count), " bytes, found ", bytes.size())};
  return check_content(bytes, count);
}

void Codec::decode(std::span<const std::byte> bytes, std::span<float> values) const {
  std::ranges::fill(values, 0.0f);
  accumulate(bytes, 1, values);
}

}  // namespace leeway
