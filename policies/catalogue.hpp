#pragma once
// The catalogue: every policy there is, by the name that a plan gives it, with a sentence for
// whoever chooses.
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leeway {

struct CatalogueEntry {
  std::string_view name;
  std::string_view description;
};

std::span<const CatalogueEntry> optimizer_catalogue();
std::span<const CatalogueEntry> schedule_catalogue();
std::span<const CatalogueEntry> consistency_catalogue();
std::span<const CatalogueEntry> balance_catalogue();

/// The names of one of the lists, for messages.
std::vector<std::string> names_of(std::span<const CatalogueEntry> entries);

}  // namespace leeway
