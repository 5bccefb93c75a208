#pragma once
// Backup workers: a barrier that does not wait for the last few workers. A round is one step of
// synchronous SGD over its first pushes. Later pushes are dropped, and their samples are trained in
// another round. Source: Chen, Pan, Monga, Bengio and Jozefowicz, "Revisiting Distributed
// Synchronous SGD", ICLR 2016 workshop, section 3.
#include "policies/consistency/consistency.hpp"

namespace leeway {

class Backup final : public Consistency {
 public:
  explicit Backup(std::uint32_t spare) : spare_(spare) {}
  std::string_view name() const override { return "backup"; }
  std::int64_t bound() const override { return 0; }
  bool by_rounds() const override { return true; }
  RoundSize round_size() const override { return RoundSize::all_but(spare_); }

 private:
  std::uint32_t spare_;
};

}  // namespace leeway
