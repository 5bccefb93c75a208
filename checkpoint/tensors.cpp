#include "checkpoint/tensors.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/check.hpp"
#include "core/limits.hpp"
#include "core/number.hpp"
#include "core/text.hpp"

namespace leeway::checkpoint {
namespace {

const Parameter& parameter_of(const Model& model, const BlockSlice& slice) {
  return model.parameters()[static_cast<std::size_t>(slice.parameter)];
}

Shape rows_of(const Shape& whole, std::int64_t rows) {
  if (whole.rank() == 0) return whole;
  std::vector<std::int64_t> extents(whole.extents().begin(), whole.extents().end());
  extents[0] = rows;
  return Shape(extents);
}

TensorView view_of(const Model& model, const BlockSlice& slice, const Blob& data,
                   const std::string& suffix) {
  const Parameter& parameter = parameter_of(model, slice);
  const Shape& whole = parameter.spec.shape;
  TensorView view{parameter.name + suffix, rows_of(whole, slice.rows), DType::f32, {}};
  if (slice.rows != whole.rows())
    view.name += concat('[', slice.first_row, ':', slice.first_row + slice.rows, ']');
  const auto begin = static_cast<std::size_t>(slice.offset) * sizeof(float);
  const auto count = static_cast<std::size_t>(view.shape.count()) * sizeof(float);
  LW_CHECK(begin + count <= data.size(), view.name, data.size());
  view.bytes = data.bytes().subspan(begin, count);
  return view;
}

bool is_aligned(std::span<const std::byte> floats) {
  return reinterpret_cast<std::uintptr_t>(floats.data()) % alignof(float) == 0;
}

struct TensorName {
  std::string parameter;
  std::size_t slot = 0;  // 0: the weights; from 1 on: state of the optimizer
  std::optional<std::pair<std::int64_t, std::int64_t>> rows;
};

std::optional<TensorName> parse_name(std::string_view name) {
  TensorName parsed;
  if (name.ends_with(']')) {
    const std::size_t open = name.rfind('[');
    if (open == std::string_view::npos) return std::nullopt;
    const std::string_view rows = name.substr(open + 1, name.size() - open - 2);
    const std::size_t colon = rows.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const auto first = parse_number<std::int64_t>(rows.substr(0, colon));
    const auto end = parse_number<std::int64_t>(rows.substr(colon + 1));
    if (!first || !end) return std::nullopt;
    parsed.rows.emplace(*first, *end);
    name = name.substr(0, open);
  }
  constexpr std::string_view kSlot = ".slot";
  if (const std::size_t slot = name.rfind(kSlot); slot != std::string_view::npos) {
    // Otherwise this is a part of the parameter's own name.
    const auto index = parse_number<std::size_t>(name.substr(slot + kSlot.size()));
    if (index && *index < limits::kMaxSlots) {
      parsed.slot = *index + 1;
      name = name.substr(0, slot);
    }
  }
  parsed.parameter = name;
  return parsed;
}

}  // namespace

std::vector<TensorView> weights_of(const Model& model, std::span<const StoredBlock> blocks) {
  std::vector<TensorView> tensors;
  for (const StoredBlock& stored : blocks)
    for (const BlockSlice& slice : stored.block->slices)
      tensors.push_back(view_of(model, slice, stored.weights, ""));
  return tensors;
}

std::vector<TensorView> slots_of(const Model& model, std::span<const StoredBlock> blocks) {
  std::vector<TensorView> tensors;
  for (const StoredBlock& stored : blocks)
    for (std::size_t slot = 0; slot < stored.slots.size(); ++slot)
      for (const BlockSlice& slice : stored.block->slices)
        tensors.push_back(view_of(model, slice, stored.slots[slot], concat(".slot", slot)));
  return tensors;
}

ParameterReader::ParameterReader(const Model& model)
    : model_(model), targets_(model.parameters().size()) {}

int ParameterReader::find(std::string_view name) const {
  const auto& parameters = model_.parameters();
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const Parameter& one) { return one.name == name; });
  return found == parameters.end() ? -1 : static_cast<int>(found - parameters.begin());
}

