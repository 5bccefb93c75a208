#pragma once
// The data path, between a worker and a shard: values of worker_shard.capnp, which documents each
// field.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.hpp"
#include "tensor/blob.hpp"
#include "tensor/dtype.hpp"
#include "tensor/shape.hpp"

namespace leeway::msg {

/// A block's weights or gradient. `data` is empty in an empty push, otherwise at least
/// shape.count() elements.
struct BlockData {
  BlockId block;
  Version version;
  DType dtype = DType::f32;
  Shape shape;
  Blob data;
};

struct Pull {
  Iteration iteration;
  Clock own_clock;
  DType dtype = DType::f32;
};

struct Weights {
  Iteration iteration;
  std::vector<BlockData> blocks;
};

struct Push {
  enum class Kind : std::uint8_t { gradient, delta, empty };
  Iteration iteration;
  std::uint32_t bucket = 0;
  std::uint32_t bucket_count = 0;
  Kind kind = Kind::gradient;
  double weight = 0;
  std::uint32_t samples = 0;
  std::vector<BlockData> blocks;
  std::vector<std::uint32_t> rows;
};

struct Pushed {
  enum class Durability : std::uint8_t { applied, durable };
  Iteration iteration;
  std::uint32_t bucket = 0;
  Durability durability = Durability::applied;
  bool repeat = false;
};

struct Refused {
  enum class Reason : std::uint8_t { malformed, unknown_worker, stale_view, too_stale, gap };
  Reason reason = Reason::malformed;
  std::string text;
  Iteration iteration;
};

std::string_view name_of(Refused::Reason reason);

}  // namespace leeway::msg
