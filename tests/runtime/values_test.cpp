// Flags whose values are not plain numbers.
#include <catch2/catch.hpp>

#include "runtime/flags/optimizer_text.hpp"
#include "runtime/flags/values.hpp"

namespace leeway {

TEST_CASE("--staleness takes a number, bsp, asp, a range or backup(N)") {
  CHECK(std::get<plan::Ssp>(*parse_staleness("3")).staleness == 3);
  CHECK(std::holds_alternative<plan::Bsp>(*parse_staleness("bsp")));
  CHECK(std::holds_alternative<plan::Asp>(*parse_staleness("asp")));
  CHECK(std::get<plan::Backup>(*parse_staleness("backup(2)")).spare == 2);
  CHECK(*parse_staleness("quorum(3)") == plan::Consistency(plan::Quorum{3, 0}));
  CHECK(*parse_staleness("quorum(3,20ms)") == plan::Consistency(plan::Quorum{3, 20}));
  CHECK(*parse_staleness("quorum(3,mad)") ==
        plan::Consistency(plan::Quorum{.count = 3, .mad = true}));
  for (const std::string wrong : {"three", "", "-1", "3.5", "99999999999", "3x", "backup",
                                  "backup()", "backup(", "backup(1", "backup(-1)", "backup(1)x"}) {
    INFO(wrong);
    const auto refused = parse_staleness(wrong);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().text.find("give --staleness 3") != std::string::npos);
  }
  CHECK(*parse_staleness("adaptive(2,12)") == plan::Consistency(plan::Adaptive{2, 12}));
  for (const std::string wrong :
       {"adaptive", "adaptive()", "adaptive(1)", "adaptive(1,8", "adaptive(1,2,3)", "adaptive(a,8)",
        "adaptive(-1,8)", "adaptive(1,)"}) {
    INFO(wrong);
    const auto refused = parse_staleness(wrong);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().text.find("\"adaptive(1,8)\"") != std::string::npos);
  }
}

TEST_CASE("a malformed quorum is refused with an example") {
  for (const std::string wrong : {"quorum", "quorum()", "quorum(", "quorum(3", "quorum(-1)",
                                  "quorum(3,20)", "quorum(3,)", "quorum(3,20ms)x"}) {
    INFO(wrong);
    const auto refused = parse_staleness(wrong);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().text.find("\"quorum(3,20ms)\"") != std::string::npos);
  }
}

TEST_CASE("--merge takes mean, by_samples or radial_directional") {
  CHECK(*parse_merge("mean") == plan::Merge::mean);
  CHECK(*parse_merge("by_samples") == plan::Merge::by_samples);
  for (const auto merge :
       {plan::Merge::mean, plan::Merge::by_samples, plan::Merge::radial_directional})
    CHECK(*parse_merge(text_of(merge)) == merge);
  CHECK(parse_merge("sum").error().text ==
        "--merge: \"sum\" is not known; give --merge mean, by_samples or radial_directional");
}

TEST_CASE("text_of gives settings in the syntax of their flags") {
  for (const std::string text :
       {"0", "3", "bsp", "asp", "backup(2)", "adaptive(2,12)", "quorum(3)", "quorum(3,20ms)",
        "quorum(3,0.5ms)", "quorum(3,mad)", "auto", "auto(32)"})
    CHECK(text_of(*parse_staleness(text)) == text);
  for (const std::string text : {"equal", "speed"}) CHECK(text_of(*parse_balance(text)) == text);
  for (const std::string text : {"none", "flip", "shift=2", "flip,shift=2"})
    CHECK(text_of(*parse_augment(text)) == text);
  for (const std::string text :
       {"sgd", "momentum", "nesterov", "adam", "adamw", "adagrad", "nadam", "lion",
        "delayed_nesterov", "muon", "sum", "assign", "updater(clip)", "momentum(0.99)",
        "adamw(0.9,0.95)", "delayed_nesterov(0.5,4)", "muon(0.9)"})
    CHECK(text_of(*parse_optimizer(text)) == text);
  for (const std::string text :
       {"average", "momentum(0.5)", "nesterov(0.9)", "delayed_nesterov(0.9,4)", "adam(0.8,0.99)"})
    CHECK(text_of(*parse_outer_optimizer(text)) == text);
  for (const std::string wrong : {"", "sgd", "nesterov()", "delayed_nesterov(0.9,0)",
                                  "delayed_nesterov(0.9,2.5)", "average(1)"})
    CHECK_FALSE(parse_outer_optimizer(wrong).has_value());
}

TEST_CASE("--checkpoint-every takes seconds, epochs, iterations or none") {
  using Every = plan::CheckpointsKind;
  CHECK(*parse_checkpoint_interval("30s") == Every(plan::EverySeconds{30}));
  CHECK(*parse_checkpoint_interval("0.5s") == Every(plan::EverySeconds{0.5}));
  CHECK(*parse_checkpoint_interval("10min") == Every(plan::EverySeconds{600}));
  CHECK(*parse_checkpoint_interval("2h") == Every(plan::EverySeconds{7200}));
  CHECK(*parse_checkpoint_interval("1.5ep") == Every(plan::EveryEpochs{1.5}));
  CHECK(*parse_checkpoint_interval("500it") == Every(plan::EveryIterations{500}));
  CHECK(*parse_checkpoint_interval("none") == Every(plan::Never{}));
  for (const std::string text : {"30s", "2ep", "500it", "none"})
    CHECK(text_of(*parse_checkpoint_interval(text)) == text);
  for (const std::string wrong : {"", "30", "s", "0s", "-1s", "1.5it", "30 s", "1e3s", "30sec",
                                  "inf", "nans", "1..5s", "99999999999999999999it"}) {
    INFO(wrong);
    const auto refused = parse_checkpoint_interval(wrong);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().text.find("give 30s, 10min") != std::string::npos);
  }
}

