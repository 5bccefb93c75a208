// Cap'n Proto -> Plan. The readers throw wire::Malformed; decode_plan turns it into an Error.
#include <capnp/serialize.h>
#include <kj/exception.h>

#include "plan/wire.hpp"

namespace leeway {
namespace {

using wire::read;
using wire::unknown_arm;

std::string text(capnp::Text::Reader in) {
  return wire::read_text(in);
}

plan::Csv read(plan_schema::DataSource::Csv::Reader in) {
  return {text(in.getTrain()), text(in.getTest()), text(in.getLabel()),
          in.getRegression(),  in.getTestShare(),  in.getNormalize()};
}

plan::Synthetic read(plan_schema::DataSource::Synthetic::Reader in) {
  plan::Synthetic out{in.getSamples(), in.getTestSamples(), {}};
  switch (in.which()) {
    case plan_schema::DataSource::Synthetic::LINE: {
      const auto line = in.getLine();
      out.kind = plan::Line{line.getSlope(), line.getIntercept(), line.getNoise()};
      return out;
    }
    case plan_schema::DataSource::Synthetic::CLUSTERS: {
      const auto clusters = in.getClusters();
      out.kind =
          plan::Clusters{clusters.getClasses(), clusters.getFeatures(), clusters.getSpread()};
      return out;
    }
  }
  unknown_arm("data.synthetic", in.which());
}

plan::DataSource read(plan_schema::DataSource::Reader in) {
  switch (in.which()) {
    case plan_schema::DataSource::FASHION_MNIST:
      return plan::FashionMnist{text(in.getFashionMnist().getDirectory())};
    case plan_schema::DataSource::IDX: {
      const auto idx = in.getIdx();
      return plan::Idx{text(idx.getTrainImages()), text(idx.getTrainLabels()),
                       text(idx.getTestImages()), text(idx.getTestLabels())};
    }
    case plan_schema::DataSource::CSV:
      return read(in.getCsv());
    case plan_schema::DataSource::SYNTHETIC:
      return read(in.getSynthetic());
    case plan_schema::DataSource::CUSTOM:
      return plan::CustomData{text(in.getCustom().getName())};
    case plan_schema::DataSource::TEXT: {
      const auto writing = in.getText();
      return plan::TextCorpus{text(writing.getFile()), writing.getContext(),
                              writing.getTestShare()};
    }
  }
  unknown_arm("data", in.which());
}

plan::Init read_init(plan_schema::Init in, const char* field) {
  return wire::read_enum(in, plan::Init::ones, field);
}

plan::Conv2d read(plan_schema::Layer::Conv2d::Reader in) {
  return {in.getOutputs(),
          in.getKernel(),
          in.getStride(),
          in.getPadding(),
          in.getGroups(),
          in.getBias(),
          read_init(in.getInit(), "conv2d.init")};
}

template <class Pool, class Reader>
Pool read_pool(Reader in) {
  return {in.getKernel(), in.getStride(), in.getPadding()};
}

/// Layers hold layers: depth and number are bounded over the whole model, before memory is taken.
class LayerReader {
 public:
  std::vector<plan::Layer> read_all(capnp::List<plan_schema::Layer>::Reader in) {
    wire::require(in.size() <= left_, "model has more than ", limits::kMaxBuckets, " layers");
    left_ -= in.size();
    std::vector<plan::Layer> out;
    out.reserve(in.size());
    for (const auto layer : in) out.push_back(read_one(layer));
    return out;
  }

 private:
  plan::Residual residual(plan_schema::Layer::Residual::Reader in) {
    wire::require(depth_ < limits::kMaxLayerDepth, "model has residual layers nested deeper than ",
                  limits::kMaxLayerDepth, " levels");
    ++depth_;
    plan::Residual out{read_all(in.getBody()), read_all(in.getShortcut())};
    --depth_;
    return out;
  }
  plan::Layer read_one(plan_schema::Layer::Reader in);

