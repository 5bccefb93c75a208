#include "tests/mutants/scenes.hpp"

#include <functional>

#include "tests/actors/tied_scene.hpp"

namespace leeway {
namespace {

using test::kFirst, test::kLast;

/// Plays it with two stages, which have pulled iteration 0; tells which property is violated.
std::string played(const std::function<std::string(test::ShardScene&)>& deeds) {
  test::ShardScene scene(test::job_of(test::tied_plan(2)));
  try {
    scene.admit_all();
    scene.pull(kFirst, 0);
    scene.pull(kLast, 0);
    const std::string wrong = deeds(scene);
    if (!wrong.empty()) return wrong;
    scene.finish();
    return "";
  } catch (const sim::Violation& violation) {
    return violation.property();
  }
}

}  // namespace

std::string halves_come_apart() {
  return played([](test::ShardScene& scene) {
    scene.push_all(kLast, 0);
    scene.push_all(kFirst, 0);
    return std::string();
  });
}

std::string stage_is_fenced() {
  return played([](test::ShardScene& scene) -> std::string {
    scene.push_all(kFirst, 0);
    const auto fenced = scene.fence(kFirst);
    const std::size_t whole = scene.share_of(kFirst).parts.size();
    if (fenced.clock == Clock(1) && scene.applied(kFirst).size() != whole)
      return "what a shard says that it applies, it applies";
    return "";
  });
}

std::string sibling_is_behind() {
  return played([](test::ShardScene& scene) {
    scene.push_all(kLast, 0);
    scene.pull(kLast, 1);
    return std::string();
  });
}

}  // namespace leeway
