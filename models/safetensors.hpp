#pragma once
// Reads and writes the safetensors format (https://github.com/huggingface/safetensors, "Format"),
// which PyTorch, JAX and others read.
//
// A file is the header's length (8 bytes, little-endian), the header (JSON, padded with spaces to a
// multiple of 8 bytes), then the tensors' bytes, row-major, without gaps. The reader validates
// everything in the file. Debian has no library for this format in C++; nlohmann/json reads the
// header.
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/expected.hpp"
#include "tensor/blob.hpp"
#include "tensor/dtype.hpp"
#include "tensor/shape.hpp"

namespace leeway {

struct NamedTensor {
  std::string name;
  Shape shape;
  DType dtype = DType::f32;
  Blob data;  // shape.count() * size_of(dtype) bytes in host memory
};

using Metadata = std::map<std::string, std::string>;

struct Safetensors {
  std::vector<NamedTensor> tensors;  // in the order of their bytes in the file
  Metadata metadata;
  std::vector<std::string> from_f64;  // names of tensors that were F64, and are rounded to F32
  /// Name and type ("I64") of the tensors that are left out: those of other types.
  std::vector<std::pair<std::string, std::string>> left_out;
};

/// A tensor in memory that it does not own.
struct TensorView {
  std::string name;
  Shape shape;
  DType dtype = DType::f32;
  std::span<const std::byte> bytes;  // shape.count() * size_of(dtype)
};

/// The bytes of a file. The pieces refer to `head` and to the tensors.
struct SafetensorsBytes {
  std::vector<std::byte> head;
  std::vector<std::span<const std::byte>> pieces;
};

/// As write_safetensors(), without a file. Errors: a name or metadata that is not UTF-8.
Expected<SafetensorsBytes> lay_out_safetensors(std::vector<TensorView> tensors,
                                               const Metadata& metadata = {});

/// Writes a file atomically: writes a temporary file in the same folder, flushes it to the disk and
/// renames it to `path`. Wider element types come first, for alignment; otherwise the order is
/// kept. Requires blobs that match their shapes, and distinct names. Errors: a name or metadata
/// that is not UTF-8, or a system error.
Status write_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                         const Metadata& metadata = {});

/// Reads a file. Tensors of F32, BF16, F16, I8 and I32 keep their type. Errors name the file and
/// the tensor: another format, unknown element types, shapes and offsets that disagree, overlap or
/// leave gaps, a truncated file.
Expected<Safetensors> read_safetensors(const std::string& path);

/// The same for a file in memory; `name` is for errors.
Expected<Safetensors> parse_safetensors(std::span<const std::byte> file, const std::string& name);

/// The same without copies: the tensors refer to `file`. A type that would be converted or left out
/// is an error.
Expected<std::vector<TensorView>> view_safetensors(std::span<const std::byte> file,
                                                   const std::string& name);

}  // namespace leeway
