#include "runtime/flags/compress_text.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>

#include "core/text.hpp"
#include "plan/settings.hpp"
#include "runtime/flags/arguments.hpp"
#include "runtime/words.hpp"

namespace leeway {
namespace {

constexpr const char* kExample =
    "give --compress push=int8,pull=bf16, another list, or none; push: bf16, fp16, int8, int4, "
    "two_bit(0.5), one_bit, top_k(0.01), top_k(0.01,2) with two epochs of warm-up, or "
    "random_k(0.01); pull, activations and "
    "activation_gradients: bf16, fp16 or int8";

struct Field {
  std::string_view name;
  plan::Codec plan::Compression::*codec;
};
constexpr Field kFields[] = {{"push", &plan::Compression::push},
                             {"pull", &plan::Compression::pull},
                             {"activations", &plan::Compression::activations},
                             {"activation_gradients", &plan::Compression::activation_gradients}};

/// The length of the first codec of a list: up to a comma that is not in brackets.
std::size_t end_of_part(std::string_view list) {
  int depth = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '(') ++depth;
    if (list[i] == ')') --depth;
    if (list[i] == ',' && depth == 0) return i;
  }
  return list.size();
}

std::optional<plan::Codec> parse_codec(std::string_view text) {
  if (text == "none" || text == "f32") return plan::NoCodec{};
  if (text == "bf16") return plan::Bf16{};
  if (text == "fp16") return plan::Fp16{};
  if (text == "int8") return plan::Int8{};
  if (text == "int4") return plan::Int4{};
  if (text == "one_bit") return plan::OneBit{};
  if (text == "two_bit") return plan::TwoBit{};
  if (text == "top_k") return plan::TopK{};
  if (text == "random_k") return plan::RandomK{};
  if (const auto one = arguments_of(text, "two_bit"); one.size() == 1) return plan::TwoBit{one[0]};
  if (const auto one = arguments_of(text, "random_k"); one.size() == 1)
    return plan::RandomK{one[0]};
  const auto top = arguments_of(text, "top_k");
  if (top.size() == 1) return plan::TopK{top[0], 0};
  if (top.size() == 2) return plan::TopK{top[0], top[1]};
  return std::nullopt;
}

std::string text_of_codec(const plan::Codec& codec) {
  const std::string name = plan::choices("compress.push")[codec.index()];
  if (const auto* two = std::get_if<plan::TwoBit>(&codec))
    return concat(name, '(', two->threshold, ')');
  if (const auto* top = std::get_if<plan::TopK>(&codec)) {
    const std::string warmup = top->warmup == 0 ? "" : concat(',', top->warmup);
    return concat(name, '(', top->share, warmup, ')');
  }
  if (const auto* random = std::get_if<plan::RandomK>(&codec))
    return concat(name, '(', random->share, ')');
  return name;
}

}  // namespace

Expected<plan::Compression> parse_compression(const std::string& text,
                                              const plan::Compression& present) {
  if (text == "none") return plan::Compression{};
  plan::Compression compression = present;
  std::string_view rest = text;
  while (true) {
    const std::string_view part = rest.substr(0, end_of_part(rest));
    const auto equals = part.find('=');
    const auto codec =
        equals == std::string_view::npos ? std::nullopt : parse_codec(part.substr(equals + 1));
    const auto field = std::find_if(std::begin(kFields), std::end(kFields), [&](const Field& one) {
      return one.name == part.substr(0, equals);
    });
    if (!codec || field == std::end(kFields))
      return Error{concat("--compress: \"", part, "\" is not known; ", kExample)};
    compression.*field->codec = *codec;
    if (part.size() == rest.size()) return compression;
    rest.remove_prefix(part.size() + 1);
  }
}

std::string text_of(const plan::Compression& compression) {
  std::string text;
  for (const auto& [name, codec] : kFields)
    if (compression.*codec != plan::Codec{})
      text += concat(text.empty() ? "" : ",", name, '=', text_of_codec(compression.*codec));
  return text.empty() ? "none" : text;
}

}  // namespace leeway
