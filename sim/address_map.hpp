#pragma once
// AddressMap: maps addresses to numbers. A vector lookup, because indices are small.
#include <array>
#include <cstdint>
#include <vector>

#include "core/address.hpp"

namespace leeway::sim {

class AddressMap {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  void set(Address address, std::uint32_t number) {
    auto& numbers = by_kind_[static_cast<std::size_t>(address.kind)];
    if (numbers.size() <= address.index) numbers.resize(address.index + std::size_t{1}, kNone);
    numbers[address.index] = number;
  }
  /// kNone for an address without a number.
  std::uint32_t find(Address address) const {
    const auto& numbers = by_kind_[static_cast<std::size_t>(address.kind)];
    return address.index < numbers.size() ? numbers[address.index] : kNone;
  }

 private:
  static constexpr std::size_t kKinds = static_cast<std::size_t>(RoleKind::node) + 1;
  std::array<std::vector<std::uint32_t>, kKinds> by_kind_;
};

}  // namespace leeway::sim
