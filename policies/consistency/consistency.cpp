#include "policies/consistency/consistency.hpp"

#include "policies/consistency/adaptive.hpp"
#include "policies/consistency/asp.hpp"
#include "policies/consistency/automatic.hpp"
#include "policies/consistency/backup.hpp"
#include "policies/consistency/bsp.hpp"
#include "policies/consistency/quorum.hpp"
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
    std::unique_ptr<Consistency> operator()(const plan::Backup& backup) const {
      return std::make_unique<Backup>(backup.spare);
    }
    std::unique_ptr<Consistency> operator()(const plan::Automatic& automatic) const {
      return std::make_unique<Automatic>(automatic.high);
    }
    std::unique_ptr<Consistency> operator()(const plan::Quorum& quorum) const {
      return std::make_unique<Quorum>(quorum);
    }
    std::unique_ptr<Consistency> operator()(const plan::Adaptive& adaptive) const {
      return std::make_unique<Adaptive>(adaptive.low, adaptive.high);
    }
  };
  return std::visit(Make{}, spec);
}

}  // namespace leeway
