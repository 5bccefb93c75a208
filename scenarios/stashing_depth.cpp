#include "stashing_depth.hpp"

#include <leeway/core/text.hpp>
#include <leeway/monitoring/format.hpp>

#include <cmath>
#include <iterator>
#include <ranges>

namespace leeway::study {
namespace {

constexpr double kTarget = 2.9;  // test loss, which one stage reaches in a quarter of a run
const std::vector<double> kRates = {1e-3, 3e-3, 1e-2};
constexpr std::uint32_t kBlocks = 16;  // with embedding and head, 36 layers to divide
constexpr std::uint32_t kBatch = 4;
constexpr double kEvaluations = 12;  // of a run
/// Times the iterations of one stage.
constexpr double kPublished = 5.81;
const std::uint32_t kDepths[] = {1, 2, 4, 8, 16, 32};
constexpr std::uint32_t kDeepest = 32;

std::string name_of(std::uint32_t depth) {
  return concat("stashing, ", depth, depth == 1 ? " stage" : " stages");
}

double median(const TunedStudy& study, std::uint32_t depth) {
  return study.median(name_of(depth), "iterations");
}

std::string count_text(double iterations) {
  return std::isfinite(iterations) ? fixed(iterations, 0) : "never";
}

std::string factor_text(double factor) {
  return std::isfinite(factor) ? fixed(factor, 2) : "never";
}

}  // namespace

double stashing_target() {
  return kTarget;
}

double stashing_updates(const Result& result) {
  return arrival_at(result, kTarget).samples / kBatch;
}

std::vector<Subject> stashing_subjects(const Plan& base, std::uint32_t width) {
  std::vector<Subject> all;
  for (const std::uint32_t depth : std::views::reverse(kDepths))
    all.push_back({name_of(depth),
                   kRates,
                   [&base, depth, width](double) {
                     Plan plan = base;
                     plan.model = gpt({.layers = kBlocks, .width = width, .heads = 4});
                     plan.workers = plan.pipeline.stages = depth;
                     plan.pipeline.schedule = depth == 1 ? "1f1b" : "weight_stashing";
                     plan.micro_batches = 1;
                     // As many updates, of fewer samples: deep models take long.
                     plan.stop.epochs = base.stop.epochs * kBatch / base.batch;
                     plan.batch = kBatch;
                     plan.consistency = depth == 1 ? bsp() : ssp(depth - 1);
                     plan.lr_schedule = constant();
                     plan.evaluate_every = plan.stop.epochs / kEvaluations;
                     return plan;
                   },
                   {"iterations", "loss"}});
  return all;
}

std::string stashing_table(const TunedStudy& study) {
  std::string text = concat("\nUpdates to a test loss of ", kTarget,
                            " by adamw under weight stashing, median (min to max) of ", kSeeds,
                            " seeds;\n* is the edge of the rates tried\n\n", cell(8, "stages"),
                            cell(26, "updates"), cell(16, "to one stage"), cell(12, "published"),
                            cell(12, "deviation"), cell(12, "final loss"), cell(10, "rate"));
  for (const std::uint32_t depth : kDepths) {
    const double factor = median(study, depth) / median(study, 1);
    const bool is_published = depth == kDeepest, is_known = is_published && std::isfinite(factor);
    text +=
        concat('\n', cell(8, concat(depth)),
               cell(26, median_text(study.values(name_of(depth), "iterations"), count_text)),
               cell(16, factor_text(factor)), cell(12, is_published ? fixed(kPublished, 2) : ""),
               cell(12, is_known ? signed_percent(factor / kPublished - 1) : ""),
               cell(12, loss_text(study.median(name_of(depth), "loss"))),
               cell(10, study.rate_text(name_of(depth), "*")));
  }
  return text + '\n';
}

std::string stashing_verdict(const TunedStudy& study) {
  const auto shallow = study.values(name_of(1), "iterations");
  const auto deep = study.values(name_of(kDeepest), "iterations");
  if (std::isinf(middle(shallow)))
    return verdict_line(Outcome::null_result, "one stage does not reach the loss");
  const std::string factor =
      concat(kDeepest, " stages take ", factor_text(middle(deep) / middle(shallow)),
             " times as many updates as one, published ", fixed(kPublished, 2));
  if (deep.front() > shallow.back())
    return verdict_line(Outcome::reproduced, concat("depth costs updates: ", factor));
  if (deep.back() < shallow.front())
    return verdict_line(Outcome::not_reproduced, concat("depth costs no updates: ", factor));
  return verdict_line(Outcome::null_result, concat("seeds differ by more than depths: ", factor));
}

std::string stashing_seeds(const TunedStudy& study) {
  std::vector<std::string> names;
  for (const std::uint32_t depth : kDepths) names.push_back(name_of(depth));
  return study.seeds_table("Updates to the target, of each seed", names, "iterations", count_text);
}

std::vector<Chart> stashing_charts(const TunedStudy& study) {
  Chart updates{.title = concat("Weight stashing, to a test loss of ", kTarget),
                .x_label = "stages",
                .y_label = "updates, times those of one stage"};
  Chart losses{
      .title = "Weight stashing, first seed", .x_label = "virtual seconds", .y_label = "test loss"};
  Band band("here");
  for (const std::uint32_t depth : kDepths) {
    auto values = study.values(name_of(depth), "iterations");
    for (double& value : values) value /= median(study, 1);
    band.add(depth, values);
    losses.series.push_back(losses_of(name_of(depth), study.runs(name_of(depth)).front()));
  }
  updates.series.push_back({"published", {{1, 1}, {kDeepest, kPublished}}});
  band.append_to(updates);
  return {updates, losses};
}

}  // namespace leeway::study
