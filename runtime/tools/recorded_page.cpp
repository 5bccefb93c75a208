#include "runtime/tools/recorded_page.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/text.hpp"
#include "dashboard/recorded.hpp"
#include "monitoring/event_file.hpp"
#include "monitoring/format.hpp"
#include "runtime/flags/values.hpp"
#include "runtime/tools/remedies.hpp"

namespace leeway {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// Operations in an answer.
constexpr std::size_t kMostOperations = 20'000;

/// "With ssp(4), workers would wait for 6% of all time, not 31%, and the run would be 12% faster."
std::string sentence_of(const Remedy& remedy) {
  const WhatIf& answer = remedy.answer;
  return concat("With ", remedy.name, ", workers would wait for ", percent(answer.changed.waiting),
                " of all time, not ", percent(answer.as_it_ran.waiting), ", and train ",
                percent(std::abs(remedy.gain())), remedy.gain() >= 0 ? " more" : " fewer",
                " samples/s. `leeway blame --remedies --gradients` also predicts the loss.");
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
  const auto remedies = simulate_remedies(folder_, plan_, *history_);
  if (!remedies) return remedies.error();  // not kept: a viewer may try again
  if (remedies->empty()) return Error{"a single worker or pipeline waits for no other"};
  OrderedJson rows = OrderedJson::array();
  const auto add_row = [&](const std::string& name, const RunTimes& times, double change) {
    rows.push_back({{"name", name},
                    {"samples_per_second", times.samples_per_second},
                    {"waiting", times.waiting},
                    {"change", change},
                    {"loss_change", nullptr}});
  };
  const WhatIf& first = remedies->front().answer;
  add_row("measured", first.measured,
          first.measured.samples_per_second / first.as_it_ran.samples_per_second - 1);
  add_row("as it ran", first.as_it_ran, 0);
  for (const Remedy& remedy : *remedies) add_row(remedy.name, remedy.answer.changed, remedy.gain());
  return predictions_.emplace(dashboard::text_of(
      OrderedJson{{"rows", rows}, {"sentence", sentence_of(best_of(*remedies))}}));
}

Expected<std::string> RecordedPage::operations(const dashboard::OperationsRequest& wanted) const {
  const auto path = events_path(folder_);
  if (!path) return path.error();
  const auto instant = [](double seconds) {
    return Instant{static_cast<std::int64_t>(std::clamp(seconds, 0.0, 9e9) * 1e9)};
  };
  struct Enough {};
  OrderedJson operations = OrderedJson::array();
  const auto add = [&](const EventRecord& record) {
    const auto* computed = record.event.as<event::StageComputed>();
    if (!computed || computed->computed.ns == 0) return;
    const std::uint32_t worker = computed->worker.value();
    if (worker < wanted.first || worker - wanted.first >= wanted.workers) return;
    operations.push_back(dashboard::operation_of(*computed, (record.at - Instant()).seconds()));
    if (operations.size() == kMostOperations) throw Enough();
  };
  try {
    const auto read = read_events(*path, add, instant(wanted.from), instant(wanted.until));
    if (!read) return read.error();
  } catch (const Enough&) {
  }
  return dashboard::text_of(operations);
}

std::string RecordedPage::state(bool predicted) const {
  OrderedJson json = dashboard::state_of(*history_, {});
  json["run"]["can_predict"] = history_->info().has_events;
  json["run"]["keeps_operations"] = history_->info().has_events && history_->info().stages > 1;
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
          .predict = [this] { return predictions(); },
          .operations = [this](const auto& wanted) { return operations(wanted); }};
}

}  // namespace leeway
