#include "plan/settings.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <set>
#include <sstream>

using namespace leeway;

TEST_CASE("every setting has an explanation, and no two share a key or a flag") {
  std::set<std::string> keys, flags;
  for (const auto& setting : plan::settings()) {
    INFO(setting.key);
    CHECK_FALSE(setting.help.empty());
    CHECK(keys.insert(setting.key).second);
    CHECK((setting.flag.empty() || flags.insert(setting.flag).second));
    CHECK((setting.flag.empty() || setting.flag.starts_with("--")));
  }
}

TEST_CASE("a setting has the default and the flag of the schema") {
  const plan::Setting& epochs = plan::setting("stop.epochs");
  CHECK(epochs.default_value == "10.0");
  CHECK(epochs.flag == "--epochs");
  CHECK(plan::setting("device").default_value == "\"cpu\"");
  CHECK(plan::setting("optimizer.adam.beta2").default_value == "0.999");
  CHECK(plan::setting("faults[].at.seconds").default_value == "0.0");
  CHECK(plan::setting("loss").default_value == "\"softmax_cross_entropy\"");
  CHECK(plan::setting("model[].residual.body").default_value.empty());
  CHECK(plan::find_setting("stop.epoch") == nullptr);
}

TEST_CASE("choices are the arms of a union or the values of an enum") {
  CHECK(plan::choices("lr_schedule") == std::vector<std::string>{"constant", "step", "cosine",
                                                                 "linear", "exponential",
                                                                 "one_cycle"});
  CHECK(plan::choices("balance") == std::vector<std::string>{"equal", "by_speed"});
}

TEST_CASE("the help of a flag lists its values") {
  const auto help = [](const char* key) { return plan::help_of_flag(plan::setting(key)); };
  CHECK(help("shards") == "Number of shards, which hold the parameters");
  CHECK(help("optimizer") ==
        "How a gradient changes the weights: sgd, momentum, nesterov, adam, adamw, adagrad, "
        "sum, assign, updater, nadam, lion, delayed_nesterov, muon");
  CHECK(help("pipeline.split").ends_with(": 0-3,4-7, or none"));
}

TEST_CASE("docs/settings.md is what `leeway settings` prints") {
  std::ifstream file(LEEWAY_SOURCE_DIR "/docs/settings.md");
  std::stringstream page;
  page << file.rdbuf();
  CHECK(page.str() == plan::settings_page());
}
