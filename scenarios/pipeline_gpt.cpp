// pipeline-gpt: a small transformer, cut into two stages that train it together, learns to write
// like the King James Bible, character by character.
//
// Each stage has its layers, its weights and a thread of its own. A batch goes through the pipeline
// in micro-batches: while the second stage has one, the first has the next. By 1f1b nobody begins
// an update before the one before has reached all stages, so what is learned is what one worker
// would learn, but for the order of a few sums. The table of the embedding stands at both ends: the
// last stage borrows it from the first, and each adds its part of the gradient.
//
// One sees the loss fall from 4.3 to 1.3 or so, how busy each stage was, and at the end a few lines
// that the model writes. Try --schedule zero_bubble_h1, --stages 4, or --pipelines 2 --staleness 2.
#include <leeway/monitoring/format.hpp>
#include <leeway/runtime/sample.hpp>
#include <leeway/runtime/scenario.hpp>

#include <cmath>
#include <iostream>
#include <vector>

using namespace leeway;

namespace {

/// Of the first and the last samples whose loss was reported.
void tell_loss(const Result& result) {
  std::vector<double> losses;
  for (const Progress& progress : result.history)
    if (std::isfinite(progress.train_loss)) losses.push_back(progress.train_loss);
  if (losses.empty()) return;
  std::cout << "\nTraining loss: " << fixed(losses.front(), 2) << " at first, "
            << fixed(losses.back(), 2) << " at the end\n";
}

}  // namespace

int main(int argc, char** argv) {
  Scenario scenario("pipeline-gpt",
                    "Learn to write from a text, with a transformer cut into stages.");
  scenario
      .description(
          "A GPT of four layers, four heads and width 64 sees 64 characters and tells the next; "
          "AdamW with a\n"
          "cosine schedule. Each of two stages has half of the layers, and a batch goes through "
          "them in sixteen\n"
          "micro-batches. The text is the King James Bible (apt-get install bible-kjv), or that "
          "of --data FILE.")
      .data(text(64))
      .model(gpt({.layers = 4, .width = 64, .heads = 4}))
      .loss(softmax_cross_entropy())
      .optimizer(adamw(4e-3, 0.01))
      .schedule(cosine(0.02))
      .stages(2)
      .pipeline_schedule("1f1b")
      .micro_batches(16)
      .consistency(bsp())
      .shards(1)
      .batch(32)
      .epochs(1)
      .evaluate_every(0.25)
      .seed(1);

  const Result result = run(scenario, argc, argv);
  if (!result.ok()) return result.exit_code;
  if (result.learned()) tell_loss(result);
  const std::uint32_t stages = result.plan.pipeline.stages;
  for (std::size_t i = 0; i < result.totals.workers.size(); ++i)
    std::cout << "Pipeline " << i / stages << ", stage " << i % stages << ": computed "
              << percent(result.totals.workers[i].compute.seconds() / result.seconds)
              << " of the time\n";
  if (!result.learned()) return 0;
  const auto written = sample(result, {.characters = 400});
  if (!written) {
    std::cerr << "pipeline-gpt: " << written.error().text << '\n';
    return 1;
  }
  std::cout << "\nWhat it writes:\n\n" << *written << '\n';
  return 0;
}
