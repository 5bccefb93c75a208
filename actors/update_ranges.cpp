#include "actors/update_ranges.hpp"

#include <algorithm>

#include "core/text.hpp"

namespace leeway {
namespace {

/// Whether each pattern matches a trained parameter.
Status check_groups(const plan::Optimizer& optimizer, const Model& model) {
  std::vector<std::string> names;
  for (const Parameter& parameter : model.parameters())
    if (parameter.spec.average == 0) names.push_back(parameter.name);
  for (std::size_t i = 0; i < optimizer.groups.size(); ++i)
    for (const std::string& pattern : patterns_of(optimizer.groups[i])) {
      const plan::ParameterGroup one{.names = pattern};
      if (std::ranges::any_of(names, [&](const auto& name) { return matches(one, name); }))
        continue;
      return Error{concat("optimizer.groups[", i, "].names: \"", pattern,
                          "\" matches no parameter; the model has ", join(names, ", "))};
    }
  return {};
}

/// A matrix from activations to activations: no table of tokens or positions.
bool is_hidden_matrix(const Model& model, const Parameter& parameter) {
  const std::string_view kind = model.layer(parameter.layer).kind();
  return parameter.spec.shape.rank() >= 2 && kind != "embedding" && kind != "unembedding" &&
         kind != "positions";
}

}  // namespace

Expected<std::vector<std::vector<UpdateRange>>> make_update_ranges(const plan::Optimizer& optimizer,
                                                                   const Model& model,
                                                                   const Layout& layout) {
  if (const Status valid = check_groups(optimizer, model); !valid) return valid.error();
  const bool separately = std::holds_alternative<plan::Updater>(optimizer.kind) ||
                          std::holds_alternative<plan::Muon>(optimizer.kind);
  std::vector<std::vector<UpdateRange>> all;
  for (const Block& block : layout.blocks()) {
    auto& ranges = all.emplace_back();
    for (const BlockSlice& slice : block.slices) {
      const Parameter& parameter = model.parameters()[static_cast<std::size_t>(slice.parameter)];
      const bool is_vector = parameter.spec.shape.rank() <= 1;
      const auto factors = factors_of(optimizer, parameter.name, is_vector);
      if (!ranges.empty() && ranges.back().factors == factors && !separately) continue;
      const std::int64_t begin = ranges.empty() ? 0 : slice.offset;
      if (!ranges.empty()) ranges.back().end = begin;
      ranges.push_back(
          {.begin = begin,
           .factors = factors,
           .parameter = slice.parameter,
           .first = slice.first,
           .floats = slice.floats,
           .columns = is_hidden_matrix(model, parameter) ? parameter.spec.shape.row_count() : 0});
    }
    ranges.back().end = block.floats;
  }
  return all;
}

}  // namespace leeway
