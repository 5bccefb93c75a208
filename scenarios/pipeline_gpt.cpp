// pipeline-gpt: trains a small transformer in two pipeline stages to write like the King James
// Bible, character by character.
//
// Each stage has its own layers, weights and thread. A batch goes through the pipeline in
// micro-batches: while the second stage computes one, the first computes the next. By 1f1b all
// stages finish an update before the next begins, so the model learns what one worker would, except
// for the order of a few sums. The embedding's table is tied: the last stage uses the first stage's
// weights, and both contribute gradients.
//
// The loss falls from about 4.3 to 1.3. The summary shows how busy each stage was, and at the end
// the model writes a few lines. Try --schedule zb_h1, --stages 4, or --pipelines 2
// --staleness 2.
#include <leeway/leeway.hpp>
#include <leeway/monitoring/format.hpp>

#include <cmath>
#include <iostream>
#include <vector>

using namespace leeway;

namespace {

/// Prints the first and the last reported training loss.
void print_losses(const Result& result) {
  std::vector<double> losses;
  for (const Progress& progress : result.history)
    if (std::isfinite(progress.train_loss)) losses.push_back(progress.train_loss);
  if (losses.empty()) return;
  std::cout << "\nTraining loss: " << fixed(losses.front(), 2) << " at the start, "
            << fixed(losses.back(), 2) << " at the end\n";
}

}  // namespace

int main(int argc, char** argv) {
  Scenario scenario("pipeline-gpt", "Train a transformer in pipeline stages to write text.");
  scenario
      .description(
          "A GPT of four layers, four heads and width 64 predicts the next of 64 characters;\n"
          "AdamW with a cosine lr schedule. Each of two stages has half of the layers, and a\n"
          "batch goes through them in sixteen micro-batches. The text is the King James Bible\n"
          "(apt-get install bible-kjv), or that of --data FILE.")
      .data(text(64))
      .model(gpt({.layers = 4, .width = 64, .heads = 4}))
      .loss(softmax_cross_entropy())
      .optimizer(adamw(4e-3, 0.01))
      .lr_schedule(cosine(0.02))
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
  if (result.learned()) print_losses(result);
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
  std::cout << "\nGenerated text:\n\n" << *written << '\n';
  return 0;
}
