#include "dashboard/sentences.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/text.hpp"
#include "monitoring/format.hpp"

namespace leeway::dashboard {
namespace {

/// Also of microseconds.
std::string brief(double seconds) {
  if (seconds < 1e-3) return concat(fixed(seconds * 1e6, 0), " us");
  return seconds < 0.1 ? concat(fixed(seconds * 1e3, 1), " ms") : duration(seconds);
}

/// The interval before the newest one, which is not complete; the newest if it is the only one.
const Interval* latest_complete(const RunHistory& run) {
  const auto& all = run.intervals().all();
  if (all.empty()) return nullptr;
  return all.size() == 1 || run.end() ? &all.back() : &all[all.size() - 2];
}

/// "In the whole run, worker 0 waited longest, 3.2 s for worker 3; 12 pulls were parked."
std::string blocked_in_all(const RunHistory& run) {
  std::map<std::pair<std::size_t, blame::Cause>, double> waits;
  std::uint64_t parked = 0;
  for (const Interval& interval : run.intervals().all()) {
    for (const auto& [key, seconds] : interval.waits) waits[key] += seconds;
    parked = std::accumulate(interval.parked.begin(), interval.parked.end(), parked);
  }
  const auto longest =
      std::ranges::max_element(waits, {}, [](const auto& one) { return one.second; });
  if (longest == waits.end()) return "No worker waited in the whole run.";
  const auto& [row, cause] = longest->first;
  return concat("In the whole run, ", run.name_of_row(row), " waited longest, ",
                brief(longest->second), " for ", name_of(cause), "; ", counted(parked, "pull"),
                parked == 1 ? " was" : " were", " parked.");
}

}  // namespace

std::string lost_sentence(const RunHistory& run) {
  const double all = run.compute() + run.wait();
  if (run.causes().empty() || all <= 0) return "No worker has waited.";
  const auto longest =
      std::ranges::max_element(run.causes(), {}, [](const auto& one) { return one.second; });
  return explain(longest->first, longest->second / all);
}

std::string staleness_sentence(const RunHistory& run) {
  std::string text = run.bound() ? concat("The staleness bound is ", *run.bound(), '.')
                                 : std::string("There is no staleness bound.");
  const auto& all = run.intervals().all();
  if (all.empty()) return text;
  // Of the whole run at its end, else of the latest interval.
  std::int32_t largest = -1;
  std::size_t ahead = 0;
  std::uint64_t parked = 0;
  const auto look = [&](const Interval& interval) {
    for (std::size_t row = 0; row < interval.lead.size(); ++row) {
      parked += interval.parked[row];
      if (interval.lead[row] <= largest) continue;
      largest = interval.lead[row];
      ahead = row;
    }
  };
  if (run.end())
    std::ranges::for_each(all, look);
  else
    look(*latest_complete(run));
  if (largest < 0) return text;
  text += largest == 0
              ? concat(" All workers are level")
              : concat(" The largest lead over the slowest worker ", run.end() ? "was " : "is ",
                       largest, ", by ", run.name_of_row(ahead));
  return concat(text, "; ", counted(parked, "pull"), parked == 1 ? " was" : " were", " parked",
                run.end() ? "." : " in the latest interval.");
}

std::string blocked_sentence(const RunHistory& run) {
  if (run.end()) return blocked_in_all(run);
  const auto pulls = run.parked();
  if (pulls.empty()) return "No pull is parked now.";
  return concat(counted(pulls.size(), "worker"), pulls.size() == 1 ? " has" : " have",
                " a parked pull, the longest for ",
                brief(std::max(run.now() - pulls.front().since, 0.0)), "; the slowest is worker ",
                run.slowest(), '.');
}

std::string leads_sentence(const RunHistory& run) {
  Leads sum{};
  for (const Leads& leads : run.leads_by_row())
    for (std::size_t i = 0; i < kLeads; ++i) sum[i] += leads[i];
  const auto all = std::accumulate(sum.begin(), sum.end(), std::uint64_t{0});
  if (all == 0) return "No pull has been answered.";
  std::size_t median = 0, largest = 0;
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < kLeads; ++i) {
    if (sum[i] > 0) largest = i;
    below += sum[i];
    if (2 * below < all) median = i + 1;
  }
  return concat("Half of ", counted(all, "pull"), " led the slowest worker by at most ",
                counted(median, "iteration"), "; the largest lead is ",
                largest + 1 == kLeads ? concat(largest, " or more") : concat(largest), '.');
}

