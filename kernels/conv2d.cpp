#include "kernels/conv2d.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/check.hpp"
#include "core/rng.hpp"
#include "kernels/onednn.hpp"
#include "kernels/scratch.hpp"
#include "kernels/shape_checks.hpp"
#include "kernels/slices.hpp"

namespace leeway::kernels {

namespace {

using dnnl::memory;
using onednn::engine;
using Tag = memory::format_tag;

constexpr auto kFloat = memory::data_type::f32;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

/// A memory of `bytes`, whatever their layout. oneDNN rewrites the padding of a blocked layout each
/// time it is bound, but other threads may be reading the packed weights.
memory flat(std::size_t bytes) {
  const auto count = static_cast<memory::dim>(bytes);
  return memory(memory::desc({count}, memory::data_type::u8, Tag::x), engine(), nullptr);
}

memory unbound(const memory::desc& desc) {
  return memory(desc, engine(), nullptr);
}

void bind(memory& argument, const void* data) {
  argument.set_data_handle(const_cast<void*>(data));
}

/// Copies from one layout to another.
class Reorder {
 public:
  Reorder(const memory::desc& from, const memory::desc& to)
      : from_(flat(from.get_size())),
        to_(unbound(to)),
        code_(dnnl::reorder::primitive_desc(engine(), from, engine(), to)) {}

  void run(void* to, const void* from) {
    bind(from_, from);
    bind(to_, to);
    code_.execute(onednn::stream(), {{DNNL_ARG_FROM, from_}, {DNNL_ARG_TO, to_}});
  }

 private:
  memory from_, to_;
  dnnl::reorder code_;
};

/// The type of x, dy and the weights as a product reads them. oneDNN 2.6's gradient of weights in
/// bf16 can read memory that it has not written if windows of several pixels leave gaps.
DType operand_type_of(const Conv2dShape& s) {
  return s.kernel > 1 && s.stride > s.kernel ? DType::f32 : operand_type(s.precision);
}

/// True if operands are rounded but stored as f32, so that their layouts are those of fp32.
bool rounds_in_fp32(const Conv2dShape& s) {
  return is_half(s.precision) && operand_type_of(s) == DType::f32;
}

/// The layouts of a shape's arrays. oneDNN chooses those of the weights. Inputs of a product have
/// the operand type of the shape's precision, results are f32.
struct Layouts {
  explicit Layouts(const Conv2dShape& s)
      : x(images(s.channels, s.height, s.width, s, onednn::type_of(operand_type_of(s)))),
        dx(images(s.channels, s.height, s.width, s, kFloat)),
        y(images(s.outputs, s.out_height(), s.out_width(), s, kFloat)),
        dy(images(s.outputs, s.out_height(), s.out_width(), s,
                  onednn::type_of(operand_type_of(s)))),
        bias({s.outputs}, kFloat, Tag::x),
        plain_weight(weight(s, s.groups > 1 ? Tag::goihw : Tag::oihw, kFloat)),
        any_weight(weight(s, Tag::any, onednn::type_of(operand_type_of(s)))),
        any_dweight(weight(s, Tag::any, kFloat)),
        strides{s.stride, s.stride},
        padding{s.padding, s.padding} {}

  static memory::desc images(std::int64_t channels, std::int64_t height, std::int64_t width,
                             const Conv2dShape& s, memory::data_type type) {
    return {{s.batch, channels, height, width}, type, Tag::nhwc};
  }
  static memory::desc weight(const Conv2dShape& s, Tag tag, memory::data_type type) {
    const auto o = s.outputs / s.groups, c = s.channels / s.groups;
    return s.groups > 1 ? memory::desc({s.groups, o, c, s.kernel, s.kernel}, type, tag)
                        : memory::desc({o, c, s.kernel, s.kernel}, type, tag);
  }

