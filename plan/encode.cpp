// Plan -> Cap'n Proto.
#include <capnp/message.h>
#include <capnp/serialize.h>

#include "plan/wire.hpp"

namespace leeway {
namespace {

using wire::text_of;
using wire::write;

// One overload for each arm of a variant; std::visit picks it.

void write(plan_schema::DataSource::Builder out, const plan::FashionMnist& in) {
  out.initFashionMnist().setDirectory(text_of(in.directory));
}
void write(plan_schema::DataSource::Builder out, const plan::Idx& in) {
  auto idx = out.initIdx();
  idx.setTrainImages(text_of(in.train_images));
  idx.setTrainLabels(text_of(in.train_labels));
  idx.setTestImages(text_of(in.test_images));
  idx.setTestLabels(text_of(in.test_labels));
}
void write(plan_schema::DataSource::Builder out, const plan::Csv& in) {
  auto csv = out.initCsv();
  csv.setTrain(text_of(in.train));
  csv.setTest(text_of(in.test));
  csv.setLabel(text_of(in.label));
  csv.setRegression(in.regression);
  csv.setTestShare(in.test_share);
  csv.setNormalize(in.normalize);
}
void write(plan_schema::DataSource::Synthetic::Builder out, const plan::Line& in) {
  auto line = out.initLine();
  line.setSlope(in.slope);
  line.setIntercept(in.intercept);
  line.setNoise(in.noise);
}
void write(plan_schema::DataSource::Synthetic::Builder out, const plan::Clusters& in) {
  auto clusters = out.initClusters();
  clusters.setClasses(in.classes);
  clusters.setFeatures(in.features);
  clusters.setSpread(in.spread);
}
void write(plan_schema::DataSource::Builder out, const plan::Synthetic& in) {
  auto synthetic = out.initSynthetic();
  synthetic.setSamples(in.samples);
  synthetic.setTestSamples(in.test_samples);
  std::visit([&](const auto& kind) { write(synthetic, kind); }, in.kind);
}
void write(plan_schema::DataSource::Builder out, const plan::CustomData& in) {
  out.initCustom().setName(text_of(in.name));
}
void write(plan_schema::DataSource::Builder out, const plan::TextCorpus& in) {
  auto writing = out.initText();
  writing.setFile(text_of(in.file));
  writing.setContext(in.context);
  writing.setTestShare(in.test_share);
}

void write(plan_schema::Layer::Builder out, const plan::Linear& in) {
  auto linear = out.initLinear();
  linear.setOutputs(in.outputs);
  linear.setInit(static_cast<plan_schema::Init>(in.init));
  linear.setBias(in.bias);
  linear.setDeviation(in.deviation);
}
void write(plan_schema::Layer::Builder out, const plan::Relu&) {
  out.setRelu();
}
void write(plan_schema::Layer::Builder out, const plan::Flatten&) {
  out.setFlatten();
}
void write(plan_schema::Layer::Builder out, const plan::CustomLayer& in) {
  auto custom = out.initCustom();
  custom.setName(text_of(in.name));
  custom.setArguments(text_of(in.arguments));
}

void write(plan_schema::Layer::Builder out, const plan::Conv2d& in) {
  auto conv = out.initConv2d();
  conv.setOutputs(in.outputs);
  conv.setKernel(in.kernel);
  conv.setStride(in.stride);
  conv.setPadding(in.padding);
  conv.setGroups(in.groups);
  conv.setBias(in.bias);
  conv.setInit(static_cast<plan_schema::Init>(in.init));
}
template <class Builder, class Pool>
void write_pool(Builder out, const Pool& in) {
  out.setKernel(in.kernel);
  out.setStride(in.stride);
  out.setPadding(in.padding);
}
void write(plan_schema::Layer::Builder out, const plan::MaxPool2d& in) {
  write_pool(out.initMaxPool2d(), in);
}
void write(plan_schema::Layer::Builder out, const plan::AvgPool2d& in) {
  write_pool(out.initAvgPool2d(), in);
}
void write(plan_schema::Layer::Builder out, const plan::BatchNorm& in) {
  auto norm = out.initBatchNorm();
  norm.setEpsilon(in.epsilon);
  norm.setMomentum(in.momentum);
}
void write(plan_schema::Layer::Builder out, const plan::LayerNorm& in) {
  out.initLayerNorm().setEpsilon(in.epsilon);
}
void write(plan_schema::Layer::Builder out, const plan::Gelu&) {
  out.setGelu();
}
void write(plan_schema::Layer::Builder out, const plan::Tanh&) {
  out.setTanh();
}
void write(plan_schema::Layer::Builder out, const plan::Sigmoid&) {
  out.setSigmoid();
}
void write(plan_schema::Layer::Builder out, const plan::Dropout& in) {
  out.initDropout().setProbability(in.probability);
}
void write(plan_schema::Layer::Builder out, const plan::Embedding& in) {
  auto embedding = out.initEmbedding();
  embedding.setVocabulary(in.vocabulary);
  embedding.setFeatures(in.features);
  embedding.setInit(static_cast<plan_schema::Init>(in.init));
  embedding.setDeviation(in.deviation);
}
void write(plan_schema::Layer::Builder out, const plan::Positions& in) {
  auto positions = out.initPositions();
  positions.setInit(static_cast<plan_schema::Init>(in.init));
  positions.setDeviation(in.deviation);
}
void write(plan_schema::Layer::Builder out, const plan::Attention& in) {
  out.initAttention().setHeads(in.heads);
}
void write(plan_schema::Layer::Builder out, const plan::Unembedding&) {
  out.setUnembedding();
}
void write(capnp::List<plan_schema::Layer>::Builder out, const std::vector<plan::Layer>& in);
void write(plan_schema::Layer::Builder out, const plan::Residual& in) {
  auto residual = out.initResidual();
  write(residual.initBody(static_cast<unsigned>(in.body.size())), in.body);
  write(residual.initShortcut(static_cast<unsigned>(in.shortcut.size())), in.shortcut);
}
void write(capnp::List<plan_schema::Layer>::Builder out, const std::vector<plan::Layer>& in) {
  for (unsigned i = 0; i < in.size(); ++i)
    std::visit([&](const auto& layer) { write(out[i], layer); }, in[i]);
}

void write(plan_schema::Optimizer::Adam::Builder out, double beta1, double beta2, double epsilon) {
  out.setBeta1(beta1);
  out.setBeta2(beta2);
  out.setEpsilon(epsilon);
}
void write(plan_schema::Optimizer::Builder out, const plan::Sgd&) {
  out.setSgd();
}
void write(plan_schema::Optimizer::Builder out, const plan::Momentum& in) {
  out.initMomentum().setFactor(in.factor);
}
void write(plan_schema::Optimizer::Builder out, const plan::Nesterov& in) {
  out.initNesterov().setFactor(in.factor);
}
void write(plan_schema::Optimizer::Builder out, const plan::Adam& in) {
  write(out.initAdam(), in.beta1, in.beta2, in.epsilon);
}
void write(plan_schema::Optimizer::Builder out, const plan::AdamW& in) {
  write(out.initAdamw(), in.beta1, in.beta2, in.epsilon);
}
void write(plan_schema::Optimizer::Builder out, const plan::AdaGrad& in) {
  out.initAdagrad().setEpsilon(in.epsilon);
}

void write(plan_schema::LrSchedule::Builder out, const plan::Constant&) {
  out.setConstant();
}
void write(plan_schema::LrSchedule::Builder out, const plan::Step& in) {
  auto step = out.initStep();
  step.setEvery(in.every);
  step.setFactor(in.factor);
}
void write(plan_schema::LrSchedule::Builder out, const plan::Cosine& in) {
  out.initCosine().setFloor(in.floor);
}

void write(plan_schema::Consistency::Builder out, const plan::Bsp&) {
  out.setBsp();
}
void write(plan_schema::Consistency::Builder out, const plan::Ssp& in) {
  out.initSsp().setStaleness(in.staleness);
}
void write(plan_schema::Consistency::Builder out, const plan::Asp&) {
  out.setAsp();
}
void write(plan_schema::Consistency::Builder out, const plan::Backup& in) {
  out.initBackup().setSpare(in.spare);
}
void write(plan_schema::Consistency::Builder out, const plan::Adaptive& in) {
  auto adaptive = out.initAdaptive();
  adaptive.setLow(in.low);
  adaptive.setHigh(in.high);
}

void write(plan_schema::StagesOfModel::Builder out, const plan::Pipeline& in) {
  out.setStages(in.stages);
  out.setSchedule(wire::text_of(in.schedule));
  out.setChunks(in.chunks);
  out.setSplit(wire::text_of(in.split));
  auto recompute = out.initRecompute(static_cast<unsigned>(in.recompute.size()));
  for (unsigned i = 0; i < in.recompute.size(); ++i) recompute.set(i, in.recompute[i]);
}

void write(plan_schema::Stop::Builder out, const plan::Stop& in) {
  out.setEpochs(in.epochs);
  out.setIterations(in.iterations);
  out.setSeconds(in.seconds);
  out.setAccuracy(in.accuracy);
}

template <class Builder, class... Arms>
void write_arm(Builder out, const std::variant<Arms...>& in) {
  std::visit([&](const auto& arm) { write(out, arm); }, in);
}
template <class ListBuilder, class Item>
void write_all(ListBuilder out, const std::vector<Item>& in) {
  for (unsigned i = 0; i < in.size(); ++i) write(out[i], in[i]);
}

void write(plan_schema::Plan::Builder out, const Plan& in) {
  out.setName(text_of(in.name));
  out.setSeed(in.seed);
  write_arm(out.initData(), in.data);
  write(out.initModel(static_cast<unsigned>(in.model.size())), in.model);
  out.setLoss(static_cast<plan_schema::Loss>(in.loss));
  auto optimizer = out.initOptimizer();
  optimizer.setLearningRate(in.optimizer.learning_rate);
  optimizer.setWeightDecay(in.optimizer.weight_decay);
  write_arm(optimizer, in.optimizer.kind);
  auto schedule = out.initLrSchedule();
  schedule.setWarmup(in.lr_schedule.warmup);
  write_arm(schedule, in.lr_schedule.kind);
  write_arm(out.initConsistency(), in.consistency);
  out.setWorkers(in.workers);
  out.setShards(in.shards);
  out.setBatch(in.batch);
  out.setMicroBatches(in.micro_batches);
  out.setPrefetch(in.prefetch);
  out.setLeaseSize(in.lease_size);
  write_all(out.initStragglers(static_cast<unsigned>(in.stragglers.size())), in.stragglers);
  write_all(out.initFaults(static_cast<unsigned>(in.faults.size())), in.faults);
  write(out.initStop(), in.stop);
  out.setEvaluateEvery(in.evaluate_every);
  auto augment = out.initAugment();
  augment.setFlip(in.augment.flip);
  augment.setShift(in.augment.shift);
  out.setDevice(text_of(in.device));
  out.setInitFrom(text_of(in.init_from));
  out.setBalance(static_cast<plan_schema::Balance>(in.balance));
  write(out.initPipeline(), in.pipeline);
  if (in.simulated)
    write(out.initHost().initSimulated(), *in.simulated);
  else
    out.initHost().setLocal();
}

}  // namespace

std::vector<std::uint64_t> encode(const Plan& plan) {
  capnp::MallocMessageBuilder builder;
  write(builder.initRoot<plan_schema::Plan>(), plan);
  const auto flat = capnp::messageToFlatArray(builder);
  const auto* words = reinterpret_cast<const std::uint64_t*>(flat.begin());
  return {words, words + flat.size()};
}

}  // namespace leeway
