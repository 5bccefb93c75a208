#include "runtime/tools/recorded_page.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/text.hpp"
#include "dashboard/recorded.hpp"
#include "monitoring/format.hpp"
#include "policies/automatic_plan.hpp"
#include "runtime/flags/values.hpp"
#include "runtime/tools/what_if.hpp"

namespace leeway {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct Variant {
  std::string name;
  WhatIfOptions options;
};

/// The worker that the others have waited for longest.
std::optional<std::uint32_t> culprit_of(const dashboard::RunHistory& history) {
  std::optional<std::uint32_t> culprit;
  double longest = 0;
  for (const auto& [cause, seconds] : history.causes()) {
    if (cause.kind != blame::Cause::Kind::worker || seconds <= longest) continue;
    culprit = static_cast<std::uint32_t>(cause.worker);
    longest = seconds;
  }
  return culprit;
}

std::vector<Variant> variants_of(const std::string& folder, const Plan& plan,
                                 const dashboard::RunHistory& history) {
  std::vector<Variant> variants;
  const auto add = [&](const std::string& name, WhatIfOptions options) {
    options.folder = folder;
    variants.push_back({name, std::move(options)});
  };
  const auto add_policy = [&](const plan::Consistency& policy) {
    if (policy != plan.consistency) add(policy_name(policy), {.consistency = policy});
  };
  if (const auto culprit = culprit_of(history))
    add(concat("worker ", *culprit, " as fast as the median"), {.without_stragglers = {*culprit}});
  add_policy(plan::Bsp{});
  add_policy(plan::Ssp{1});
  add_policy(plan::Ssp{4});
  add_policy(plan::Asp{});
  if (with_automatic_settings(plan).balance != plan::Balance::by_speed)
    add("--balance speed", {.balance = plan::Balance::by_speed});
  if (!plan.prefetch && !std::holds_alternative<plan::Bsp>(plan.consistency))
    add("--prefetch", {.prefetch = true});
  return variants;
}

/// "With ssp(4), workers would wait for 6% of all time, not 31%, and the run would be 12% faster."
std::string sentence_of(const std::string& name, const WhatIf& answer, double change) {
  return concat("With ", name, ", workers would wait for ", percent(answer.changed.waiting),
                " of all time, not ", percent(answer.as_it_ran.waiting), ", and train ",
                percent(std::abs(change)), change >= 0 ? " more" : " fewer",
                " samples/s. The simulation does not predict the loss.");
}

}  // namespace

Expected<std::unique_ptr<RecordedPage>> RecordedPage::load(const std::string& folder) {
  auto plan = plan_from_file(folder + "/plan.json");
  if (!plan) return plan.error();
  auto history = dashboard::load_history(folder, *plan, policy_name(plan->consistency));
  if (!history) return history.error();
  std::unique_ptr<RecordedPage> page(new RecordedPage);
  page->history_ = std::move(*history);
  page->folder_ = folder;
  page->plan_ = std::move(*plan);
  return page;
}

Expected<std::string> RecordedPage::predictions() const {
  std::lock_guard lock(mutex_);
  if (predictions_) return *predictions_;
  const auto variants = variants_of(folder_, plan_, *history_);
  std::vector<WhatIfOptions> options;
  for (const Variant& variant : variants) options.push_back(variant.options);
  const auto answers = what_if(options);
  if (!answers) return predictions_.emplace(answers.error());
  OrderedJson rows = OrderedJson::array();
  std::size_t best = 0;
  const auto change_of = [](const WhatIf& answer) {
    return answer.changed.samples_per_second / answer.as_it_ran.samples_per_second - 1;
  };
  const auto add_row = [&](const std::string& name, const RunTimes& times, double change) {
    rows.push_back({{"name", name},
                    {"samples_per_second", times.samples_per_second},
                    {"waiting", times.waiting},
                    {"change", change},
                    {"loss_change", nullptr}});
  };
  const WhatIf& first = answers->front();
  add_row("measured", first.measured,
          first.measured.samples_per_second / first.as_it_ran.samples_per_second - 1);
  add_row("as it ran", first.as_it_ran, 0);
  for (std::size_t i = 0; i < answers->size(); ++i) {
    const WhatIf& answer = (*answers)[i];
    if (change_of(answer) > change_of((*answers)[best])) best = i;
    add_row(variants[i].name, answer.changed, change_of(answer));
  }
  const WhatIf& answer = (*answers)[best];
  return predictions_.emplace(dashboard::text_of(OrderedJson{
      {"rows", rows}, {"sentence", sentence_of(variants[best].name, answer, change_of(answer))}}));
}

std::string RecordedPage::state(bool predicted) const {
  OrderedJson json = dashboard::state_of(*history_, {});
  json["run"]["can_predict"] = history_->info().has_events && history_->info().stages == 1;
  if (predicted)
    if (const auto found = predictions()) json["predictions"] = OrderedJson::parse(*found);
  return dashboard::text_of(json);
}

dashboard::PageSource RecordedPage::source() {
  return {.state =
              [this](std::uint64_t since) {
                dashboard::Feed::State state{.revision = history_->revision(), .has_ended = true};
                if (since == 0) state.json = this->state(false);
                return state;
              },
          .stop = {},
          .predict = [this] { return predictions(); }};
}

}  // namespace leeway