  memory::desc x, dx, y, dy, bias, plain_weight, any_weight, any_dweight;
  memory::dims strides, padding;
};

using ForwardCode = dnnl::convolution_forward;
using DataCode = dnnl::convolution_backward_data;
using WeightCode = dnnl::convolution_backward_weights;

ForwardCode::primitive_desc forward_of(const Layouts& l) {
  return {{dnnl::prop_kind::forward_training, kDirect, l.x, l.any_weight, l.bias, l.y, l.strides,
           l.padding, l.padding},
          engine()};
}

/// y = x * weights + bias. Without a bias it adds zeros, so that both cases have the same form.
class Forward {
 public:
  Forward(const Layouts& l, const ForwardCode::primitive_desc& chosen)
      : x_(unbound(l.x)),
        weight_(flat(chosen.weights_desc().get_size())),
        bias_(unbound(l.bias)),
        y_(unbound(l.y)),
        zeros_(l.bias.get_size() / sizeof(float)),
        code_(chosen),
        arguments_{{DNNL_ARG_SRC, x_},
                   {DNNL_ARG_WEIGHTS, weight_},
                   {DNNL_ARG_BIAS, bias_},
                   {DNNL_ARG_DST, y_}} {}

  void run(float* y, const void* x, const std::byte* packed, const float* bias) {
    bind(y_, y);
    bind(x_, x);
    bind(weight_, packed);
    bind(bias_, bias ? bias : zeros_.data());
    code_.execute(onednn::stream(), arguments_);
  }

 private:
  memory x_, weight_, bias_, y_;
  std::vector<float> zeros_;
  ForwardCode code_;
  std::unordered_map<int, memory> arguments_;
};

class BackwardData {
 public:
  BackwardData(const Layouts& l, const DataCode::primitive_desc& chosen)
      : dx_(unbound(l.dx)),
        weight_(flat(chosen.weights_desc().get_size())),
        dy_(unbound(l.dy)),
        code_(chosen),
        arguments_{
            {DNNL_ARG_DIFF_SRC, dx_}, {DNNL_ARG_WEIGHTS, weight_}, {DNNL_ARG_DIFF_DST, dy_}} {}

  void run(float* dx, const void* dy, const std::byte* packed) {
    bind(dx_, dx);
    bind(dy_, dy);
    bind(weight_, packed);
    code_.execute(onednn::stream(), arguments_);
  }

 private:
  memory dx_, weight_, dy_;
  DataCode code_;
  std::unordered_map<int, memory> arguments_;
};

/// Whether oneDNN's code for 1x1 kernels, up to 3.12, would write past its workspace: it reserves
/// `channels` numbers per position but addresses whole blocks of 8 or 16
/// (https://github.com/uxlfoundation/oneDNN/issues/6035).
bool overruns_workspace(const Conv2dShape& s) {
  return s.kernel == 1 && s.stride > 1 && s.channels / s.groups % 16 != 0;
}

WeightCode::primitive_desc weights_of(const Conv2dShape& s, const Layouts& l,
                                      const ForwardCode::primitive_desc& forward) {
  // Outlives next_impl(), which reads it again.
  const WeightCode::desc pass(kDirect, l.x, l.any_dweight, l.bias, l.dy, l.strides, l.padding,
                              l.padding);
  WeightCode::primitive_desc chosen(pass, engine(), forward);
  if (overruns_workspace(s))
    while (std::string_view(chosen.impl_info_str()).find("1x1") != std::string_view::npos)
      LW_CHECK(chosen.next_impl(), chosen.impl_info_str());
  return chosen;
}

/// Gradients of the parameters. Scratch holds the weight's gradient in oneDNN's layout, then in the
/// plain layout, then the bias's gradient.
class BackwardWeights {
 public:
  BackwardWeights(const Layouts& l, const WeightCode::primitive_desc& chosen)
      : x_(unbound(l.x)),
        dy_(unbound(l.dy)),
        dweight_(flat(chosen.diff_weights_desc().get_size())),
        dbias_(unbound(l.bias)),
        packed_bytes_(padded_bytes(chosen.diff_weights_desc().get_size())),
        plain_bytes_(padded_bytes(l.plain_weight.get_size())),
        bias_bytes_(padded_bytes(l.bias.get_size())),
        code_(chosen),
        to_plain_(chosen.diff_weights_desc(), l.plain_weight),
        arguments_{{DNNL_ARG_SRC, x_},
                   {DNNL_ARG_DIFF_DST, dy_},
                   {DNNL_ARG_DIFF_WEIGHTS, dweight_},
                   {DNNL_ARG_DIFF_BIAS, dbias_}} {}

  std::size_t scratch_bytes() const { return packed_bytes_ + plain_bytes_ + bias_bytes_; }