  std::uint32_t left_ = limits::kMaxBuckets;
  std::uint32_t depth_ = 0;
};

plan::Layer LayerReader::read_one(plan_schema::Layer::Reader in) {
  switch (in.which()) {
    case plan_schema::Layer::LINEAR: {
      const auto linear = in.getLinear();
      return plan::Linear{linear.getOutputs(), read_init(linear.getInit(), "linear.init"),
                          linear.getBias(), linear.getDeviation()};
    }
    case plan_schema::Layer::RELU:
      return plan::Relu{};
    case plan_schema::Layer::FLATTEN:
      return plan::Flatten{};
    case plan_schema::Layer::CUSTOM:
      return plan::CustomLayer{text(in.getCustom().getName()), text(in.getCustom().getArguments())};
    case plan_schema::Layer::CONV2D:
      return read(in.getConv2d());
    case plan_schema::Layer::MAX_POOL2D:
      return read_pool<plan::MaxPool2d>(in.getMaxPool2d());
    case plan_schema::Layer::AVG_POOL2D:
      return read_pool<plan::AvgPool2d>(in.getAvgPool2d());
    case plan_schema::Layer::BATCH_NORM:
      return plan::BatchNorm{in.getBatchNorm().getEpsilon(), in.getBatchNorm().getMomentum()};
    case plan_schema::Layer::LAYER_NORM:
      return plan::LayerNorm{in.getLayerNorm().getEpsilon()};
    case plan_schema::Layer::GELU:
      return plan::Gelu{};
    case plan_schema::Layer::TANH:
      return plan::Tanh{};
    case plan_schema::Layer::SIGMOID:
      return plan::Sigmoid{};
    case plan_schema::Layer::DROPOUT:
      return plan::Dropout{in.getDropout().getProbability()};
    case plan_schema::Layer::EMBEDDING: {
      const auto embedding = in.getEmbedding();
      return plan::Embedding{embedding.getVocabulary(), embedding.getFeatures(),
                             read_init(embedding.getInit(), "embedding.init"),
                             embedding.getDeviation()};
    }
    case plan_schema::Layer::POSITIONS:
      return plan::Positions{read_init(in.getPositions().getInit(), "positions.init"),
                             in.getPositions().getDeviation()};
    case plan_schema::Layer::ATTENTION:
      return plan::Attention{in.getAttention().getHeads()};
    case plan_schema::Layer::UNEMBEDDING:
      return plan::Unembedding{};
    case plan_schema::Layer::RESIDUAL:
      return residual(in.getResidual());
  }
  unknown_arm("layer", in.which());
}

template <class Kind>
Kind read(plan_schema::Optimizer::Adam::Reader in) {
  return {in.getBeta1(), in.getBeta2(), in.getEpsilon()};
}

plan::Optimizer read(plan_schema::Optimizer::Reader in) {
  plan::Optimizer out{in.getLearningRate(), in.getWeightDecay(), {}};
  switch (in.which()) {
    case plan_schema::Optimizer::SGD:
      return out;
    case plan_schema::Optimizer::MOMENTUM:
      out.kind = plan::Momentum{in.getMomentum().getFactor()};
      return out;
    case plan_schema::Optimizer::NESTEROV:
      out.kind = plan::Nesterov{in.getNesterov().getFactor()};
      return out;
    case plan_schema::Optimizer::ADAM:
      out.kind = read<plan::Adam>(in.getAdam());
      return out;
    case plan_schema::Optimizer::ADAMW:
      out.kind = read<plan::AdamW>(in.getAdamw());
      return out;
    case plan_schema::Optimizer::ADAGRAD:
      out.kind = plan::AdaGrad{in.getAdagrad().getEpsilon()};
      return out;
  }
  unknown_arm("optimizer", in.which());
}

plan::LrSchedule read(plan_schema::LrSchedule::Reader in) {
  plan::LrSchedule out{in.getWarmup(), {}};
  switch (in.which()) {
    case plan_schema::LrSchedule::CONSTANT:
      return out;
    case plan_schema::LrSchedule::STEP:
      out.kind = plan::Step{in.getStep().getEvery(), in.getStep().getFactor()};
      return out;
    case plan_schema::LrSchedule::COSINE:
      out.kind = plan::Cosine{in.getCosine().getFloor()};
      return out;
  }
  unknown_arm("lr_schedule", in.which());
}

plan::Consistency read(plan_schema::Consistency::Reader in) {
  switch (in.which()) {
    case plan_schema::Consistency::BSP:
      return plan::Bsp{};
    case plan_schema::Consistency::SSP:
      return plan::Ssp{in.getSsp().getStaleness()};
    case plan_schema::Consistency::ASP:
      return plan::Asp{};
    case plan_schema::Consistency::BACKUP:
      return plan::Backup{in.getBackup().getSpare()};
    case plan_schema::Consistency::ADAPTIVE:
      return plan::Adaptive{in.getAdaptive().getLow(), in.getAdaptive().getHigh()};
  }
  unknown_arm("consistency", in.which());
}

std::optional<plan::World> read(plan_schema::Host::Reader in) {
  switch (in.which()) {
    case plan_schema::Host::LOCAL:
      return std::nullopt;
    case plan_schema::Host::SIMULATED:
      return read(in.getSimulated());
  }
  unknown_arm("host", in.which());
}

template <class Item, class ListReader>
std::vector<Item> read_all(ListReader in, std::uint32_t limit, const char* field) {
  wire::require(in.size() <= limit, field, " has ", in.size(), " items, at most ", limit,
                " are allowed");
  std::vector<Item> out;
  out.reserve(in.size());
  for (const auto item : in) out.push_back(read(item));
  return out;
}

plan::Pipeline read(plan_schema::StagesOfModel::Reader in) {
  plan::Pipeline out{
      in.getStages(), text(in.getSchedule()), in.getChunks(), text(in.getSplit()), {}};
  const auto recompute = in.getRecompute();
  wire::require(recompute.size() <= limits::kMaxStages, "pipeline.recompute has ", recompute.size(),
                " items, at most ", limits::kMaxStages, " are allowed");
  for (const std::uint32_t stage : recompute) out.recompute.push_back(stage);
  return out;
}

Plan read(plan_schema::Plan::Reader in) {
  Plan out;
  out.name = text(in.getName());
  out.seed = in.getSeed();
  out.data = read(in.getData());
  out.model = LayerReader().read_all(in.getModel());
  out.loss = wire::read_enum(in.getLoss(), plan::Loss::sigmoid_cross_entropy, "loss");
  out.optimizer = read(in.getOptimizer());
  out.lr_schedule = read(in.getLrSchedule());
  out.consistency = read(in.getConsistency());
  out.workers = in.getWorkers();
  out.shards = in.getShards();
  out.batch = in.getBatch();
  out.micro_batches = in.getMicroBatches();
  out.prefetch = in.getPrefetch();
  out.lease_size = in.getLeaseSize();
  out.stragglers = read_all<plan::Straggler>(in.getStragglers(), limits::kMaxWorkers, "stragglers");
  out.faults = read_all<plan::Fault>(in.getFaults(), limits::kMaxWorkers, "faults");
  const auto stop = in.getStop();
  out.stop = {stop.getEpochs(), stop.getIterations(), stop.getSeconds(), stop.getAccuracy()};
  out.evaluate_every = in.getEvaluateEvery();
  out.augment = {in.getAugment().getFlip(), in.getAugment().getShift()};
  out.device = text(in.getDevice());
  out.init_from = text(in.getInitFrom());
  out.balance = wire::read_enum(in.getBalance(), plan::Balance::by_speed, "balance");
  out.pipeline = read(in.getPipeline());
  out.simulated = read(in.getHost());
  return out;
}

}  // namespace

Expected<Plan> decode_plan(std::span<const std::uint64_t> words) {
  if (words.size_bytes() > limits::kMaxHeaderBytes)
    return Error{concat("plan: has ", words.size_bytes(), " bytes, at most ",
                        limits::kMaxHeaderBytes, " are allowed")};
  capnp::ReaderOptions options = wire::reader_options(words.size());
  options.nestingLimit += 2 * static_cast<int>(limits::kMaxLayerDepth);  // a residual, and its list
  try {
    capnp::FlatArrayMessageReader reader(
        kj::arrayPtr(reinterpret_cast<const capnp::word*>(words.data()), words.size()), options);
    return read(reader.getRoot<plan_schema::Plan>());
  } catch (const wire::Malformed& malformed) {
    return Error{concat("plan: ", malformed.text)};
  } catch (const kj::Exception& exception) {
    return Error{concat("plan: malformed: ", exception.getDescription().cStr())};
  }
}

}  // namespace leeway
