#include "sim/checkers/encodings.hpp"

#include <cmath>

#include "policies/codec/blobs.hpp"

namespace leeway::sim {
namespace {

/// The rounding of a few float operations on each value.
constexpr double kTolerance = 8 * 0x1p-24;

}  // namespace

void EncodingChecker::on_event(Instant, Address, const Event& event) {
  const auto* encoded = event.as<event::GradientEncoded>();
  if (!encoded) return;
  double& residual = residuals_[{encoded->worker, encoded->block}];
  unsent_[{encoded->worker, encoded->iteration, encoded->block}] = {residual, *encoded};
  residual = encoded->residual;
}

double EncodingChecker::decoded_sum(const msg::BlockData& block, Iteration iteration) const {
  Blob values = decode_blob(job_->push_codecs->at(iteration), block.data, block.shape.count());
  zero_padding(*job_->model, job_->layout->block(block.block), values.mutable_floats());
  double sum = 0;
  for (std::int64_t i = 0; i < block.shape.count(); ++i) sum += values.as_floats()[i];
  return sum;
}

void EncodingChecker::on_sent(Instant, const Letter& letter) {
  if (!job_->push_codecs || letter.to().kind != RoleKind::shard || unsent_.empty()) return;
  const auto* push = letter.as<msg::Push>();
  if (!push) return;
  const WorkerId worker(letter.from().index);
  for (const msg::BlockData& block : push->blocks) {
    const auto found = unsent_.find({worker, push->iteration, block.block});
    if (found == unsent_.end()) continue;  // not encoded, or sent again
    const auto [before, encoded] = found->second;
    unsent_.erase(found);
    const double given = before + encoded.given;
    const double kept = decoded_sum(block, push->iteration) + encoded.residual;
    if (std::isfinite(given) && std::isfinite(encoded.magnitude) &&
        !(std::abs(given - kept) <= kTolerance * (encoded.magnitude + std::abs(before))))
      violated({letter.from()}, "iteration ", push->iteration, ", block ", block.block,
               ": gradient and residual have the sum ", given, ", push and next residual ", kept);
  }
}

void EncodingChecker::on_ended(Instant, Address actor) {
  if (actor.kind != RoleKind::worker) return;
  const WorkerId worker(actor.index);
  std::erase_if(residuals_, [&](const auto& entry) { return entry.first.first == worker; });
  std::erase_if(unsent_,
                [&](const auto& entry) { return std::get<WorkerId>(entry.first) == worker; });
}

}  // namespace leeway::sim
