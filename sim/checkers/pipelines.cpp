#include "sim/checkers/pipelines.hpp"

#include <algorithm>

namespace leeway::sim {

PipelineChecker::PipelineChecker(std::shared_ptr<const Job> job)
    : Checker("stages go back on the weights that they went forward on, each micro-batch once (8)"),
      job_(std::move(job)) {
  if (!job_->stages->piped()) return;
  spec_ = job_->stages->spec();
  spec_.updates = spec_.stages;
  schedule_ = *pipeline::find_schedule(spec_.schedule);
  stages_.resize(job_->plan.workers);
}

// ---- lives ----

void PipelineChecker::join(Stage& stage, Incarnation incarnation) const {
  if (incarnation == stage.incarnation) return;
  stage.incarnation = incarnation;
  stage.whole = {};
  begin(stage, stage.start);
}

/// What came under a later Start is waiting for it. Iterations are counted on through the Starts of
/// an incarnation, so what was pushed stays pushed.
void PipelineChecker::begin(Stage& stage, std::uint64_t start) const {
  stage.start = start;
  stage.told.erase(stage.told.begin(), stage.told.lower_bound(start));
  stage.open.clear();
  stage.pulls.clear();
  stage.in_flight.clear();
  stage.latest_read = -1;
  stage.given_up.reset();
}

void PipelineChecker::on_restarted(Instant, Address actor) {
  if (!schedule_ || actor.kind != RoleKind::worker) return;
  stages_[actor.index] = {.incarnation = Incarnation(0)};  // none before it joins
}

// ---- what a stage computes ----

void PipelineChecker::on_event(Instant, Address actor, const Event& event) {
  if (!schedule_ || actor.kind != RoleKind::worker) return;
  const bool passes = event.kind == Event::Kind::forward ||
                      event.kind == Event::Kind::backward_inputs ||
                      event.kind == Event::Kind::backward_weights;
  Stage& stage = stages_[actor.index];
  // What has no weights pushes nothing, and may go back after the last push.
  if (event.kind == Event::Kind::step_finished) {
    Progress& progress = stage.open[event.iteration];
    progress.over = true;
    progress.computed = event.value > 0;
    return finish_if_done(actor, stage, event.iteration);
  }
  if (!passes) return;
  if (event.chunk >= parts() || event.chunk % job_->stages->count() != index_of(actor) ||
      event.value < 0 || event.value >= spec_.micro_batches)
    violated({actor}, "micro-batch ", event.value, " of part ", event.chunk,
             ", which is not one of this stage");
  if (stage.whole.contains(event.iteration))
    violated({actor}, name_of(event.kind), " of iteration ", event.iteration,
             ", which it has pushed");
  const Told& told = stage.told[stage.start];
  if (told.end && event.iteration >= *told.end)
    violated({actor}, name_of(event.kind), " of iteration ", event.iteration, "; the last one is ",
             told.end->value() - 1);
  if (event.kind == Event::Kind::forward)
    forward(actor, stage, event);
  else
    backward(actor, stage, event);
}

void PipelineChecker::forward(Address actor, Stage& stage, const Event& event) {
  const auto micro_batch = static_cast<MicroBatch>(event.value);
  Told& told = stage.told[stage.start];
  if (index_of(actor) > 0 && !told.mini_batches.contains(event.iteration))
    violated({actor}, "forward of iteration ", event.iteration, ", of which it was not told");
  Progress& progress = stage.open[event.iteration];
  if (!progress.ways.try_emplace({event.chunk, micro_batch}, Way{event.value2}).second)
    violated({actor}, "micro-batch ", micro_batch, " of iteration ", event.iteration,
             " goes forward through part ", event.chunk, " again");
  if (event.chunk > 0) {
    const auto input = told.activations.find({event.iteration, micro_batch, event.chunk});
    if (input == told.activations.end())
      violated({actor}, "micro-batch ", micro_batch, " of iteration ", event.iteration,
               " goes forward through part ", event.chunk, " without its activation");
    count(actor, progress, micro_batch, input->second);
    told.activations.erase(input);
  }
  check_pull(actor, stage, event.iteration, event.value2);
  ++stage.in_flight[event.value2];
  stage.latest_read = event.value2;
  check_kept(actor, stage);
}

void PipelineChecker::backward(Address actor, Stage& stage, const Event& event) {
  const auto micro_batch = static_cast<MicroBatch>(event.value);
  const bool inputs = event.kind == Event::Kind::backward_inputs;
  const auto wrong = [&](const char* why) {
    violated({actor}, name_of(event.kind), " of micro-batch ", micro_batch, " of iteration ",
             event.iteration, " through part ", event.chunk, why);
  };
  auto& ways = stage.open[event.iteration].ways;
  const auto found = ways.find({event.chunk, micro_batch});
  if (found == ways.end()) return wrong(" before its forward");
  Way& way = found->second;
  if (inputs ? way.inputs : way.weights) wrong(" again");
  if (!inputs && !way.inputs) wrong(" before that for the inputs");
  if (way.pull != event.value2)
    violated({actor}, name_of(event.kind), " of micro-batch ", micro_batch, " of iteration ",
             event.iteration, " reads the weights of pull ", event.value2,
             ", its forward has read those of ", way.pull);
  (inputs ? way.inputs : way.weights) = true;
  if (!inputs) {
    const auto kept = stage.in_flight.find(way.pull);
    if (--kept->second == 0) stage.in_flight.erase(kept);
    return;
  }
  if (event.chunk + 1 == parts()) return;  // the loss gives it
  if (stage.told[stage.start].gradients.erase({event.iteration, micro_batch, event.chunk}) == 0)
    wrong(" without the gradient of its output");
}

void PipelineChecker::check_pull(Address actor, const Stage& stage, Iteration iteration,
                                 std::int64_t pull) const {
  const auto& shards = share_of(actor).shards;
  if (shards.empty()) return;  // no weights
  if (pull < iteration.value())
    violated({actor}, "iteration ", iteration, " goes forward on weights that were asked for in ",
             pull, ", whatever the bound says of it");
  const auto found = stage.pulls.find(Iteration(pull));
  for (const ShardId shard : shards) {
    const Pull* answered = nullptr;
    if (found != stage.pulls.end()) {
      const auto at = found->second.find(shard);
      if (at != found->second.end() && at->second.answer) answered = &at->second;
    }
    if (!answered)
      violated({actor, address_of(shard)}, "iteration ", iteration, " goes forward on pull ", pull,
               ", which was not answered to incarnation ", stage.incarnation);
    const int lag = schedule_->version_lag(spec_, static_cast<int>(index_of(actor)));
    if (iteration.value() - answered->own_clock.value() > lag)
      violated({actor, address_of(shard)}, "iteration ", iteration,
               " goes forward on weights with its own updates below ", answered->own_clock,
               "; the schedule allows to lack ", lag);
  }
}

bool PipelineChecker::may_read(const Stage& stage, Iteration pull,
                               const std::map<ShardId, Pull>& at_shards) const {
  if (pull.value() < stage.latest_read || stage.whole.contains(pull)) return false;
  const auto open = stage.open.find(pull);
  if (open != stage.open.end() && open->second.over) return false;
  return std::any_of(at_shards.begin(), at_shards.end(),
                     [](const auto& at) { return at.second.answer.has_value(); });
}

void PipelineChecker::check_kept(Address actor, const Stage& stage) const {
  const int index = static_cast<int>(index_of(actor));
  auto versions = static_cast<int>(stage.in_flight.size());
  for (const auto& [pull, at_shards] : stage.pulls)
    if (!stage.in_flight.contains(pull.value()) && may_read(stage, pull, at_shards)) ++versions;
  if (versions > schedule_->weight_versions(spec_, index))
    violated({actor}, versions, " versions of its weights are kept; the schedule says ",
             schedule_->weight_versions(spec_, index));
  int activations = 0;
  for (const auto& [pull, count] : stage.in_flight) activations += count;
  if (activations > schedule_->peak_activations(spec_, index))
    violated({actor}, activations, " micro-batches in flight; the schedule says ",
             schedule_->peak_activations(spec_, index));
}

// ---- what it is told ----

void PipelineChecker::on_sent(Instant, const Letter& letter) {
  if (!schedule_ || letter.from().kind != RoleKind::worker) return;
  const Address actor = letter.from();
  Stage& stage = stages_[actor.index];
  if (letter.to() == kScheduler) {
    if (letter.as<msg::Join>()) join(stage, letter.open()->incarnation);
  } else if (letter.to().kind == RoleKind::shard) {
    const auto* pull = letter.as<msg::Pull>();
    // One that was answered is not asked for again.
    if (pull) stage.pulls[pull->iteration][ShardId(letter.to().index)] = {pull->own_clock, {}};
  } else if (letter.to().kind == RoleKind::worker) {
    if (const auto* mini_batch = letter.as<msg::MiniBatch>()) {
      tell(actor, *mini_batch);
    } else if (const auto* no_more = letter.as<msg::NoMore>()) {
      tell(actor, *no_more);
    } else if (const auto* output = letter.as<msg::Activation>()) {
      if (output->start == stage.start && !stage.whole.contains(output->iteration))
        count(actor, stage.open[output->iteration], output->micro_batch, output->tensor.shape[0]);
    } else if (const auto* given_up = letter.as<msg::GivenUp>()) {
      if (given_up->start == stage.start) stage.given_up = given_up->iteration;
    }
  }
}

void PipelineChecker::on_delivered(Instant, const Letter& letter) {
  if (!schedule_) return;
  const Address from = letter.from(), to = letter.to();
  if (to.kind == RoleKind::shard && from.kind == RoleKind::worker) {
    const auto* pushed = letter.as<msg::Push>();
    if (pushed) push(letter, *pushed);
  }
  if (to.kind != RoleKind::worker) return;
  Stage& stage = stages_[to.index];
  if (from.kind == RoleKind::worker) {
    from_stage(to, letter);
  } else if (from == kScheduler) {
    const auto* start = letter.as<msg::Start>();
    if (start && letter.open()->incarnation == stage.incarnation && start->number > stage.start)
      begin(stage, start->number);
  } else if (from.kind == RoleKind::shard) {
    const auto* weights = letter.as<msg::Weights>();
    if (!weights || letter.open()->incarnation != stage.incarnation) return;
    const auto asked = stage.pulls.find(weights->iteration);
    if (asked == stage.pulls.end()) return;
    const auto at = asked->second.find(ShardId(from.index));
    if (at == asked->second.end() || at->second.answer) return;  // of several it takes the first
    auto& answer = at->second.answer.emplace();
    for (const auto& block : weights->blocks) answer[block.block] = block.version;
    check_kept(to, stage);
  }
}

void PipelineChecker::from_stage(Address actor, const Letter& letter) {
  Stage& stage = stages_[actor.index];
  const auto wanted = [&](std::uint64_t start, Iteration iteration) {
    return start > stage.start || (start == stage.start && !stage.whole.contains(iteration));
  };
  if (const auto* mini_batch = letter.as<msg::MiniBatch>()) {
    tell(actor, *mini_batch);
  } else if (const auto* no_more = letter.as<msg::NoMore>()) {
    tell(actor, *no_more);
  } else if (const auto* input = letter.as<msg::Activation>()) {
    if (wanted(input->start, input->iteration))
      stage.told[input->start].activations[{input->iteration, input->micro_batch, input->chunk}] =
          input->tensor.shape[0];
  } else if (const auto* gradient = letter.as<msg::OutputGradient>()) {
    if (wanted(gradient->start, gradient->iteration))
      stage.told[gradient->start].gradients.insert(
          {gradient->iteration, gradient->micro_batch, gradient->chunk});
  }
}

void PipelineChecker::tell(Address actor, const msg::MiniBatch& mini_batch) {
  Stage& stage = stages_[actor.index];
  if (mini_batch.start < stage.start) return;
  Told& told = stage.told[mini_batch.start];
  const Iteration iteration = mini_batch.iteration;
  if (told.end && iteration >= *told.end)
    violated({actor}, "iteration ", iteration, " has samples; the last one is ",
             told.end->value() - 1);
  if (mini_batch.start == stage.start && stage.whole.contains(iteration)) return;
  const Positions positions(mini_batch.begin, mini_batch.end);
  const auto known = told.mini_batches.try_emplace(iteration, positions).first;
  if (known->second != positions)
    violated({actor}, "iteration ", iteration, " has positions ", positions.first, " to ",
             positions.second, ", and had ", known->second.first, " to ", known->second.second);
}

void PipelineChecker::tell(Address actor, const msg::NoMore& no_more) {
  Stage& stage = stages_[actor.index];
  if (no_more.start < stage.start) return;
  Told& told = stage.told[no_more.start];
  if (!told.end) told.end = no_more.iteration;
  if (*told.end != no_more.iteration)
    violated({actor}, "there is no iteration from ", no_more.iteration,
             " on, and there was none from ", *told.end, " on");
  const bool present = no_more.start == stage.start && !stage.open.empty();
  if (present && stage.open.rbegin()->first >= no_more.iteration)
    violated({actor}, "there is no iteration from ", no_more.iteration, " on, and ",
             stage.open.rbegin()->first, " was begun");
}

void PipelineChecker::count(Address actor, Progress& progress, MicroBatch micro_batch,
                            std::int64_t samples) const {
  const auto known = progress.samples.try_emplace(micro_batch, samples).first;
  if (known->second != samples)
    violated({actor}, "micro-batch ", micro_batch, " has ", samples, " samples, and had ",
             known->second);
}

// ---- what it pushes ----

void PipelineChecker::push(const Letter& letter, const msg::Push& push) {
  const Address actor = letter.from();
  Stage& stage = stages_[actor.index];
  // Repeats of another life, and of what is whole, say nothing new.
  if (letter.open()->incarnation != stage.incarnation || stage.whole.contains(push.iteration))
    return;
  if (stage.given_up && push.iteration >= *stage.given_up)
    violated({actor, letter.to()}, "a push of iteration ", push.iteration, "; ", *stage.given_up,
             " was given up");
  Progress& progress = stage.open[push.iteration];
  if (push.kind == msg::Push::Kind::gradient) check_versions(letter, stage, push);
  progress.pushed.insert({letter.to().index, push.bucket});
  finish_if_done(actor, stage, push.iteration);
}

std::size_t PipelineChecker::buckets_pushed(Address actor) const {
  std::size_t parts = 0;
  for (const auto& at : share_of(actor).at) parts += at.buckets.size();
  return parts;
}

void PipelineChecker::finish_if_done(Address actor, Stage& stage, Iteration iteration) {
  Told& told = stage.told[stage.start];
  const Progress& progress = stage.open[iteration];
  if (!progress.over || progress.pushed.size() < buckets_pushed(actor)) return;
  if (progress.computed) check_whole(actor, stage, iteration, progress);
  stage.whole.insert(iteration);
  stage.open.erase(iteration);
  told.mini_batches.erase(iteration);
  std::erase_if(told.activations,
                [&](const auto& one) { return std::get<Iteration>(one.first) == iteration; });
  std::erase_if(told.gradients,
                [&](const auto& one) { return std::get<Iteration>(one) == iteration; });
  // Iterations go on weights that were asked for in them, or later still. Earlier ones may be open:
  // of a connection that was made again, a later push may come first.
  const Iteration first =
      stage.open.empty() ? iteration + 1 : std::min(iteration + 1, stage.open.begin()->first);
  stage.pulls.erase(stage.pulls.begin(), stage.pulls.lower_bound(first));
}

/// Of the versions that an iteration was computed on, where they are several, a push names one.
void PipelineChecker::check_versions(const Letter& letter, const Stage& stage,
                                     const msg::Push& push) const {
  const Progress& progress = stage.open.at(push.iteration);
  const auto are_of = [&](std::int64_t pull) {
    const auto found = stage.pulls.find(Iteration(pull));
    if (found == stage.pulls.end()) return false;
    const auto at = found->second.find(ShardId(letter.to().index));
    if (at == found->second.end() || !at->second.answer) return false;
    return std::all_of(push.blocks.begin(), push.blocks.end(), [&](const auto& gradient) {
      const auto block = at->second.answer->find(gradient.block);
      return block != at->second.answer->end() && block->second == gradient.version;
    });
  };
  const bool known = std::any_of(progress.ways.begin(), progress.ways.end(),
                                 [&](const auto& way) { return are_of(way.second.pull); });
  if (!known)
    violated({letter.from(), letter.to()}, "part ", push.bucket, " of iteration ", push.iteration,
             " is of other versions than those that it was computed on");
}

void PipelineChecker::check_whole(Address actor, const Stage& stage, Iteration iteration,
                                  const Progress& progress) const {
  const Told& told = stage.told.at(stage.start);
  const auto mini_batch = told.mini_batches.find(iteration);
  if (mini_batch == told.mini_batches.end())
    violated({actor}, "iteration ", iteration, " was pushed, of which it was not told");
  const std::int64_t samples = mini_batch->second.second - mini_batch->second.first;
  for (std::uint32_t chunk = 0; chunk < static_cast<std::uint32_t>(spec_.chunks); ++chunk) {
    const ChunkIndex part = chunk * job_->stages->count() + index_of(actor);
    std::int64_t done = 0;
    for (const auto& [of, way] : progress.ways) {
      if (of.first != part) continue;
      if (!way.weights)
        violated({actor}, "iteration ", iteration, " was pushed, and micro-batch ", of.second,
                 " has not gone back through part ", part);
      const auto known = progress.samples.find(of.second);
      done += known == progress.samples.end() ? 0 : known->second;
    }
    if (done != samples)
      violated({actor}, "iteration ", iteration, " was pushed, and ", done, " of its ", samples,
               " samples went through part ", part);
  }
}

}  // namespace leeway::sim