  void run(Slices dweight, float* dbias, const void* dy, const void* x, std::byte* scratch,
           std::int64_t row_floats) {
    std::byte* const plain = scratch + packed_bytes_;
    bind(x_, x);
    bind(dy_, dy);
    bind(dweight_, scratch);
    bind(dbias_, dbias ? static_cast<void*>(dbias) : plain + plain_bytes_);
    code_.execute(onednn::stream(), arguments_);
    if (dweight.size() == 1) return to_plain_.run(dweight[0].data, scratch);
    to_plain_.run(plain, scratch);
    scatter_rows(dweight, reinterpret_cast<const float*>(plain), row_floats);
  }

 private:
  memory x_, dy_, dweight_, dbias_;
  std::size_t packed_bytes_, plain_bytes_, bias_bytes_;
  WeightCode code_;
  Reorder to_plain_;
  std::unordered_map<int, memory> arguments_;
};

/// Identifies a layout of the weights by a hash.
PackForm form_of(const memory::desc& desc) {
  const auto& d = desc.data;
  LW_CHECK(d.format_kind == dnnl_blocked && d.extra.flags == 0, d.format_kind, d.extra.flags);
  std::uint64_t id = mix64(static_cast<std::uint64_t>(d.ndims) << 8 ^ d.data_type);
  const auto take = [&](std::int64_t number) {
    id = mix64(id ^ static_cast<std::uint64_t>(number));
  };
  const auto& blocking = d.format_desc.blocking;
  for (int i = 0; i < d.ndims; ++i) {
    take(d.dims[i]);
    take(d.padded_dims[i]);
    take(d.padded_dims[i] == 1 ? 0 : blocking.strides[i]);  // the stride of extent 1 is arbitrary
  }
  for (int i = 0; i < blocking.inner_nblks; ++i) {
    take(blocking.inner_blks[i]);
    take(blocking.inner_idxs[i]);
  }
  return {id, desc.get_size()};
}

/// All code for one shape, generated on first use.
class Convolution {
 public:
  explicit Convolution(const Conv2dShape& shape)
      : shape_(shape), layouts_(shape), chosen_(forward_of(layouts_)) {}

  std::size_t scratch_bytes() { return operand_bytes() + backward_weights().scratch_bytes(); }

  /// x and dy as the product reads them: rounded into `scratch` if the precision asks for it.
  const void* round_x(const float* x, std::byte* scratch) const {
    return operand(x, scratch, layouts_.x);
  }
  const void* round_dy(const float* dy, std::byte* scratch) const {
    return operand(dy, scratch + (operand_bytes() ? padded_bytes(layouts_.x.get_size()) : 0),
                   layouts_.dy);
  }
  /// Bytes of both at the start of scratch.
  std::size_t operand_bytes() const {
    if (!is_half(shape_.precision)) return 0;
    return padded_bytes(layouts_.x.get_size()) + padded_bytes(layouts_.dy.get_size());
  }

  PackForm form(ConvPass pass) {
    PackForm form = form_of(weight_layout(pass));
    if (rounds_in_fp32(shape_))
      form.id = mix64(form.id ^ static_cast<std::uint64_t>(shape_.precision));
    return form;
  }
  Reorder& pack(ConvPass pass) {
    auto& reorder = pass == ConvPass::forward ? pack_forward_ : pack_backward_;
    if (!reorder) reorder.emplace(layouts_.plain_weight, weight_layout(pass));
    return *reorder;
  }
  Forward& forward() {
    if (!forward_) forward_.emplace(layouts_, chosen_);
    return *forward_;
  }
  BackwardData& backward_data() {
    if (!backward_data_) backward_data_.emplace(layouts_, chosen_for_data());
    return *backward_data_;
  }
  BackwardWeights& backward_weights() {
    if (!backward_weights_)
      backward_weights_.emplace(layouts_, weights_of(shape_, layouts_, chosen_));
    return *backward_weights_;
  }

 private:
  const void* operand(const float* array, std::byte* scratch, const memory::desc& layout) const {
    if (!is_half(shape_.precision)) return array;
    std::int64_t count = 1;
    for (const auto extent : layout.dims()) count *= extent;
    round_operands(scratch, operand_type_of(shape_), array, count, shape_.precision);
    return scratch;
  }
  const DataCode::primitive_desc& chosen_for_data() {
    const auto& l = layouts_;
    if (!chosen_for_data_)
      chosen_for_data_.emplace(
          DataCode::desc(kDirect, l.dx, l.any_weight, l.dy, l.strides, l.padding, l.padding),
          engine(), chosen_);
    return *chosen_for_data_;
  }
  memory::desc weight_layout(ConvPass pass) {
    return pass == ConvPass::forward ? chosen_.weights_desc() : chosen_for_data().weights_desc();
  }

