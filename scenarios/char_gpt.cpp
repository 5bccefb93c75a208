// char-gpt: two workers teach a small transformer to write like the King James Bible, character by
// character.
//
// The text is that of Debian's package bible-kjv; --data FILE takes another. A tenth of it is set
// aside, and the loss there says how well the next character can be told: in bits, 1.44 times the
// number. At the end the model writes a few lines of its own; `leeway sample RUN` asks for more.
#include <leeway/runtime/sample.hpp>
#include <leeway/runtime/scenario.hpp>

#include <iostream>

using namespace leeway;

int main(int argc, char** argv) {
  Scenario scenario("char-gpt", "Learn to write from a text, with a small transformer.");
  scenario
      .description(
          "A GPT of two layers, four heads and width 128 sees 64 characters and tells the next; "
          "AdamW with a\n"
          "cosine schedule. The text is the King James Bible (apt-get install bible-kjv), or that "
          "of --data FILE.\n"
          "What it has learned is kept in the run folder: leeway sample RUN --prompt \"In the \" "
          "writes more.")
      .data(text(64))
      .model(gpt({.layers = 2, .width = 128, .heads = 4}))
      .loss(softmax_cross_entropy())
      .optimizer(adamw(2e-3, 0.01))
      .schedule(cosine(0.05))
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
  std::cout << "\nWhat it writes:\n\n" << *written << '\n';
  if (!result.folder.empty()) std::cout << "\nMore of it: leeway sample " << result.folder << '\n';
  return 0;
}
