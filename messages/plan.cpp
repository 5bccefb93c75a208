#include "messages/plan.hpp"

#include <capnp/serialize.h>
#include <kj/exception.h>

#include "messages/wire.hpp"
#include "plan.capnp.h"

namespace leeway {
namespace {

capnp::Text::Reader text_of(const std::string& in) {
  return capnp::Text::Reader(in.c_str(), in.size());  // whole, also beyond a zero byte
}

// --- writing: one overload for each arm of a variant; std::visit picks it ----------------------

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

void write(plan_schema::Layer::Builder out, const plan::Linear& in) {
  auto linear = out.initLinear();
  linear.setOutputs(in.outputs);
  linear.setInit(static_cast<plan_schema::Init>(in.init));
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

void write(plan_schema::Schedule::Builder out, const plan::Constant&) {
  out.setConstant();
}
void write(plan_schema::Schedule::Builder out, const plan::Step& in) {
  auto step = out.initStep();
  step.setEvery(in.every);
  step.setFactor(in.factor);
}
void write(plan_schema::Schedule::Builder out, const plan::Cosine& in) {
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

void write(plan_schema::Straggler::Builder out, const plan::Straggler& in) {
  out.setWorker(in.worker);
  out.setFactor(in.factor);
  out.setShare(in.share);
  out.setBurst(in.burst);
}
void write(plan_schema::Fault::Builder out, const plan::Fault& in) {
  out.setWorker(in.worker);
  out.setIteration(in.iteration);
  out.setKind(static_cast<plan_schema::Fault::Kind>(in.kind));
}
void write(plan_schema::Stop::Builder out, const plan::Stop& in) {
  out.setEpochs(in.epochs);
  out.setIterations(in.iterations);
  out.setSeconds(in.seconds);
  out.setAccuracy(in.accuracy);
}

/// Writes a variant, a plain value, or each item of a list.
template <class Builder, class... Arms>
void write_any(Builder out, const std::variant<Arms...>& in) {
  std::visit([&](const auto& arm) { write(out, arm); }, in);
}
template <class Builder, class Item>
void write_any(Builder out, const Item& in) {
  write(out, in);
}
template <class ListBuilder, class Item>
void write_all(ListBuilder out, const std::vector<Item>& in) {
  for (unsigned i = 0; i < in.size(); ++i) write_any(out[i], in[i]);
}

void write(plan_schema::Plan::Builder out, const Plan& in) {
  out.setName(text_of(in.name));
  out.setSeed(in.seed);
  write_any(out.initData(), in.data);
  write_all(out.initModel(static_cast<unsigned>(in.model.size())), in.model);
  out.setLoss(static_cast<plan_schema::Loss>(in.loss));
  auto optimizer = out.initOptimizer();
  optimizer.setLearningRate(in.optimizer.learning_rate);
  optimizer.setWeightDecay(in.optimizer.weight_decay);
  write_any(optimizer, in.optimizer.kind);
  auto schedule = out.initSchedule();
  schedule.setWarmup(in.schedule.warmup);
  write_any(schedule, in.schedule.kind);
  write_any(out.initConsistency(), in.consistency);
  out.setWorkers(in.workers);
  out.setShards(in.shards);
  out.setBatch(in.batch);
  out.setMicroBatches(in.micro_batches);
  out.setPrefetch(in.prefetch);
  out.setChunk(in.chunk);
  write_all(out.initStragglers(static_cast<unsigned>(in.stragglers.size())), in.stragglers);
  write_all(out.initFaults(static_cast<unsigned>(in.faults.size())), in.faults);
  write(out.initStop(), in.stop);
  out.setEvaluateEvery(in.evaluate_every);
}

// --- reading: throws wire::Malformed ------------------------------------------------------------

std::string text(capnp::Text::Reader in) {
  return std::string(in.begin(), in.size());
}

template <class Which>
[[noreturn]] void unknown_arm(const char* field, Which which) {
  throw wire::Malformed{concat(field, " is of the unknown kind ", static_cast<unsigned>(which))};
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
  }
  unknown_arm("data", in.which());
}

plan::Layer read(plan_schema::Layer::Reader in) {
  switch (in.which()) {
    case plan_schema::Layer::LINEAR: {
      const auto linear = in.getLinear();
      return plan::Linear{linear.getOutputs(),
                          wire::read_enum(linear.getInit(), plan::Init::zeros, "linear.init")};
    }
    case plan_schema::Layer::RELU:
      return plan::Relu{};
    case plan_schema::Layer::FLATTEN:
      return plan::Flatten{};
    case plan_schema::Layer::CUSTOM:
      return plan::CustomLayer{text(in.getCustom().getName()), text(in.getCustom().getArguments())};
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

plan::Schedule read(plan_schema::Schedule::Reader in) {
  plan::Schedule out{in.getWarmup(), {}};
  switch (in.which()) {
    case plan_schema::Schedule::CONSTANT:
      return out;
    case plan_schema::Schedule::STEP:
      out.kind = plan::Step{in.getStep().getEvery(), in.getStep().getFactor()};
      return out;
    case plan_schema::Schedule::COSINE:
      out.kind = plan::Cosine{in.getCosine().getFloor()};
      return out;
  }
  unknown_arm("schedule", in.which());
}

plan::Consistency read(plan_schema::Consistency::Reader in) {
  switch (in.which()) {
    case plan_schema::Consistency::BSP:
      return plan::Bsp{};
    case plan_schema::Consistency::SSP:
      return plan::Ssp{in.getSsp().getStaleness()};
    case plan_schema::Consistency::ASP:
      return plan::Asp{};
  }
  unknown_arm("consistency", in.which());
}

plan::Straggler read(plan_schema::Straggler::Reader in) {
  return {in.getWorker(), in.getFactor(), in.getShare(), in.getBurst()};
}

plan::Fault read(plan_schema::Fault::Reader in) {
  return {in.getWorker(), in.getIteration(),
          wire::read_enum(in.getKind(), plan::Fault::Kind::killed, "fault.kind")};
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

Plan read(plan_schema::Plan::Reader in) {
  Plan out;
  out.name = text(in.getName());
  out.seed = in.getSeed();
  out.data = read(in.getData());
  out.model = read_all<plan::Layer>(in.getModel(), limits::kMaxParts, "model");
  out.loss = wire::read_enum(in.getLoss(), plan::Loss::mean_squared_error, "loss");
  out.optimizer = read(in.getOptimizer());
  out.schedule = read(in.getSchedule());
  out.consistency = read(in.getConsistency());
  out.workers = in.getWorkers();
  out.shards = in.getShards();
  out.batch = in.getBatch();
  out.micro_batches = in.getMicroBatches();
  out.prefetch = in.getPrefetch();
  out.chunk = in.getChunk();
  out.stragglers = read_all<plan::Straggler>(in.getStragglers(), limits::kMaxWorkers, "stragglers");
  out.faults = read_all<plan::Fault>(in.getFaults(), limits::kMaxWorkers, "faults");
  const auto stop = in.getStop();
  out.stop = {stop.getEpochs(), stop.getIterations(), stop.getSeconds(), stop.getAccuracy()};
  out.evaluate_every = in.getEvaluateEvery();
  return out;
}

}  // namespace

Message encode(const Plan& plan) {
  capnp::MallocMessageBuilder builder;
  write(builder.initRoot<plan_schema::Plan>(), plan);
  const auto flat = capnp::messageToFlatArray(builder);
  const auto* words = reinterpret_cast<const std::uint64_t*>(flat.begin());
  return Message(std::vector<std::uint64_t>(words, words + flat.size()), {});
}

Expected<Plan> decode_plan(const Message& message) {
  const auto header = message.header();
  if (header.size_bytes() > limits::kMaxHeaderBytes)
    return Error{concat("plan: has ", header.size_bytes(), " bytes, at most ",
                        limits::kMaxHeaderBytes, " are allowed")};
  try {
    capnp::ReaderOptions options;
    // An honest plan is visited a few times at most, so pointers that share a target cannot amplify
    // it.
    options.traversalLimitInWords = 8 * header.size() + 64;
    options.nestingLimit = 16;
    capnp::FlatArrayMessageReader reader(
        kj::arrayPtr(reinterpret_cast<const capnp::word*>(header.data()), header.size()), options);
    return read(reader.getRoot<plan_schema::Plan>());
  } catch (const wire::Malformed& malformed) {
    return Error{concat("plan: ", malformed.text)};
  } catch (const kj::Exception& exception) {
    return Error{concat("plan: malformed: ", exception.getDescription().cStr())};
  }
}

}  // namespace leeway
