#include "plan/plan.hpp"

#include <rapidcheck/catch.h>
#include <catch2/catch.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "core/limits.hpp"
#include "core/text.hpp"
#include "plan/old_names.hpp"
#include "tests/plan/any_plan.hpp"

using namespace leeway;
using namespace leeway::test;
using Catch::Contains;

namespace {

std::string json_error(const std::string& text) {
  const auto plan = plan_from_json(text, "plan.json");
  return plan ? "" : plan.error().text;
}
std::string toml_error(const std::string& text) {
  const auto plan = plan_from_toml(text, "plan.toml");
  return plan ? "" : plan.error().text;
}

Plan must(Expected<Plan> plan) {
  INFO((plan ? "" : plan.error().text));
  REQUIRE(plan);
  return *plan;
}

/// A plan with an arm of every union, an item in every list and a value in every enum.
Plan full_plan() {
  Plan out;
  out.model = {plan::Linear{10, plan::Init::xavier},
               plan::Relu{},
               plan::Conv2d{},
               plan::Embedding{},
               plan::Positions{},
               plan::Residual{{plan::Gelu{}}, {}}};
  out.stragglers = {{}, {1, false, plan::Pauses{}}, {0, true, plan::Trace{"slow.txt"}}};
  out.faults = {{address_of(WorkerId(1)), std::int64_t{5}, 0, plan::Killed{}}};
  out.simulated = plan::World{};
  return out;
}

}  // namespace

// ---- round trips ----

TEST_CASE("a plan survives its message form") {
  rc::prop("for any plan", [] {
    const Plan plan = any_plan();
    const auto back = decode_plan(encode(plan));
    RC_ASSERT(back.has_value());
    RC_ASSERT(*back == plan);
  });
}

TEST_CASE("a plan survives its JSON form") {
  rc::prop("for any plan", [] {
    const Plan plan = any_plan();
    const auto back = plan_from_json(to_json(plan), "plan.json");
    if (!back) RC_LOG() << back.error().text << '\n' << to_json(plan);
    RC_ASSERT(back.has_value());
    RC_ASSERT(*back == plan);
  });
}

TEST_CASE("a plan survives its TOML form") {
  rc::prop("for any plan whose integers fit into TOML's", [] {
    const Plan plan = any_plan(std::numeric_limits<std::int64_t>::max());
    const auto back = plan_from_toml(to_toml(plan), "plan.toml");
    if (!back) RC_LOG() << back.error().text << '\n' << to_toml(plan);
    RC_ASSERT(back.has_value());
    RC_ASSERT(*back == plan);
  });
}

TEST_CASE("the schema and the struct have the same defaults") {
  CHECK(must(plan_from_json("{}", "plan.json")) == Plan{});
  CHECK(must(plan_from_toml("", "plan.toml")) == Plan{});
  Plan expected;
  expected.data = plan::Csv{};
  expected.model = {plan::Linear{},    plan::CustomLayer{}, plan::Conv2d{},    plan::MaxPool2d{},
                    plan::AvgPool2d{}, plan::BatchNorm{},   plan::LayerNorm{}, plan::Gelu{},
                    plan::Tanh{},      plan::Sigmoid{},     plan::Dropout{},   plan::Embedding{},
                    plan::Residual{},  plan::Positions{},   plan::Attention{}, plan::Unembedding{}};
  expected.optimizer.kind = plan::AdamW{};
  expected.lr_schedule.kind = plan::Step{};
  expected.consistency = plan::Ssp{};
  expected.stragglers = {{},
                         {0, false, plan::Bursts{}},
                         {0, false, plan::Pareto{}},
                         {0, false, plan::Pauses{}},
                         {0, false, plan::Decay{}},
                         {0, false, plan::Sharing{}},
                         {0, false, plan::Trace{}}};
  for (const plan::FaultKind& kind : std::vector<plan::FaultKind>{
           plan::Throws{}, plan::Killed{}, plan::Crash{}, plan::Joins{}, plan::Freeze{},
           plan::Slow{}, plan::Breaks{}, plan::Delay{}, plan::Silence{}, plan::Partition{},
           plan::SlowLink{}, plan::ClockStops{}, plan::Leaves{}, plan::Competes{}})
    expected.faults.push_back({.kind = kind});
  expected.simulated = plan::World{};
  CHECK(must(plan_from_toml(R"(
    data = "csv"
    model = ["linear", "custom", "conv2d", "max_pool2d", "avg_pool2d", "batch_norm", "layer_norm",
             "gelu", "tanh", "sigmoid", "dropout", "embedding", "residual",
             "positions", "attention", "unembedding"]
    augment = {}
    optimizer.adamw = {}
    schedule.step = {}
    consistency = "ssp"
    pipeline = {}
    stragglers = [{}, "bursts", "pareto", "pauses", "decay", "sharing", "trace"]
    faults = [{}, "killed", "crash", "joins", "freeze", "slow", "breaks", "delay", "silence",
              "partition", "slow_link", "clock_stops", "leaves", "competes"]
    host = "simulated"
  )",
                            "plan.toml")) == expected);
  CHECK(must(plan_from_toml("data = 'text'", "")).data == plan::DataSource(plan::TextCorpus{}));
  CHECK(must(plan_from_toml("consistency = 'backup'", "")).consistency ==
        plan::Consistency(plan::Backup{}));
  CHECK(must(plan_from_toml("consistency = 'adaptive'", "")).consistency ==
        plan::Consistency(plan::Adaptive{}));
}

