#pragma once
// Backup workers: a barrier that does not wait for the last few. A round is one step of synchronous
// SGD over the first pushes of it; those that come later are dropped, and their samples are trained
// in another round. Source: Chen, Pan, Monga, Bengio and Jozefowicz, "Revisiting Distributed
// Synchronous SGD", ICLR 2016 workshop, section 3.
#include "policies/consistency/consistency.hpp"

namespace leeway {

/// Pushes that close a round of `live` workers, `spare` of which are not waited for: at least one.
constexpr std::size_t backup_contributors(std::size_t live, std::size_t spare) {
  return live > spare ? live - spare : 1;
}

class Backup final : public Consistency {
 public:
  explicit Backup(std::uint32_t spare) : spare_(spare) {}
  std::string_view name() const override { return "backup"; }
  std::int64_t bound(Iteration) const override { return 0; }
  bool by_rounds() const override { return true; }
  bool drops_stragglers() const override { return true; }
  std::size_t contributors(std::size_t live) const override {
    return backup_contributors(live, spare_);
  }

 private:
  std::uint32_t spare_;
};

}  // namespace leeway
