// pipeline-gpt: a small transformer, cut into two stages that train it together, learns to write
// like the King James Bible, character by character.
//
// Each stage has its layers, its weights and a thread of its own. A batch goes through the pipeline
// in micro-batches: while the second stage has one, the first has the next. By 1f1b nobody begins
// an update before the one before has reached all stages, so what is learned is what one worker
// would learn, but for the order of a few sums. The table of the embedding stands at both ends: the
// last stage borrows it from the first, and each adds its part of the gradient.
//
// Try --schedule zero_bubble_h1, --stages 4, or --pipelines 2 --staleness 2.
#include <leeway/monitoring/format.hpp>
#include <leeway/runtime/sample.hpp>
#include <leeway/runtime/scenario.hpp>

#include <iostream>

using namespace leeway;

int main(int argc, char** argv) {
  Scenario scenario("pipeline-gpt",
                    "Learn to write from a text, with a transformer cut into stages.");
  scenario
      .description(
          "A GPT of four layers, four heads and width 128 sees 64 characters and tells the next; "
          "AdamW with a\n"
          "cosine schedule. Two stages have two of the layers each, and take turns with eight "
          "micro-batches of an\n"
          "update. The text is the King James Bible (apt-get install bible-kjv), or that of --data "
          "FILE.")
      .data(text(64))
      .model(gpt({.layers = 4, .width = 128, .heads = 4}))
      .loss(softmax_cross_entropy())
      .optimizer(adamw(2e-3, 0.01))
      .schedule(cosine(0.05))
      .stages(2)
      .pipeline_schedule("1f1b")
      .micro_batches(8)
      .consistency(bsp())
      .shards(1)
      .batch(32)
      .epochs(1)
      .evaluate_every(0.25)
      .seed(1);

  const Result result = run(scenario, argc, argv);
  if (!result.ok()) return result.exit_code;
  std::cout << '\n';
  const std::uint32_t stages = result.plan.pipeline.stages;
  for (std::size_t i = 0; i < result.totals.workers.size(); ++i)
    std::cout << "Pipeline " << i / stages << ", stage " << i % stages << ": computed "
              << percent(result.totals.workers[i].compute.seconds() / result.seconds)
              << " of the time\n";
  const auto written = sample(result, {.characters = 400});
  if (!written) {
    std::cerr << "pipeline-gpt: " << written.error().text << '\n';
    return 1;
  }
  std::cout << "\nWhat it writes:\n\n" << *written << '\n';
  return 0;
}