TEST_CASE("JSON lists every field and no null") {
  const std::string text = to_json(full_plan());
  for (const char* key : {"\"name\"",
                          "\"seed\"",
                          "\"fashion_mnist\"",
                          "\"directory\"",
                          "\"outputs\": 10",
                          "\"init\": \"xavier\"",
                          "\"relu\"",
                          "\"softmax_cross_entropy\"",
                          "\"weight_decay\": 0.0",
                          "\"sgd\": {}",
                          "\"constant\": {}",
                          "\"consistency\": \"bsp\"",
                          "\"micro_batches\": 1",
                          "\"killed\": {}",
                          "\"iteration\": 5",
                          "\"actor\": \"worker1\"",
                          "\"simulated\"",
                          "\"evaluate_every\": 1.0",
                          "\"shortcut\": []",
                          "\"shift\": 0",
                          "\"device\": \"cpu\"",
                          "\"init_from\": \"\"",
                          "\"stages\": 1",
                          "\"schedule\": \"1f1b\"",
                          "\"chunks\": 1",
                          "\"split\": \"\"",
                          "\"recompute\": []"})
    CHECK_THAT(text, Contains(key));
  CHECK_THAT(text, !Contains("null"));
}

TEST_CASE("a plan file with old keys is read, and a note names the new ones") {
  for (const auto& [old_name, name] : plan::kOldKeys) {
    const std::string value = name == "lr_schedule" ? "{ warmup = 2.0 }" : "640";
    const std::string text = concat('\n', old_name, " = ", value, '\n');
    const std::string text_now = concat(name, " = ", value, '\n');
    std::ostringstream notes;
    auto* const before = std::cerr.rdbuf(notes.rdbuf());
    const auto plan = plan_from_toml(text, "old.toml");
    std::cerr.rdbuf(before);
    CHECK(must(plan) == must(plan_from_toml(text_now, "new.toml")));
    CHECK_FALSE(must(plan) == Plan{});
    CHECK(notes.str() == concat("old.toml:2: \"", old_name, "\" is now called \"", name,
                                "\"; please rename it\n"));
    CHECK(toml_error(text + text_now) == concat("plan.toml:2: \"", old_name,
                                                "\" is the old name of \"", name,
                                                "\", which is given as well; keep \"", name, '"'));
  }
}

TEST_CASE("numbers that JSON lacks are written as texts") {
  Plan plan;
  plan.stop.seconds = std::numeric_limits<double>::infinity();
  plan.stop.epochs = -std::numeric_limits<double>::infinity();
  CHECK(must(plan_from_json(to_json(plan), "plan.json")) == plan);
  CHECK(must(plan_from_toml("stop = { seconds = inf, epochs = -inf }", "plan.toml")) == plan);
}

