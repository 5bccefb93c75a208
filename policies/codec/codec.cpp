#include "policies/codec/codec.hpp"

#include <algorithm>

#include "core/text.hpp"
#include "policies/codec/dense.hpp"
#include "policies/codec/random_k.hpp"
#include "policies/codec/top_k.hpp"

namespace leeway {
namespace {

using Kind = kernels::Encoding::Kind;

std::unique_ptr<Codec> dense(std::string_view name, Kind kind, float threshold = 0) {
  return std::make_unique<DenseCodec>(name, kernels::Encoding{kind, threshold});
}

struct CodecMaker {
  std::unique_ptr<Codec> operator()(const plan::NoCodec&) const { return nullptr; }
  std::unique_ptr<Codec> operator()(const plan::Bf16&) const { return dense("bf16", Kind::bf16); }
  std::unique_ptr<Codec> operator()(const plan::Fp16&) const {
    return std::make_unique<DenseCodec>("fp16", kernels::Encoding{Kind::f16}, 22);
  }
  std::unique_ptr<Codec> operator()(const plan::Int8&) const { return dense("int8", Kind::int8); }
  std::unique_ptr<Codec> operator()(const plan::Int4&) const { return dense("int4", Kind::int4); }
  std::unique_ptr<Codec> operator()(const plan::TwoBit& spec) const {
    return dense("two_bit", Kind::two_bit, static_cast<float>(spec.threshold));
  }
  std::unique_ptr<Codec> operator()(const plan::OneBit&) const {
    return dense("one_bit", Kind::one_bit);
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
