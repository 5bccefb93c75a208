#include "kernels/gemm.hpp"

#include <algorithm>
#include <unordered_map>

#include "core/check.hpp"
#include "core/rng.hpp"
#include "kernels/onednn.hpp"

namespace leeway::kernels {

namespace {

using dnnl::memory;
using onednn::engine;

memory::desc plain(std::int64_t rows, std::int64_t columns, std::int64_t leading, bool transposed,
                   memory::data_type type = memory::data_type::f32) {
  return memory::desc({rows, columns}, type,
                      transposed ? memory::dims{1, leading} : memory::dims{leading, 1});
}

/// oneDNN's code for one shape; each call binds the arguments.
class Product {
 public:
  explicit Product(const GemmShape& shape)
      : Product(shape, onednn::type_of(operand_type(shape.precision))) {}

  Product(const GemmShape& shape, memory::data_type operand)
      : a_(plain(shape.m, shape.k, shape.lda, shape.transpose_a, operand), engine(), nullptr),
        b_(plain(shape.k, shape.n, shape.ldb, shape.transpose_b, operand), engine(), nullptr),
        bias_(plain(1, shape.n, shape.n, false), engine(), nullptr),
        c_(plain(shape.m, shape.n, shape.ldc, false), engine(), nullptr) {
    dnnl::primitive_attr attributes;
    if (shape.add) {
      dnnl::post_ops sum;
      sum.append_sum(1.0f);
      attributes.set_post_ops(sum);
    }
    const auto descriptor =
        shape.with_bias
            ? dnnl::matmul::desc(a_.get_desc(), b_.get_desc(), bias_.get_desc(), c_.get_desc())
            : dnnl::matmul::desc(a_.get_desc(), b_.get_desc(), c_.get_desc());
    matmul_ = dnnl::matmul(dnnl::matmul::primitive_desc(descriptor, attributes, engine()));
    arguments_ = {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, c_}};
    if (shape.with_bias) arguments_.insert({DNNL_ARG_BIAS, bias_});
  }

  void run(float* c, const void* a, const void* b, const float* bias) {
    a_.set_data_handle(const_cast<void*>(a));
    b_.set_data_handle(const_cast<void*>(b));
    bias_.set_data_handle(const_cast<float*>(bias));
    c_.set_data_handle(c);
    matmul_.execute(onednn::stream(), arguments_);
  }

 private:
  memory a_, b_, bias_, c_;
  dnnl::matmul matmul_;
  std::unordered_map<int, memory> arguments_;
};

struct Hash {
  std::size_t operator()(const GemmShape& s) const {
    std::uint64_t h = 0;
    for (auto extent : {s.m, s.n, s.k, s.lda, s.ldb, s.ldc})
      h = mix64(h ^ static_cast<std::uint64_t>(extent));
    const unsigned flags = s.transpose_a | s.transpose_b << 1 | s.add << 2 | s.with_bias << 3 |
                           static_cast<unsigned>(s.precision) << 4;
    return mix64(h ^ flags);
  }
};

void fill_without_product(const GemmShape& shape, float* c, const float* bias) {
  for (std::int64_t row = 0; row < shape.m; ++row) {
    float* out = c + row * shape.ldc;
    if (!shape.add) std::fill_n(out, shape.n, 0.0f);
    if (shape.with_bias)
      for (std::int64_t column = 0; column < shape.n; ++column) out[column] += bias[column];
  }
}

}  // namespace

void gemm(const GemmShape& shape, float* c, const void* a, const void* b, const float* bias) {
  if (shape.m == 0 || shape.n == 0) return;
  LW_CHECK(!shape.with_bias || bias, shape.n);
  if (shape.k == 0) return fill_without_product(shape, c, bias);
  onednn::checked(
      [&] {
        thread_local onednn::CodeStore<GemmShape, Product, Hash> products;
        products[shape].run(c, a, b, bias);
      },
      shape.m, shape.n, shape.k);
}

}  // namespace leeway::kernels