TEST_CASE("--balance takes equal or speed") {
  CHECK(*parse_balance("equal") == plan::Balance::equal);
  CHECK(*parse_balance("speed") == plan::Balance::by_speed);
  const auto refused = parse_balance("by_speed");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().text.find("give --balance equal or speed") != std::string::npos);
}

TEST_CASE("--augment takes flip, shift=N, both or none") {
  const auto augment = [](const std::string& text) {
    const auto parsed = parse_augment(text);
    INFO(text);
    REQUIRE(parsed);
    return *parsed;
  };
  CHECK(augment("flip") == plan::Augment{true, 0});
  CHECK(augment("shift=3") == plan::Augment{false, 3});
  CHECK(augment("flip,shift=2") == plan::Augment{true, 2});
  CHECK(augment("shift=2,flip") == plan::Augment{true, 2});
  CHECK(augment("none") == plan::Augment{});
  for (const std::string wrong : {"", "turn", "flip,", "shift", "shift=", "shift=-1", "shift=2px",
                                  "flip,none", "flip shift=2", "flip=1"}) {
    INFO(wrong);
    const auto refused = parse_augment(wrong);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().text.find("give --augment flip,shift=2") != std::string::npos);
  }
}

TEST_CASE("--optimizer takes numbers in brackets, and suggests the nearest name") {
  CHECK(std::holds_alternative<plan::AdamW>(parse_optimizer("adamw")->kind));
  const auto refused = parse_optimizer("momentun");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().text.find("did you mean \"momentum\"?") != std::string::npos);
  CHECK(std::get<plan::Momentum>(parse_optimizer("momentum(0.99)")->kind).factor == 0.99);
  CHECK(parse_optimizer("adam(0.5)")->learning_rate == parse_optimizer("adam")->learning_rate);
  CHECK(std::get<plan::Adam>(parse_optimizer("adam(0.5)")->kind) == plan::Adam{.beta1 = 0.5});
  CHECK(parse_optimizer("sgd(0.1)").error().text == "--optimizer: sgd takes no numbers; give sgd");
  CHECK(parse_optimizer("lion(0.9,0.99,1)").error().text ==
        "--optimizer: \"lion(0.9,0.99,1)\" does not have the numbers of lion; give "
        "lion(0.9,0.99)");
  for (const std::string unnamed : {"updater", "updater()", "updater(clip"})
    CHECK(parse_optimizer(unnamed).error().text.find("updater(NAME)") != std::string::npos);
}

TEST_CASE("--slow replaces the stragglers of the workers that it names") {
  using List = std::vector<plan::Straggler>;
  const plan::Straggler planned{1, false, plan::Decay{}}, planned_all{0, true, plan::Pareto{}};
  const plan::Straggler slow{1, false, plan::ConstantFactor{4}},
      shared{2, false, plan::Sharing{3, 100, 300}}, all{0, true, plan::ConstantFactor{2}};
  const auto after = [&](const std::vector<std::string>& given) {
    List stragglers = {planned, planned_all};
    const Status status = apply_slow(given, stragglers);
    INFO((status ? "" : status.error().text));
    REQUIRE(status);
    return stragglers;
  };
  CHECK(after({}) == List{planned, planned_all});
  CHECK(after({"none"}) == List{});
  CHECK(after({"1:4x"}) == List{planned_all, slow});
  CHECK(after({"2:sharing(3x,100/300)"}) == List{planned, planned_all, shared});
  CHECK(after({"1:4x", "1:4x"}) == List{planned_all, slow, slow});
  CHECK(after({"1:4x,2:sharing(3x,100/300)", "all:2x"}) == List{slow, shared, all});
  CHECK(after({"none,1:4x"}) == List{slow});
  List rack = {{0, false, plan::Decay{}, {1, 2, 3}}, {2, false, plan::Decay{}}};
  CHECK(apply_slow({"2:4x"}, rack));
  CHECK(rack == List{{0, false, plan::Decay{}, {1, 3}}, {2, false, plan::ConstantFactor{4}}});
  CHECK(apply_slow({"1+3:4x"}, rack));
  CHECK(rack.size() == 2);
  CHECK(rack[1] == plan::Straggler{0, false, plan::ConstantFactor{4}, {1, 3}});
}

TEST_CASE("--slow refuses an invalid straggler anywhere in the list") {
  for (const std::string wrong :
       {"", "1:4x,", ",1:4x", "1:4x 2:4x", "1:4x,x", "1:pareto(1.5,2:4x"}) {
    INFO(wrong);
    std::vector<plan::Straggler> stragglers;
    const auto refused = apply_slow({wrong}, stragglers);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().text.find("; write 3:") != std::string::npos);
  }
}

}  // namespace leeway