  Conv2dShape shape_;
  Layouts layouts_;
  ForwardCode::primitive_desc chosen_;
  std::optional<DataCode::primitive_desc> chosen_for_data_;
  std::optional<Reorder> pack_forward_, pack_backward_;
  std::optional<Forward> forward_;
  std::optional<BackwardData> backward_data_;
  std::optional<BackwardWeights> backward_weights_;
};

struct Hash {
  std::size_t operator()(const Conv2dShape& s) const {
    std::uint64_t h = 0;
    for (auto extent : {s.batch, s.channels, s.height, s.width, s.outputs, s.kernel, s.stride,
                        s.padding, s.groups, static_cast<std::int64_t>(s.precision)})
      h = mix64(h ^ static_cast<std::uint64_t>(extent));
    return h;
  }
};

/// Calls f(code for the shape). An empty batch has the same forms as a batch of one.
template <class F>
decltype(auto) with_code(const Conv2dShape& s, F&& f) {
  check(s);
  return onednn::checked(
      [&]() -> decltype(auto) {
        thread_local onednn::CodeStore<Conv2dShape, Convolution, Hash> codes;
        Conv2dShape shape = s;
        shape.batch = std::max<std::int64_t>(1, shape.batch);
        return f(codes[shape]);
      },
      s.batch, s.channels, s.height, s.width, s.outputs, s.kernel, s.stride, s.padding, s.groups);
}

std::int64_t row_floats(const Conv2dShape& shape) {
  return shape.weight_count() / shape.outputs;
}

}  // namespace

PackForm conv2d_form(const Conv2dShape& shape, ConvPass pass) {
  return with_code(shape, [&](Convolution& code) { return code.form(pass); });
}

void conv2d_pack(std::byte* packed, ConstSlices weight, const Conv2dShape& shape, ConvPass pass) {
  check(shape);
  check_rows(weight, shape.outputs);
  const float* whole = weight[0].data;
  const bool rounds = rounds_in_fp32(shape);
  if (weight.size() > 1 || rounds) {
    thread_local std::vector<float> gathered;
    gathered.resize(static_cast<std::size_t>(shape.weight_count()));
    gather_rows(gathered.data(), weight, row_floats(shape));
    whole = gathered.data();
    if (rounds)
      round_operands(reinterpret_cast<std::byte*>(gathered.data()), DType::f32, whole,
                     shape.weight_count(), shape.precision);
  }
  with_code(shape, [&](Convolution& code) { code.pack(pass).run(packed, whole); });
}

std::size_t conv2d_scratch_bytes(const Conv2dShape& shape) {
  return with_code(shape, [](Convolution& code) { return code.scratch_bytes(); });
}

void conv2d_forward(float* y, const float* x, const std::byte* packed, const float* bias,
                    std::byte* scratch, const Conv2dShape& shape) {
  if (shape.batch == 0) return;
  with_code(shape, [&](Convolution& code) {
    code.forward().run(y, code.round_x(x, scratch), packed, bias);
  });
}

void conv2d_backward(float* dx, Slices dweight, float* dbias, const float* dy, const float* x,
                     const std::byte* packed, std::byte* scratch, const Conv2dShape& shape) {
  check(shape);
  const bool weights = !dweight.empty();
  if (weights) check_rows(dweight, shape.outputs);
  if (shape.batch == 0) {
    zero_rows(dweight, row_floats(shape));
    if (dbias) std::fill_n(dbias, shape.outputs, 0.0f);
    return;
  }
  if (!weights && !dx) return;
  with_code(shape, [&](Convolution& code) {
    const void* const rounded_dy = code.round_dy(dy, scratch);
    const bool rounds = rounded_dy != dy;  // but not the sums for the bias
    if (rounds && dbias)
      column_sums(dbias, dy, shape.batch * shape.out_height() * shape.out_width(), shape.outputs,
                  shape.outputs);
    if (weights)
      code.backward_weights().run(dweight, rounds ? nullptr : dbias, rounded_dy,
                                  code.round_x(x, scratch), scratch + code.operand_bytes(),
                                  row_floats(shape));
    if (dx) code.backward_data().run(dx, rounded_dy, packed);
  });
}

}  // namespace leeway::kernels
