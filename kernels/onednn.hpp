#pragma once
// Helpers for kernels that use oneDNN: its engine, a stream per thread, errors, and a bounded store
// of generated code.
//
// Every thread keeps its own code, because oneDNN's scratch memory belongs to the thread that
// created the code.
#include <cstddef>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <utility>

#include "core/check.hpp"
#include "kernels/precision.hpp"

namespace leeway::kernels::onednn {

inline dnnl::engine& engine() {
  static auto& cpu = *new dnnl::engine(dnnl::engine::kind::cpu, 0);  // outlives all threads
  return cpu;
}

/// The calling thread's stream.
inline dnnl::stream& stream() {
  thread_local dnnl::stream stream(engine());
  return stream;
}

/// True if oneDNN may use all instructions of the set.
inline bool has_instructions(dnnl::cpu_isa isa) {
  // oneDNN's names of instruction sets are sets of bits.
  const auto needed = static_cast<unsigned>(isa);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & needed) == needed;
}

/// bf16 or f32.
inline dnnl::memory::data_type type_of(DType type) {
  return type == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

/// Returns f(). An error of oneDNN is a bug, reported with `values`.
template <class F, class... Values>
decltype(auto) checked(F&& f, const Values&... values) {
  try {
    return std::forward<F>(f)();
  } catch (const dnnl::error& error) {
    LW_CHECK(false, "oneDNN", error.message, values...);
  }
}

/// Generates code for a shape at its first use. A training run has a few shapes per layer and batch
/// size; when there are more than kMaxShapes, all are dropped.
template <class Shape, class Code, class Hash>
class CodeStore {
 public:
  static constexpr std::size_t kMaxShapes = 1024;

  /// Valid until the next call.
  Code& operator[](const Shape& shape) {
    auto found = codes_.find(shape);
    if (found == codes_.end()) {
      if (codes_.size() >= kMaxShapes) codes_.clear();
      found = codes_.try_emplace(shape, shape).first;
    }
    return found->second;
  }

 private:
  std::unordered_map<Shape, Code, Hash> codes_;
};

}  // namespace leeway::kernels::onednn
