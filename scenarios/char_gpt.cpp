// char-gpt: two workers teach a small transformer to write like the King James Bible, character by
// character.
//
// The text comes from Debian's package bible-kjv; --data FILE takes another. A tenth of it is held
// out for the test loss, the cross entropy per character (times 1.44 in bits). At the end the model
// writes a few lines; `leeway sample RUN` writes more.
#include <leeway/leeway.hpp>

#include <iostream>

using namespace leeway;

int main(int argc, char** argv) {
  Scenario scenario("char-gpt", "Train a small transformer to write text.");
  scenario
      .description(
          "A GPT of two layers, four heads and width 128 predicts the next of 64 characters;\n"
          "AdamW with a cosine lr schedule. The text is the King James Bible (apt-get install\n"
          "bible-kjv), or that of --data FILE. The run folder keeps the model: leeway sample\n"
          "RUN --prompt \"In the \" writes more.")
      .data(text(64))
      .model(gpt({.layers = 2, .width = 128, .heads = 4}))
      .loss(softmax_cross_entropy())
      .optimizer(adamw(2e-3, 0.01))
      .lr_schedule(cosine(0.05))
      .consistency(ssp(2))
      .workers(2)
      .shards(1)
      .batch(16)
      .epochs(2)
      .evaluate_every(0.5)
      .seed(1);

  const Result result = run(scenario, argc, argv);
  if (!result.ok()) return result.exit_code;
  if (!result.learned()) return 0;
  const auto written = sample(result, {.characters = 400});
  if (!written) {
    std::cerr << "char-gpt: " << written.error().text << '\n';
    return 1;
  }
  std::cout << "\nGenerated text:\n\n" << *written << '\n';
  if (!result.folder.empty()) std::cout << "\nFor more: leeway sample " << result.folder << '\n';
  return 0;
}