std::string alive_sentence(const RunHistory& run) {
  const Interval* latest = latest_complete(run);
  if (!latest) return "No worker has been admitted.";
  const std::uint32_t live = run.end() ? run.live_workers() : latest->alive;
  const std::string text = concat(live, " of ", counted(run.info().workers, "worker"));
  if (run.end()) return concat(text, live == 1 ? " was" : " were", " live at the end.");
  return concat(text, live == 1 ? " is" : " are", " live; ", count_of(latest->contributing),
                " contributed to updates in the last ", brief(run.intervals().width()), '.');
}

std::string loss_sentence(const RunHistory& run) {
  if (!run.info().has_losses) return "The run computes no losses.";
  std::string text;
  const auto add = [&](const char* name, const std::vector<CurvePoint>& curve) {
    if (curve.empty()) return;
    const CurvePoint& last = curve.back();
    text += concat(text.empty() ? "" : "; ", name, " loss ", fixed(last.loss, 4));
    if (run.info().has_accuracy) text += concat(", accuracy ", percent(last.accuracy));
    text += concat(" after ", counted(last.samples, "sample"));
  };
  add("test", run.test());
  add("training", run.train());
  if (text.empty()) return "No loss has been reported.";
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text + '.';
}

double samples_per_second(const RunHistory& run) {
  const auto& all = run.intervals().all();
  if (all.empty()) return 0;
  const double width = run.intervals().width();
  // At least two seconds of a real run; the newest interval is partly over.
  constexpr double kSpan = 2;
  const auto wanted = static_cast<std::size_t>(std::ceil(kSpan / width));
  const std::size_t count =
      run.end() ? all.size() : std::min(std::max<std::size_t>(wanted, 2), all.size());
  std::uint64_t samples = 0;
  for (std::size_t i = all.size() - count; i < all.size(); ++i) samples += all[i].samples;
  const double begin = width * static_cast<double>(all.size() - count);
  return static_cast<double>(samples) / std::max(run.now() - begin, 1e-9);
}

std::string throughput_sentence(const RunHistory& run) {
  std::string text =
      concat(grouped(static_cast<std::uint64_t>(samples_per_second(run))), " samples/s.");
  const Progress& latest = run.latest();
  const auto add = [&](const char* what, std::uint64_t bytes, std::uint64_t plain) {
    if (bytes == 0) return;
    const std::string codec = codec_text(bytes, plain);
    text += concat(' ', what, ": ", codec.empty() ? size_text(bytes) : codec, '.');
  };
  add("Pushes", latest.push_bytes, latest.plain_push_bytes);
  add("Pulls", latest.pull_bytes, latest.plain_pull_bytes);
  add("Between stages", latest.stage_bytes, latest.plain_stage_bytes);
  return text;
}

std::string pipeline_sentence(const RunHistory& run) {
  const std::uint32_t stages = run.info().stages;
  if (stages <= 1) return "";
  const auto ratios = run.slowness();
  std::vector<std::size_t> slow;
  for (std::size_t worker = 0; worker < ratios.size(); ++worker)
    if (ratios[worker] > kSlowStage) slow.push_back(worker);
  if (slow.empty()) return "All stages compute as fast as their peers.";
  const std::size_t worst =
      static_cast<std::size_t>(std::ranges::max_element(ratios) - ratios.begin());
  const std::string factor = fixed(ratios[worst], 1);
  if (run.info().workers == stages)
    return concat("Stage ", worst, " takes ", factor,
                  " times as long as the median stage. `leeway partition` finds a split with equal "
                  "stages.");
  if (slow.size() == 1)
    return concat("Only worker ", worst, " (stage ", worst % stages, " of pipeline ",
                  worst / stages, ") is slow, by a factor of ", factor, ": look at its machine.");
  const bool one_pipeline = std::ranges::all_of(
      slow, [&](std::size_t worker) { return worker / stages == worst / stages; });
  if (one_pipeline && run.info().workers > stages)
    return concat("Pipeline ", worst / stages, " is slow in ", counted(slow.size(), "stage"),
                  ", at most by a factor of ", factor, ": look at its host.");
  const bool one_stage = std::ranges::all_of(
      slow, [&](std::size_t worker) { return worker % stages == worst % stages; });
  if (one_stage)
    return concat("Stage ", worst % stages, " is slow in ", counted(slow.size(), "pipeline"),
                  ", at most by a factor of ", factor, ": split the model otherwise.");
  return concat("Slow stages are scattered over the pipelines, at most by a factor of ", factor,
                ": look at the data.");
}

}  // namespace leeway::dashboard
