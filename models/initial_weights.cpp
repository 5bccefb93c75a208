#include "models/initial_weights.hpp"

#include <algorithm>
#include <map>

#include "core/text.hpp"
#include "kernels/convert.hpp"
#include "models/safetensors.hpp"

namespace leeway {

namespace {

/// Names that an error lists per kind of mismatch.
constexpr std::size_t kShown = 8;

using ByName = std::map<std::string, const NamedTensor*>;

/// "; missing: a, b and 3 more", or "" without names.
std::string listed(const char* what, std::vector<std::string> names) {
  if (names.empty()) return "";
  const std::size_t more = names.size() - std::min(names.size(), kShown);
  names.resize(names.size() - more);
  return concat("; ", what, ": ", join(names, ", "),
                more > 0 ? concat(" and ", more, " more") : "");
}

bool is_float(DType type) {
  return type == DType::f32 || type == DType::f16 || type == DType::bf16;
}

/// Lists the tensors that do not match the parameters; "" if all match.
std::string list_mismatches(const ByName& tensors, const std::vector<NamedTensor>& in_file_order,
                            std::span<const Parameter> parameters) {
  std::vector<std::string> missing, extra, mismatched;
  ByName left = tensors;
  for (const auto& parameter : parameters) {
    const auto found = tensors.find(parameter.name);
    left.erase(parameter.name);
    if (found == tensors.end()) {
      missing.push_back(parameter.name);
      continue;
    }
    const NamedTensor& tensor = *found->second;
    if (tensor.shape != parameter.spec.shape) {
      mismatched.push_back(
          concat(tensor.name, " is ", tensor.shape, " instead of ", parameter.spec.shape));
    } else if (!is_float(tensor.dtype)) {
      mismatched.push_back(concat(tensor.name, " is ", name_of(tensor.dtype), " instead of f32"));
    }
  }
  for (const auto& tensor : in_file_order)
    if (left.contains(tensor.name)) extra.push_back(tensor.name);
  return listed("missing", std::move(missing)) + listed("not in the model", std::move(extra)) +
         listed("mismatched", std::move(mismatched));
}

Blob as_floats(const NamedTensor& tensor) {
  if (tensor.dtype == DType::f32) return tensor.data;
  Blob floats = Blob::floats(tensor.shape.count());
  kernels::convert(floats.mutable_data(), DType::f32, tensor.data.data(), tensor.dtype,
                   tensor.shape.count());
  return floats;
}

}  // namespace

Expected<std::vector<Blob>> load_initial_weights(const std::string& path,
                                                 std::span<const Parameter> parameters) {
  const auto file = read_safetensors(path);
  if (!file) return Error{concat("init_from: ", file.error().text)};
  ByName tensors;
  for (const auto& tensor : file->tensors)
    if (!tensor.name.ends_with(".num_batches_tracked")) tensors[tensor.name] = &tensor;
  if (const auto text = list_mismatches(tensors, file->tensors, parameters); !text.empty())
    return Error{concat("init_from: \"", path, "\" does not match the model", text,
                        "; give --init the weights of the same model, named as in PyTorch")};
  std::vector<Blob> blobs;
  blobs.reserve(parameters.size());
  for (const auto& parameter : parameters) blobs.push_back(as_floats(*tensors[parameter.name]));
  return blobs;
}

}  // namespace leeway