Status ParameterReader::add(const std::shared_ptr<const Files::Content>& file,
                            const std::string& name) {
  const auto tensors = view_safetensors(file->bytes(), name);
  if (!tensors) return tensors.error();
  for (const TensorView& tensor : *tensors) {
    const auto rows = reserve(tensor, file, name);
    if (!rows) return rows.error();
    if (*rows) std::memcpy(*rows, tensor.bytes.data(), tensor.bytes.size());
  }
  return {};
}

Expected<float*> ParameterReader::reserve(const TensorView& tensor,
                                          const std::shared_ptr<const Files::Content>& file,
                                          const std::string& name) {
  const auto parsed = parse_name(tensor.name);
  const int index = parsed ? find(parsed->parameter) : -1;
  if (index < 0)
    return Error{concat(name, ": tensor \"", tensor.name,
                        "\" is not in this model; resume with the model that was trained")};
  const Shape& whole = model_.parameters()[static_cast<std::size_t>(index)].spec.shape;
  const auto [first, end] =
      parsed->rows.value_or(std::pair<std::int64_t, std::int64_t>{0, whole.rows()});
  const bool fits = tensor.dtype == DType::f32 && first >= 0 && first <= end &&
                    end <= whole.rows() && tensor.shape == rows_of(whole, end - first);
  if (!fits)
    return Error{concat(name, ": tensor \"", tensor.name, "\" is ", name_of(tensor.dtype), ' ',
                        tensor.shape, ", the model has f32 ", whole,
                        "; resume with the model that was trained")};
  const std::lock_guard lock(mutex_);
  auto& targets = targets_[static_cast<std::size_t>(index)];
  if (targets.size() <= parsed->slot) targets.resize(parsed->slot + 1);
  Target& target = targets[parsed->slot];
  if (!target.values.owner) {
    const auto count = static_cast<std::size_t>(whole.count());
    target.arrived.resize(static_cast<std::size_t>(whole.rows()));
    if (tensor.shape == whole && is_aligned(tensor.bytes)) {
      const void* const bytes = tensor.bytes.data();
      target.values = {{static_cast<const float*>(bytes), count}, file};
    } else {
      auto memory = std::make_shared<Blob>(Blob::floats(whole.count()));
      target.memory = memory->mutable_floats();
      target.values = {{target.memory, count}, std::move(memory)};
    }
  }
  for (std::int64_t row = first; row < end; ++row) {
    const auto at = static_cast<std::size_t>(row);
    if (target.arrived[at])
      return Error{concat(name, ": row ", row, " of \"", parsed->parameter, "\" is stored twice")};
    target.arrived[at] = true;
  }
  return target.memory ? target.memory + first * whole.row_count() : nullptr;
}

Status ParameterReader::add_rows(const Manifest& manifest, const std::string& source,
                                 std::vector<ParameterState>& parameters) const {
  for (const BlockState& block : manifest.blocks)
    for (const BlockState::Slice& slice : block.slices) {
      const int index = find(slice.parameter);
      if (index < 0)
        return Error{concat(source, ": parameter \"", slice.parameter,
                            "\" is not in this model; resume with the model that was trained")};
      parameters[static_cast<std::size_t>(index)].rows.push_back(
          {slice.first_row, slice.rows, block.version, block.progress, block.samples});
    }
  return {};
}

Expected<std::vector<ParameterState>> ParameterReader::take(const Manifest& manifest,
                                                            const std::string& source) {
  std::vector<ParameterState> parameters(targets_.size());
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const std::string& name = model_.parameters()[i].name;
    if (targets_[i].empty())
      return Error{concat(source, ": has no parameter \"", name,
                          "\"; resume with the model that was trained")};
    for (std::size_t slot = 0; slot < targets_[i].size(); ++slot) {
      Target& target = targets_[i][slot];
      const auto gap = std::find(target.arrived.begin(), target.arrived.end(), false);
      if (!target.values.owner || gap != target.arrived.end())
        return Error{concat(source, ": row ", gap - target.arrived.begin(), " of \"", name,
                            "\" is missing; resume from another checkpoint")};
      if (slot == 0) {
        parameters[i].weights = std::move(target.values);
      } else {
        parameters[i].slots.push_back(std::move(target.values));
      }
    }
  }
  if (Status status = add_rows(manifest, source, parameters); !status) return status.error();
  return parameters;
}

}  // namespace leeway::checkpoint
