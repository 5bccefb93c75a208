#include "policies/consistency/consistency.hpp"

#include "policies/consistency/adaptive.hpp"
#include "policies/consistency/asp.hpp"
#include "policies/consistency/bsp.hpp"
#include "policies/consistency/ssp.hpp"

namespace leeway {

std::unique_ptr<Consistency> make_consistency(const plan::Consistency& spec) {
  struct Make {
    std::unique_ptr<Consistency> operator()(const plan::Bsp&) const {
      return std::make_unique<Bsp>();
    }
    std::unique_ptr<Consistency> operator()(const plan::Ssp& ssp) const {
      return std::make_unique<Ssp>(ssp.staleness);
    }
    std::unique_ptr<Consistency> operator()(const plan::Asp&) const {
      return std::make_unique<Asp>();
    }
    std::unique_ptr<Consistency> operator()(const plan::Backup&) const { return nullptr; }
    std::unique_ptr<Consistency> operator()(const plan::Adaptive& adaptive) const {
      return std::make_unique<Adaptive>(adaptive.low, adaptive.high);
    }
  };
  return std::visit(Make{}, spec);
}

}  // namespace leeway
