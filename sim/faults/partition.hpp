#pragma once
// Some actors are cut off from all others for a while. Messages between the sides wait.
#include <algorithm>

#include "sim/faults/fault.hpp"

namespace leeway::sim {

class PartitionFault final : public Fault {
 public:
  PartitionFault(Address actor, plan::Partition spec)
      : inside_(std::move(spec.with)), lasts_(time_of(spec.seconds, 1)) {
    inside_.push_back(actor);
    std::sort(inside_.begin(), inside_.end());
    inside_.erase(std::unique(inside_.begin(), inside_.end()), inside_.end());
  }
  void begin(Simulator& host) override {
    for_each_pair(host, [&](Address a, Address b) { host.hold(a, b); });
  }
  Duration lasts() const override { return lasts_; }
  void end(Simulator& host) override {
    for_each_pair(host, [&](Address a, Address b) { host.release(a, b); });
  }

 private:
  template <class Each>
  void for_each_pair(const Simulator& host, Each each) const {
    for (const Address other : host.addresses()) {
      if (std::binary_search(inside_.begin(), inside_.end(), other)) continue;
      for (const Address actor : inside_) {
        each(actor, other);
        each(other, actor);
      }
    }
  }

  std::vector<Address> inside_;
  Duration lasts_;
};

}  // namespace leeway::sim
