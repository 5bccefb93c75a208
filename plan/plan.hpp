#pragma once
// Plan: what a run is, as a plain value. Field by field the same as plan.capnp, which documents
// each field.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/address.hpp"
#include "core/expected.hpp"

namespace leeway {

namespace plan {

struct FashionMnist {
  std::string directory = "/usr/share/datasets/fashion-mnist";
  bool operator==(const FashionMnist&) const = default;
};
struct Idx {
  std::string train_images, train_labels, test_images, test_labels;
  bool operator==(const Idx&) const = default;
};
struct Csv {
  std::string train, test;
  std::string label = "label";
  bool regression = false;
  double test_share = 0.2;
  bool normalize = true;
  bool operator==(const Csv&) const = default;
};
struct Line {
  double slope = 3, intercept = 2, noise = 0.1;
  bool operator==(const Line&) const = default;
};
struct Clusters {
  std::uint32_t classes = 10, features = 32;
  double spread = 3;
  bool operator==(const Clusters&) const = default;
};
struct Synthetic {
  std::uint32_t samples = 10000, test_samples = 1000;
  std::variant<Line, Clusters> kind;
  bool operator==(const Synthetic&) const = default;
};
struct CustomData {
  std::string name;
  bool operator==(const CustomData&) const = default;
};
struct TextCorpus {
  std::string file;
  std::uint32_t context = 64;
  double test_share = 0.1;
  bool operator==(const TextCorpus&) const = default;
};
using DataSource = std::variant<FashionMnist, Idx, Csv, Synthetic, CustomData, TextCorpus>;

enum class Init : std::uint8_t { he, xavier, normal, zeros, ones };
struct Layer;
struct Linear {
  std::uint32_t outputs = 0;
  Init init = Init::he;
  bool bias = true;
  double deviation = 0.01;
  bool operator==(const Linear&) const = default;
};
struct Relu {
  bool operator==(const Relu&) const = default;
};
struct Flatten {
  bool operator==(const Flatten&) const = default;
};
struct CustomLayer {
  std::string name, arguments;
  bool operator==(const CustomLayer&) const = default;
};
struct Conv2d {
  std::uint32_t outputs = 0, kernel = 3, stride = 1, padding = 0, groups = 1;
  bool bias = true;
  Init init = Init::he;
  bool operator==(const Conv2d&) const = default;
};
struct MaxPool2d {
  std::uint32_t kernel = 2, stride = 2, padding = 0;
  bool operator==(const MaxPool2d&) const = default;
};
struct AvgPool2d {
  std::uint32_t kernel = 2, stride = 2, padding = 0;
  bool operator==(const AvgPool2d&) const = default;
};
struct BatchNorm {
  double epsilon = 1e-5, momentum = 0.1;
  bool operator==(const BatchNorm&) const = default;
};
struct LayerNorm {
  double epsilon = 1e-5;
  bool operator==(const LayerNorm&) const = default;
};
struct Gelu {
  bool operator==(const Gelu&) const = default;
};
struct Tanh {
  bool operator==(const Tanh&) const = default;
};
struct Sigmoid {
  bool operator==(const Sigmoid&) const = default;
};
struct Dropout {
  double probability = 0.5;
  bool operator==(const Dropout&) const = default;
};
struct Embedding {
  std::uint32_t vocabulary = 0, features = 0;
  Init init = Init::normal;
  double deviation = 0.01;
  bool operator==(const Embedding&) const = default;
};
struct Positions {
  Init init = Init::normal;
  double deviation = 0.01;
  bool operator==(const Positions&) const = default;
};
struct Attention {
  std::uint32_t heads = 4;
  bool operator==(const Attention&) const = default;
};
struct Unembedding {
  bool operator==(const Unembedding&) const = default;
};
struct Residual {
  std::vector<Layer> body, shortcut;
  bool operator==(const Residual& other) const;
};
/// A class of its own, since residual layers hold layers. std::visit and std::get_if take it as the
/// variant that it is.
struct Layer : std::variant<Linear, Relu, Flatten, CustomLayer, Conv2d, MaxPool2d, AvgPool2d,
                            BatchNorm, LayerNorm, Gelu, Tanh, Sigmoid, Dropout, Embedding, Residual,
                            Positions, Attention, Unembedding> {
  using variant::variant;
};
inline bool Residual::operator==(const Residual& other) const {
  return body == other.body && shortcut == other.shortcut;
}

enum class Loss : std::uint8_t { softmax_cross_entropy, mean_squared_error, sigmoid_cross_entropy };

struct Augment {
  bool flip = false;
  std::uint32_t shift = 0;
  bool operator==(const Augment&) const = default;
};

struct Sgd {
  bool operator==(const Sgd&) const = default;
};
struct Momentum {
  double factor = 0.9;
  bool operator==(const Momentum&) const = default;
};
struct Nesterov {
  double factor = 0.9;
  bool operator==(const Nesterov&) const = default;
};
struct Adam {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool operator==(const Adam&) const = default;
};
struct AdamW {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool operator==(const AdamW&) const = default;
};
struct AdaGrad {
  double epsilon = 1e-10;
  bool operator==(const AdaGrad&) const = default;
};
struct Optimizer {
  double learning_rate = 0.1;
  double weight_decay = 0;
  std::variant<Sgd, Momentum, Nesterov, Adam, AdamW, AdaGrad> kind;
  bool operator==(const Optimizer&) const = default;
};

struct Constant {
  bool operator==(const Constant&) const = default;
};
struct Step {
  double every = 10, factor = 0.1;
  bool operator==(const Step&) const = default;
};
struct Cosine {
  double floor = 0;
  bool operator==(const Cosine&) const = default;
};
struct LrSchedule {
  double warmup = 0;
  std::variant<Constant, Step, Cosine> kind;
  bool operator==(const LrSchedule&) const = default;
};

struct Bsp {
  bool operator==(const Bsp&) const = default;
};
struct Ssp {
  std::uint32_t staleness = 3;
  bool operator==(const Ssp&) const = default;
};
struct Asp {
  bool operator==(const Asp&) const = default;
};
struct Backup {
  std::uint32_t spare = 1;
  bool operator==(const Backup&) const = default;
};
struct Adaptive {
  std::uint32_t low = 1, high = 8;
  bool operator==(const Adaptive&) const = default;
};
using Consistency = std::variant<Bsp, Ssp, Asp, Backup, Adaptive>;

enum class Balance : std::uint8_t { equal, by_speed };

struct Pipeline {
  std::uint32_t stages = 1;
  std::string schedule = "1f1b";
  std::uint32_t chunks = 1;
  std::string split;
  std::vector<std::uint32_t> recompute;
  bool operator==(const Pipeline&) const = default;
};

struct World {
  enum class Nodes : std::uint8_t { each, one };
  Nodes nodes = Nodes::each;
  std::uint32_t cores = 1;
  double speed = 50, memory = 20;  // GFLOP/s, GB/s
  double noise = 0.05;
  double latency_us = 50, local_latency_us = 5;
  double jitter = 0.2;
  double link = 10;  // Gbit/s
  double detection_ms = 200;
  double message_us = 0, timer_us = 0;
  double slice_us = 0;
  double contention = 0;
  double cold = 0;
  bool cost_only = false;
  bool operator==(const World&) const = default;
};

struct ConstantFactor {
  double factor = 4;
  bool operator==(const ConstantFactor&) const = default;
};
struct Bursts {
  double factor = 4, share = 0.2;
  std::uint32_t length = 50;
  bool operator==(const Bursts&) const = default;
};
struct Pareto {
  double alpha = 1.5, cap = 100;
  bool operator==(const Pareto&) const = default;
};
struct Pauses {
  double length_ms = 200;
  std::variant<std::uint32_t, double> every = std::uint32_t{50};  // iterations, or seconds
  bool operator==(const Pauses&) const = default;
};
struct Decay {
  double factor = 4;
  std::uint32_t iterations = 1000;
  bool operator==(const Decay&) const = default;
};
struct Sharing {
  double factor = 4;
  std::uint32_t on = 100, off = 300;
  bool operator==(const Sharing&) const = default;
};
struct Trace {
  std::string file;
  bool operator==(const Trace&) const = default;
};
using StragglerKind = std::variant<ConstantFactor, Bursts, Pareto, Pauses, Decay, Sharing, Trace>;
struct Straggler {
  std::uint32_t worker = 0;
  bool all = false;
  StragglerKind kind;
  bool operator==(const Straggler&) const = default;
};
/// No worker is slowed more, by all its stragglers together.
inline constexpr double kMaxSlowdown = 1e6;

struct Throws {
  bool operator==(const Throws&) const = default;
};
struct Killed {
  bool operator==(const Killed&) const = default;
};
struct Crash {
  double back = 0;  // seconds; 0: never
  bool operator==(const Crash&) const = default;
};
struct Joins {
  bool operator==(const Joins&) const = default;
};
struct Freeze {
  double seconds = 1;
  bool operator==(const Freeze&) const = default;
};
struct Slow {
  double delay_ms = 5, seconds = 1;
  bool operator==(const Slow&) const = default;
};
struct Breaks {
  Address peer{RoleKind::shard, 0};
  double seconds = 0.1;
  bool operator==(const Breaks&) const = default;
};
struct Delay {
  Address peer{RoleKind::shard, 0};
  double delay_ms = 5, seconds = 1;
  bool operator==(const Delay&) const = default;
};
struct Silence {
  Address peer{RoleKind::shard, 0};
  double seconds = 0.1;
  bool operator==(const Silence&) const = default;
};
struct Partition {
  std::vector<Address> with;
  double seconds = 1;
  bool operator==(const Partition&) const = default;
};
struct SlowLink {
  double factor = 10, seconds = 1;
  bool operator==(const SlowLink&) const = default;
};
struct ClockStops {
  double seconds = 1;
  bool operator==(const ClockStops&) const = default;
};
struct Leaves {
  bool operator==(const Leaves&) const = default;
};
using FaultKind = std::variant<Throws, Killed, Crash, Joins, Freeze, Slow, Breaks, Delay, Silence,
                               Partition, SlowLink, ClockStops, Leaves>;
/// When a fault begins: at an iteration, or at a time in seconds.
using FaultTime = std::variant<std::int64_t, double>;
struct Fault {
  Address actor{RoleKind::worker, 0};
  FaultTime at;
  double spread = 0;
  FaultKind kind;
  bool operator==(const Fault&) const = default;
};

struct Stop {
  double epochs = 10;
  std::uint64_t iterations = 0;
  double seconds = 0;
  double accuracy = 0;
  bool operator==(const Stop&) const = default;
};

}  // namespace plan

struct Plan {
  std::string name = "unnamed";
  std::uint64_t seed = 1;
  plan::DataSource data;
  std::vector<plan::Layer> model;
  plan::Loss loss = plan::Loss::softmax_cross_entropy;
  plan::Optimizer optimizer;
  plan::LrSchedule lr_schedule;
  plan::Consistency consistency;
  std::uint32_t workers = 4;
  std::uint32_t shards = 2;
  std::uint32_t batch = 64;
  std::uint32_t micro_batches = 1;
  bool prefetch = false;
  std::uint32_t lease_size = 0;
  std::vector<plan::Straggler> stragglers;
  std::vector<plan::Fault> faults;
  plan::Stop stop;
  double evaluate_every = 1;
  plan::Augment augment;
  std::string device = "cpu";
  std::string init_from;
  plan::Balance balance = plan::Balance::equal;
  plan::Pipeline pipeline;
  std::optional<plan::World> simulated;  // in virtual time; otherwise on threads of this process
  bool operator==(const Plan&) const = default;
};

/// The plan in Cap'n Proto's form, and back. Decoding checks the form and the enums; validate()
/// checks the values.
std::vector<std::uint64_t> encode(const Plan& plan);
Expected<Plan> decode_plan(std::span<const std::uint64_t> words);

/// The plan as JSON text, indented, every field present.
std::string to_json(const Plan& plan);

/// Reads a plan from text. What is not mentioned keeps its default. Errors name `source`, the line
/// where it is known, the key, what was found and what would be right; an unknown key is refused
/// with the nearest known one.
Expected<Plan> plan_from_json(const std::string& text, const std::string& source);
Expected<Plan> plan_from_toml(const std::string& text, const std::string& source);
/// By the file's extension, .toml or .json.
Expected<Plan> plan_from_file(const std::string& path);

/// A world alone, as `leeway calibrate` writes one: the fields of `host.simulated`, checked like
/// those of a plan.
Expected<plan::World> world_from_file(const std::string& path);
/// The world as TOML, a comment behind each figure.
std::string to_toml(const plan::World& world);

/// Whether the plan makes sense by itself (counts in range, no contradiction), before any data is
/// read. The error says what to change: `workers: 0 is not allowed; give --workers 1 to 65536`.
Status validate(const Plan& plan);

}  // namespace leeway