TEST_CASE("the example plan file gives the expected plan") {
  const Plan plan = must(plan_from_file(LEEWAY_SOURCE_DIR "/docs/examples/fashion-mlp.toml"));
  Plan expected;
  expected.name = "fashion-mlp";
  expected.model = {plan::Flatten{},   plan::Linear{512}, plan::Relu{},
                    plan::Linear{256}, plan::Relu{},      plan::Linear{10}};
  expected.optimizer.learning_rate = 0.05;
  expected.optimizer.kind = plan::Momentum{0.9};
  expected.consistency = plan::Ssp{3};
  expected.stragglers = {{3, false, plan::Bursts{4, 0.2, 50}}};
  CHECK(plan == expected);
  CHECK(validate(plan));
}

TEST_CASE("layers inside layers are lists of tables") {
  const Plan plan = must(plan_from_toml(R"(
    [[model]]
    conv2d = { outputs = 16, padding = 1, bias = false }
    [[model]]
    [model.residual]
    body = [{ conv2d.outputs = 32 }, { residual.body = ["tanh"] }]
    [[model.residual.shortcut]]
    conv2d = { outputs = 32, kernel = 1 }
    [[model]]
    avg_pool2d.kernel = 0
  )",
                                        "plan.toml"));
  const plan::Layer inner = plan::Residual{{plan::Tanh{}}, {}};
  const std::vector<plan::Layer> expected = {
      plan::Conv2d{.outputs = 16, .padding = 1, .bias = false},
      plan::Residual{{plan::Conv2d{.outputs = 32}, inner},
                     {plan::Conv2d{.outputs = 32, .kernel = 1}}},
      plan::AvgPool2d{.kernel = 0}};
  CHECK(plan.model == expected);
  CHECK(toml_error("model = [{ residual.body = ['relu',\n{ residual.shortcut = ['taanh'] }] }]") ==
        "plan.toml:2: model[0].residual.body[1].residual.shortcut[0]: \"taanh\" is unknown; did "
        "you mean \"tanh\"?");
}

TEST_CASE("the stages of pipelines are a table of the plan") {
  const Plan plan = must(plan_from_toml(R"(
    workers = 8
    micro_batches = 8
    [pipeline]
    stages = 4
    schedule = "interleaved"
    chunks = 2
    split = "0-1,2-3,4,5,6,7,8,9"
    recompute = [0, 2]
  )",
                                        "plan.toml"));
  CHECK(plan.pipeline == plan::Pipeline{4, "interleaved", 2, "0-1,2-3,4,5,6,7,8,9", {0, 2}});
  CHECK(must(decode_plan(encode(plan))) == plan);
  CHECK(must(plan_from_json(to_json(plan), "plan.json")) == plan);
  CHECK(toml_error("pipeline.stage = 2") ==
        "plan.toml:1: pipeline.stage: unknown key; did you mean \"stages\"?");
  CHECK(toml_error("[pipeline]\nrecompute = [0, -1]") ==
        "plan.toml:2: pipeline.recompute[1]: -1 is out of range; give a whole number from 0 to "
        "4294967295");
}

