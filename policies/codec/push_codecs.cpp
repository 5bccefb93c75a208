#include "policies/codec/push_codecs.hpp"

#include <variant>

namespace leeway {
namespace {

/// Shares of the phases of a warm-up. Powers of two, so that all processors round alike.
std::vector<double> shares_of_phases(double last) {
  std::vector<double> shares;
  for (double share = 0.25; share > last; share /= 4) shares.push_back(share);
  return shares;
}

}  // namespace

std::shared_ptr<const PushCodecs> PushCodecs::make(const plan::Codec& spec,
                                                   double iterations_per_epoch) {
  auto codec = make_codec(spec);
  if (!codec) return nullptr;
  auto made = std::make_shared<PushCodecs>();
  made->codec_ = std::move(codec);
  const auto* const top = std::get_if<plan::TopK>(&spec);
  if (!top || top->warmup == 0) return made;
  const double iterations = top->warmup * iterations_per_epoch;
  const auto shares = shares_of_phases(top->share);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const double end = iterations * static_cast<double>(i + 1) / static_cast<double>(shares.size());
    made->phases_.push_back({end, make_codec(plan::TopK{shares[i], 0})});
  }
  return made;
}

const Codec& PushCodecs::at(Iteration iteration) const {
  for (const Phase& phase : phases_)
    if (static_cast<double>(iteration.value()) < phase.end) return *phase.codec;
  return *codec_;
}

}  // namespace leeway