TEST_CASE("the model of docs/scenarios.md is valid") {
  std::ifstream file(LEEWAY_SOURCE_DIR "/docs/scenarios.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::string fence = "```toml\n";
  const auto begin = page.find(fence) + fence.size();
  Plan plan = must(plan_from_toml(page.substr(begin, page.find("```", begin) - begin), "docs"));
  REQUIRE(plan.model.size() == 5);
  CHECK(std::get<plan::Residual>(plan.model[1]).body.size() == 3);
  CHECK(std::get<plan::Residual>(plan.model[1]).shortcut.size() == 1);
  CHECK(validate(plan));
}

// ---- errors of the text forms ----

TEST_CASE("an unknown key is refused with its line and the nearest known key") {
  CHECK(toml_error("workers = 2\n[optimizer]\nlerning_rate = 1") ==
        "plan.toml:3: optimizer.lerning_rate: unknown key; did you mean \"learning_rate\"?");
  CHECK(json_error("{\n  \"seed\": 1,\n  \"wrokers\": 2\n}") ==
        "plan.json:3: wrokers: unknown key; did you mean \"workers\"?");
  CHECK(toml_error("consistency.spp.staleness = 3") ==
        "plan.toml:1: consistency.spp: unknown key; did you mean \"ssp\"?");
  CHECK_THAT(toml_error("[stop]\nzzzzzzzzzzzz = 1"),
             Contains("known are epochs, iterations, seconds, accuracy"));
  CHECK_THAT(toml_error("[[stragglers]]\n[[stragglers]]\nspeed = 1"),
             Contains("plan.toml:3: stragglers[1].speed: unknown key"));
}

TEST_CASE("an unknown name is refused with the nearest known one") {
  CHECK(toml_error("consistency = \"bps\"") ==
        "plan.toml:1: consistency: \"bps\" is unknown; did you mean \"bsp\"?");
  CHECK(toml_error("loss = \"softmax_crossentropy\"") ==
        "plan.toml:1: loss: \"softmax_crossentropy\" is unknown; did you mean "
        "\"softmax_cross_entropy\"?");
  CHECK_THAT(toml_error("model = [\n'flatten',\n'rellu']"),
             Contains("plan.toml:3: model[1]: \"rellu\" is unknown; did you mean \"relu\"?"));
  CHECK_THAT(toml_error("optimizer = 'learning_rate'"), Contains("is unknown"));
  CHECK_THAT(toml_error("split_data = 'dirichlet(0.1)'"),
             Contains("\"dirichlet(0.1)\" has the form of a flag; give { dirichlet = { alpha = "
                      "... } }"));
}

TEST_CASE("a value of the wrong type is refused with the right type") {
  const auto [text, expected] = GENERATE(table<std::string, std::string>({
      {"workers = 4.0",
       "workers: 4 is not a whole number; give a whole number from 0 to 4294967295"},
      {"workers = -1", "workers: -1 is out of range; give a whole number from 0 to 4294967295"},
      {"workers = 4294967296", "workers: 4294967296 is out of range"},
      {"workers = \"four\"", "workers: \"four\" is not a whole number"},
      {"workers = true", "workers: true is not a whole number"},
      {"workers = [4]", "workers: a list is not a whole number"},
      {"workers = { four = 4 }", "workers: a table is not a whole number"},
      {"workers = 1979-05-27", "workers: a date is not a whole number"},
      {"seed = -1", "seed: -1 is out of range; give a whole number from 0 to 18446744073709551615"},
      {"evaluate_every = 'often'", "evaluate_every: \"often\" is not a number; give one like 0.1"},
      {"prefetch = 1", "prefetch: 1 is neither true nor false; give one of them"},
      {"name = 7", "name: 7 is not a text; put it in quotes"},
      {"loss = 0", "loss: 0 is not a name; give one of \"softmax_cross_entropy\", "},
      {"model = 'relu'", "model: \"relu\" is not a list; give [...]"},
      {"model = [3]", "model[0]: 3 is not a table; its keys are linear, relu, flatten, custom"},
      {"stop = 'soon'", "stop: \"soon\" is not a table; its keys are epochs, "},
      {"consistency.bsp = 3", "consistency.bsp: 3 is not allowed: it has no fields; give {}"},
      {"optimizer.sgd = { x = 1 }", "optimizer.sgd: a table is not allowed"},
      {"faults = [{ at.iteration = 0.5 }]",
       "faults[0].at.iteration: 0.5 is not a whole number; give a whole number from "
       "-9223372036854775808 to 9223372036854775807"},
  }));
  CHECK_THAT(toml_error(text), Contains("plan.toml:1: " + expected));
}

TEST_CASE("nulls, duplicate keys and deep nesting in JSON are refused") {
  CHECK_THAT(json_error("{\"workers\": null}"), Contains("workers: null is not allowed"));
  CHECK_THAT(json_error("{\"seed\": 18446744073709551616}"),
             Contains("seed: 18446744073709551616 is not a whole number"));
  CHECK_THAT(json_error("[]"), Contains("plan.json:1: a list is not a table; its keys are name,"));
  CHECK(json_error("{\"seed\": 1,\n\"seed\": 2}") ==
        "plan.json:2: \"seed\" is given twice; keep one of them");
  CHECK_THAT(json_error(std::string(100'000, '[')), Contains("is nested deeper than 64 levels"));
  CHECK(must(plan_from_json("{\"seed\": 18446744073709551615}", "x")).seed == ~std::uint64_t{0});
}

TEST_CASE("the error of a number on a separate line names that line") {
  CHECK_THAT(json_error("{\"model\": [\n\"relu\",\n3\n]}"), Contains("plan.json:3: model[1]: 3"));
}

TEST_CASE("two arms of one union exclude each other") {
  CHECK(toml_error("[consistency]\nssp.staleness = 1\nasp = {}") ==
        "plan.toml:2: consistency.ssp: \"asp\" is given as well; keep one of the two");
  CHECK_THAT(json_error(R"({"optimizer": {"sgd": {}, "adam": {}}})"),
             Contains("optimizer.adam: \"sgd\" is given as well"));
}

TEST_CASE("a text that is not JSON or TOML is refused with line and column") {
  CHECK_THAT(json_error("{\n  \"seed\" 1\n}"), Contains("plan.json:2:10: ") && Contains("':'"));
  CHECK_THAT(json_error(""), Contains("plan.json:1:1: "));
  CHECK_THAT(json_error("{\"stop\": {\"seconds\": 1e999}}"), Contains("number overflow"));
  CHECK_THAT(toml_error("seed = 1\nworkers = = 2"), Contains("plan.toml:2:11: "));
  CHECK_THAT(toml_error("seed = 1\nseed = 2"), Contains("plan.toml:2:"));
}

TEST_CASE("deeply nested texts are refused") {
  std::string dots = "a";
  for (int i = 0; i < 200'000; ++i) dots += ".a";
  CHECK_THAT(toml_error("seed = 1\n" + dots + " = 1"), Contains("plan.toml:2: is nested deeper"));
  CHECK_THAT(toml_error("a" + std::string(500 * 2, '.') + " = 1"), Contains("plan.toml:1"));
  std::string nested = "a = ";
  for (int i = 0; i < 100; ++i) nested += "[";
  nested += std::string(100, ']');
  CHECK_THAT(toml_error(nested), Contains("is nested deeper"));
  CHECK_THAT(toml_error("a = " + std::string(100'000, '[')), Contains("plan.toml:1"));
}

TEST_CASE("the error of an unreadable plan file names it") {
  CHECK_THAT(plan_from_file("/nonexistent/x.toml").error().text,
             Contains("/nonexistent/x.toml: cannot be read: No such file"));
  CHECK_THAT(plan_from_file("plan.yaml").error().text, Contains("ends in .toml or .json"));
}

// ---- hostile input ----

TEST_CASE("the first unknown kind and enum value of a message are refused by name") {
  const auto good = encode(full_plan());
  std::string errors;
  for (const std::uint16_t value : {2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 18}) {
    for (std::size_t i = 0; i < good.size() * 4; ++i) {
      auto words = good;
      std::memcpy(reinterpret_cast<char*>(words.data()) + 2 * i, &value, sizeof value);
      const auto plan = decode_plan(words);
      if (!plan) errors += plan.error().text + '\n';
    }
  }
  for (const char* error : {"data is of the unknown kind 8",
                            "model[0] is of the unknown kind 18",
                            "optimizer is of the unknown kind 13",
                            "delay_policy is of the unknown kind 9",
                            "split_data is of the unknown kind 4",
                            "local_steps.outer is of the unknown kind 5",
                            "local_steps.merge has the unknown value 3",
                            "lr_schedule is of the unknown kind 6",
                            "consistency is of the unknown kind 7",
                            "loss has the unknown value 3",
                            "model[0].linear.init has the unknown value 5",
                            "model[2].conv2d.init has the unknown value 5",
                            "model[3].embedding.init has the unknown value 5",
                            "model[4].positions.init has the unknown value 5",
                            "stragglers[0] is of the unknown kind 10",
                            "stragglers[1].pauses is of the unknown kind 2",
                            "faults[0] is of the unknown kind 14",
                            "faults[0].at is of the unknown kind 2",
                            "balance has the unknown value 2",
                            "host is of the unknown kind 2",
                            "host.simulated.nodes has the unknown value 3",
                            "host.simulated.faults_from has the unknown value 2"})
    CHECK_THAT(errors, Contains(concat("plan: ", error, '\n')));
}

TEST_CASE("a truncated message is refused") {
  const auto good = encode(full_plan());
  for (std::size_t size = 0; size < good.size(); ++size)
    CHECK_FALSE(decode_plan(std::span(good).first(size)));
}

TEST_CASE("a message above the limits is refused") {
  CHECK_FALSE(decode_plan(std::vector<std::uint64_t>(limits::kMaxHeaderBytes / 8 + 1)));
  Plan plan;
  plan.stragglers.resize(limits::kMaxWorkers + 1);
  CHECK_THAT(decode_plan(encode(plan)).error().text, Contains("stragglers has 65537 entries"));
  plan = {};
  plan.pipeline.recompute.resize(limits::kMaxStages);
  CHECK(must(decode_plan(encode(plan))) == plan);
  plan.pipeline.recompute.resize(limits::kMaxStages + 1);
  CHECK(decode_plan(encode(plan)).error().text ==
        "plan: pipeline.recompute has 1025 entries, must be at most 1024");
}

TEST_CASE("the layers of a message are bounded in depth and in number") {
  const auto nested = [](std::uint32_t depth) {
    plan::Layer layer = plan::Linear{10};
    for (std::uint32_t i = 0; i < depth; ++i) layer = plan::Residual{{layer}, {}};
    Plan plan;
    plan.model = {layer};
    return plan;
  };
  const Plan deepest = nested(limits::kMaxLayerDepth);
  CHECK(must(decode_plan(encode(deepest))) == deepest);
  CHECK(must(plan_from_json(to_json(deepest), "plan.json")) == deepest);
  CHECK(must(plan_from_toml(to_toml(deepest), "plan.toml")) == deepest);
  CHECK(decode_plan(encode(nested(limits::kMaxLayerDepth + 1))).error().text ==
        "plan: model has residual layers nested deeper than 8 levels; nest them less deeply");
  CHECK_THAT(json_error(to_json(nested(limits::kMaxLayerDepth + 1))), Contains("deeper than 8"));
  CHECK_FALSE(decode_plan(encode(nested(200))));

  // Only the depth is bounded, not the number of residual layers.
  Plan row;
  row.model.resize(limits::kMaxLayerDepth + 1, plan::Residual{{plan::Linear{10}}, {}});
  CHECK(must(decode_plan(encode(row))) == row);

  // Nested layers count, too.
  Plan many;
  many.model.resize(limits::kMaxBuckets - 10);
  many.model[0] = plan::Residual{std::vector<plan::Layer>(5), std::vector<plan::Layer>(5)};
  CHECK(must(decode_plan(encode(many))) == many);
  many.model.push_back(plan::Relu{});
  CHECK(decode_plan(encode(many)).error().text ==
        "plan: model has more than 4096 layers; give at most that many");
}

TEST_CASE("random bytes decode to a plan or an error") {
  rc::prop("words", [](const std::vector<std::uint64_t>& words) { (void)decode_plan(words); });
  rc::prop("a plan with damaged bytes", [] {
    auto words = encode(any_plan());
    for (int i = *rc::gen::inRange(1, 5); i > 0; --i) {
      const auto at = *rc::gen::inRange<std::size_t>(0, words.size() * 8);
      reinterpret_cast<unsigned char*>(words.data())[at] = *rc::gen::arbitrary<std::uint8_t>();
    }
    if (const auto plan = decode_plan(words)) (void)to_json(*plan);
  });
}

TEST_CASE("random text gives a plan or an error") {
  rc::prop("bytes", [](const std::string& text) {
    (void)plan_from_json(text, "x");
    (void)plan_from_toml(text, "x");
  });
  rc::prop("a plan with damaged text", [] {
    const Plan plan = any_plan(std::numeric_limits<std::int64_t>::max());
    for (const bool json : {true, false}) {
      std::string text = json ? to_json(plan) : to_toml(plan);
      for (int i = *rc::gen::inRange(1, 5); i > 0; --i)
        text[*rc::gen::inRange<std::size_t>(0, text.size())] = *rc::gen::arbitrary<char>();
      const auto back = json ? plan_from_json(text, "x") : plan_from_toml(text, "x");
      if (back) RC_ASSERT(decode_plan(encode(*back)).has_value());
    }
  });
}
