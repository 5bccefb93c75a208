#include "sim/checkers/pipelines.hpp"

#include <algorithm>
#include <utility>

namespace leeway::sim {

PipelineChecker::PipelineChecker(std::shared_ptr<const Job> job)
    : Checker("backward uses the weights of its forward, each micro-batch once (8)"),
      job_(std::move(job)) {
  if (!job_->stages->piped()) return;
  spec_ = job_->stages->spec();
  spec_.updates = spec_.stages;
  schedule_ = *pipeline::find_schedule(spec_.schedule);
  stages_.resize(job_->plan.workers);
}

// ---- sessions ----

/// Keeps messages of later sessions.
void PipelineChecker::begin(Stage& stage, Session session) {
  stage = {.nonce = stage.nonce, .session = session, .received = std::move(stage.received)};
  stage.received.erase(stage.received.begin(), stage.received.lower_bound(session));
}

void PipelineChecker::on_restarted(Instant, Address actor) {
  if (!schedule_ || actor.kind != RoleKind::worker) return;
  stages_[actor.index] = {};  // it has not joined
}

// ---- operations ----

void PipelineChecker::on_event(Instant, Address actor, const Event& event) {
  if (!schedule_ || actor.kind != RoleKind::worker) return;
  if (const auto* finished = event.as<event::StepFinished>()) {
    // A stage without weights pushes nothing and may run backward after the last push.
    Stage& stage = stages_[actor.index];
    Progress& progress = stage.open[finished->iteration];
    progress.over = true;
    progress.computed = finished->samples > 0;
    finish_if_done(actor, stage, finished->iteration);
  } else if (const auto* computed = event.as<event::StageComputed>()) {
    check_operation(actor, *computed);
  }
}

void PipelineChecker::check_operation(Address actor, const Computed& computed) {
  Stage& stage = stages_[actor.index];
  const auto micro_batches = static_cast<std::uint32_t>(spec_.micro_batches);
  if (computed.chunk >= chunks() || stage_of(computed.chunk) != index_of(actor) ||
      computed.micro_batch >= micro_batches)
    violated({actor}, "micro-batch ", computed.micro_batch, " of chunk ", computed.chunk,
             " does not belong to this stage");
  if (stage.whole.contains(computed.iteration))
    violated({actor}, name_of(computed.operation), " of iteration ", computed.iteration,
             ", which the stage has pushed");
  const Received& received = stage.received[stage.session];
  if (received.end && computed.iteration >= *received.end)
    violated({actor}, name_of(computed.operation), " of iteration ", computed.iteration,
             "; the last one is ", received.end->value() - 1);
  if (computed.operation == Operation::forward)
    forward(actor, stage, computed);
  else
    backward(actor, stage, computed);
}

void PipelineChecker::forward(Address actor, Stage& stage, const Computed& computed) {
  const Iteration iteration = computed.iteration, pull = computed.pull;
  const std::uint32_t chunk = computed.chunk, micro_batch = computed.micro_batch;
  Received& received = stage.received[stage.session];
  if (index_of(actor) > 0 && !received.mini_batches.contains(iteration))
    violated({actor}, "forward of iteration ", iteration, ", which was not announced");
  Progress& progress = stage.open[iteration];
  if (!progress.passes.try_emplace({chunk, micro_batch}, Pass{pull}).second)
    violated({actor}, "forward of micro-batch ", micro_batch, " of iteration ", iteration,
             " through chunk ", chunk, " again");
  if (chunk > 0 && stage_of(chunk - 1) == index_of(actor)) {
    // The previous chunk is on the same stage, which sends itself no message.
    if (!progress.passes.contains({chunk - 1, micro_batch}))
      violated({actor}, "forward of micro-batch ", micro_batch, " of iteration ", iteration,
               " through chunk ", chunk, " before chunk ", chunk - 1);
  } else if (chunk > 0) {
    const auto input = received.activations.find({iteration, micro_batch, chunk});
    if (input == received.activations.end())
      violated({actor}, "forward of micro-batch ", micro_batch, " of iteration ", iteration,
               " through chunk ", chunk, " without its activation");
    count(actor, progress, micro_batch, input->second);
    received.activations.erase(input);
  }
  check_pull(actor, stage, iteration, pull);
  ++stage.in_flight[pull];
  stage.latest_read = pull;
  check_kept(actor, stage);
}

void PipelineChecker::backward(Address actor, Stage& stage, const Computed& computed) {
  const Iteration iteration = computed.iteration, pull = computed.pull;
  const std::uint32_t chunk = computed.chunk, micro_batch = computed.micro_batch;
  const bool inputs = computed.operation == Operation::backward_inputs;
  const auto violated_by = [&](const char* reason) {
    violated({actor}, name_of(computed.operation), " of micro-batch ", computed.micro_batch,
             " of iteration ", computed.iteration, " through chunk ", computed.chunk, reason);
  };
  auto& passes = stage.open[iteration].passes;
  const auto found = passes.find({chunk, micro_batch});
  if (found == passes.end()) return violated_by(" before its forward");
  Pass& pass = found->second;
  if (inputs ? pass.inputs : pass.weights) violated_by(" again");
  if (!inputs && !pass.inputs) violated_by(" before backward inputs");
  if (pass.pull != pull)
    violated({actor}, name_of(computed.operation), " of micro-batch ", micro_batch,
             " of iteration ", iteration, " reads the weights of pull ", pull,
             ", its forward read those of ", pass.pull);
  (inputs ? pass.inputs : pass.weights) = true;
  if (!inputs) {
    const auto kept = stage.in_flight.find(pass.pull);
    if (--kept->second == 0) stage.in_flight.erase(kept);
    return;
  }
  if (chunk + 1 == chunks()) return;  // the loss gives the gradient
  if (stage_of(chunk + 1) == index_of(actor)) {
    const auto later = passes.find({chunk + 1, micro_batch});
    if (later == passes.end() || !later->second.inputs)
      violated_by(" before that of the next chunk");
    return;
  }
  if (stage.received[stage.session].gradients.erase({iteration, micro_batch, chunk}) == 0)
    violated_by(" without the gradient of its output");
}

void PipelineChecker::check_pull(Address actor, const Stage& stage, Iteration iteration,
                                 Iteration pull) const {
  const auto& shards = share_of(actor).shards;
  if (shards.empty()) return;  // no weights
  if (pull < iteration)
    violated({actor}, "forward of iteration ", iteration, " on the weights of the earlier pull ",
             pull);
  const auto found = stage.pulls.find(pull);
  for (const ShardId shard : shards) {
    const Pull* answered = nullptr;
    if (found != stage.pulls.end()) {
      const auto at = found->second.find(shard);
      if (at != found->second.end() && at->second.answer) answered = &at->second;
    }
    if (!answered)
      violated({actor, address_of(shard)}, "forward of iteration ", iteration, " on pull ", pull,
               ", which was not answered in session ", stage.session);
    const int lag = schedule_->version_lag(spec_, static_cast<int>(index_of(actor)));
    if (iteration.value() - answered->own_clock.value() > lag)
      violated({actor, address_of(shard)}, "forward of iteration ", iteration,
               " on weights with its own updates below ", answered->own_clock,
               "; the schedule allows a version lag of ", lag);
  }
}

bool PipelineChecker::may_read(const Stage& stage, Iteration pull,
                               const std::map<ShardId, Pull>& at_shards) const {
  if ((stage.latest_read && pull < *stage.latest_read) || stage.whole.contains(pull)) return false;
  const auto open = stage.open.find(pull);
  if (open != stage.open.end() && open->second.over) return false;
  return std::any_of(at_shards.begin(), at_shards.end(),
                     [](const auto& at) { return at.second.answer.has_value(); });
}

void PipelineChecker::check_kept(Address actor, const Stage& stage) const {
  const int index = static_cast<int>(index_of(actor));
  auto versions = static_cast<int>(stage.in_flight.size());
  for (const auto& [pull, at_shards] : stage.pulls)
    if (!stage.in_flight.contains(pull) && may_read(stage, pull, at_shards)) ++versions;
  if (versions > schedule_->weight_versions(spec_, index))
    violated({actor}, versions, " versions of its weights are kept; the schedule allows ",
             schedule_->weight_versions(spec_, index));
  int activations = 0;
  for (const auto& [pull, count] : stage.in_flight) activations += count;
  if (activations > schedule_->peak_activations(spec_, index))
    violated({actor}, activations, " micro-batches in flight; the schedule allows ",
             schedule_->peak_activations(spec_, index));
}

// ---- messages ----

void PipelineChecker::on_sent(Instant, const Letter& letter) {
  if (!schedule_ || letter.from().kind != RoleKind::worker) return;
  const Address actor = letter.from();
  Stage& stage = stages_[actor.index];
  if (letter.to() == kScheduler) {
    const auto* join = letter.as<msg::Join>();
    if (join && join->nonce > std::exchange(stage.nonce, join->nonce)) {
      begin(stage, stage.session);
      stage.joins = true;
    }
  } else if (letter.to().kind == RoleKind::shard) {
    const auto* pull = letter.as<msg::Pull>();
    // A pull is not repeated after its answer.
    if (pull) stage.pulls[pull->iteration][ShardId(letter.to().index)] = {pull->own_clock, {}};
  } else if (letter.to().kind == RoleKind::worker) {
    if (const auto* mini_batch = letter.as<msg::MiniBatch>()) {
      receive(actor, letter.open()->session, *mini_batch);
    } else if (const auto* no_more = letter.as<msg::NoMore>()) {
      receive(actor, letter.open()->session, *no_more);
    } else if (const auto* output = letter.as<msg::Activation>()) {
      if (letter.open()->session == stage.session && !stage.whole.contains(output->iteration))
        count(actor, stage.open[output->iteration], output->micro_batch, output->tensor.shape[0]);
    } else if (const auto* given_up = letter.as<msg::GivenUp>()) {
      if (letter.open()->session == stage.session) stage.given_up = given_up->iteration;
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
    const Session session = letter.open()->session;
    if (start && start->nonce == stage.nonce && session > stage.session) begin(stage, session);
  } else if (from.kind == RoleKind::shard) {
    const auto* weights = letter.as<msg::Weights>();
    if (!weights || letter.open()->session != stage.session) return;
    const auto asked = stage.pulls.find(weights->iteration);
    if (asked == stage.pulls.end()) return;
    const auto at = asked->second.find(ShardId(from.index));
    if (at == asked->second.end() || at->second.answer) return;  // the stage uses the first answer
    auto& answer = at->second.answer.emplace();
    for (const auto& block : weights->blocks) answer[block.block] = block.version;
    check_kept(to, stage);
  }
}

void PipelineChecker::from_stage(Address actor, const Letter& letter) {
  Stage& stage = stages_[actor.index];
  const Session session = letter.open()->session;
  const auto wanted = [&](Iteration iteration) {
    return session > stage.session ||
           (session == stage.session && !stage.whole.contains(iteration));
  };
  if (const auto* mini_batch = letter.as<msg::MiniBatch>()) {
    receive(actor, letter.open()->session, *mini_batch);
  } else if (const auto* no_more = letter.as<msg::NoMore>()) {
    receive(actor, letter.open()->session, *no_more);
  } else if (const auto* input = letter.as<msg::Activation>()) {
    if (wanted(input->iteration))
      stage.received[session].activations[{input->iteration, input->micro_batch, input->chunk}] =
          input->tensor.shape[0];
  } else if (const auto* gradient = letter.as<msg::OutputGradient>()) {
    if (wanted(gradient->iteration))
      stage.received[session].gradients.insert(
          {gradient->iteration, gradient->micro_batch, gradient->chunk});
  }
}

void PipelineChecker::receive(Address actor, Session session, const msg::MiniBatch& mini_batch) {
  Stage& stage = stages_[actor.index];
  if (session < stage.session) return;
  Received& received = stage.received[session];
  const Iteration iteration = mini_batch.iteration;
  if (received.end && iteration >= *received.end)
    violated({actor}, "iteration ", iteration, " has samples; the last one is ",
             received.end->value() - 1);
  if (session == stage.session && stage.whole.contains(iteration)) return;
  const Positions positions(mini_batch.begin, mini_batch.end);
  const auto known = received.mini_batches.try_emplace(iteration, positions).first;
  if (known->second != positions)
    violated({actor}, "iteration ", iteration, " has positions ", positions.first, " to ",
             positions.second, ", but had ", known->second.first, " to ", known->second.second);
}

void PipelineChecker::receive(Address actor, Session session, const msg::NoMore& no_more) {
  Stage& stage = stages_[actor.index];
  if (session < stage.session) return;
  Received& received = stage.received[session];
  if (!received.end) received.end = no_more.iteration;
  if (*received.end != no_more.iteration)
    violated({actor}, "NoMore names iteration ", no_more.iteration, ", but named ", *received.end,
             " before");
  const bool present = session == stage.session && !stage.open.empty();
  if (present && stage.open.rbegin()->first >= no_more.iteration)
    violated({actor}, "NoMore names iteration ", no_more.iteration, ", but ",
             stage.open.rbegin()->first, " was started");
}

void PipelineChecker::count(Address actor, Progress& progress, MicroBatch micro_batch,
                            std::int64_t samples) const {
  const auto known = progress.samples.try_emplace(micro_batch, samples).first;
  if (known->second != samples)
    violated({actor}, "micro-batch ", micro_batch, " has ", samples, " samples, but had ",
             known->second);
}

// ---- pushes ----

void PipelineChecker::push(const Letter& letter, const msg::Push& push) {
  const Address actor = letter.from();
  Stage& stage = stages_[actor.index];
  // Ignores pushes of other sessions and repeats of complete iterations.
  if (stage.joins || letter.open()->session != stage.session ||
      stage.whole.contains(push.iteration))
    return;
  if (stage.given_up && push.iteration >= *stage.given_up)
    violated({actor, letter.to()}, "a push of iteration ", push.iteration, "; ", *stage.given_up,
             " and later ones were given up");
  Progress& progress = stage.open[push.iteration];
  if (push.kind == msg::Push::Kind::gradient) check_versions(letter, stage, push);
  progress.pushed.insert({letter.to().index, push.bucket});
  finish_if_done(actor, stage, push.iteration);
}

std::size_t PipelineChecker::buckets_pushed(Address actor) const {
  std::size_t buckets = 0;
  for (const auto& at : share_of(actor).at) buckets += at.buckets.size();
  return buckets;
}

void PipelineChecker::finish_if_done(Address actor, Stage& stage, Iteration iteration) {
  Received& received = stage.received[stage.session];
  const Progress& progress = stage.open[iteration];
  if (!progress.over || progress.pushed.size() < buckets_pushed(actor)) return;
  if (progress.computed) check_whole(actor, stage, iteration, progress);
  stage.whole.insert(iteration);
  stage.open.erase(iteration);
  received.mini_batches.erase(iteration);
  std::erase_if(received.activations,
                [&](const auto& one) { return std::get<Iteration>(one.first) == iteration; });
  std::erase_if(received.gradients,
                [&](const auto& one) { return std::get<Iteration>(one) == iteration; });
  // An iteration uses its own pull or a later one. Earlier iterations may still be open, because a
  // later push may arrive first after a reconnection.
  const Iteration first =
      stage.open.empty() ? iteration + 1 : std::min(iteration + 1, stage.open.begin()->first);
  stage.pulls.erase(stage.pulls.begin(), stage.pulls.lower_bound(first));
}

/// An iteration may be computed on several versions; a push names one of them.
void PipelineChecker::check_versions(const Letter& letter, const Stage& stage,
                                     const msg::Push& push) const {
  const Progress& progress = stage.open.at(push.iteration);
  const auto are_of = [&](Iteration pull) {
    const auto found = stage.pulls.find(pull);
    if (found == stage.pulls.end()) return false;
    const auto at = found->second.find(ShardId(letter.to().index));
    if (at == found->second.end() || !at->second.answer) return false;
    return std::all_of(push.blocks.begin(), push.blocks.end(), [&](const auto& gradient) {
      const auto block = at->second.answer->find(gradient.block);
      return block != at->second.answer->end() && block->second == gradient.version;
    });
  };
  const bool known = std::any_of(progress.passes.begin(), progress.passes.end(),
                                 [&](const auto& pass) { return are_of(pass.second.pull); });
  if (!known)
    violated({letter.from(), letter.to()}, "bucket ", push.bucket, " of iteration ", push.iteration,
             " names versions on which it was not computed");
}

void PipelineChecker::check_whole(Address actor, const Stage& stage, Iteration iteration,
                                  const Progress& progress) const {
  const Received& received = stage.received.at(stage.session);
  const auto mini_batch = received.mini_batches.find(iteration);
  if (mini_batch == received.mini_batches.end())
    violated({actor}, "iteration ", iteration, " was pushed, but not announced");
  const std::int64_t samples = mini_batch->second.second - mini_batch->second.first;
  for (std::uint32_t chunk = 0; chunk < static_cast<std::uint32_t>(spec_.chunks); ++chunk) {
    const auto model_chunk = static_cast<ChunkIndex>(job_->stages->placement().model_chunk(
        static_cast<int>(index_of(actor)), static_cast<int>(chunk)));
    std::int64_t done = 0;
    for (const auto& [of, pass] : progress.passes) {
      if (of.first != model_chunk) continue;
      if (!pass.weights)
        violated({actor}, "iteration ", iteration, " was pushed without backward of micro-batch ",
                 of.second, " through chunk ", model_chunk);
      const auto known = progress.samples.find(of.second);
      done += known == progress.samples.end() ? 0 : known->second;
    }
    if (done != samples)
      violated({actor}, "iteration ", iteration, " was pushed, but ", done, " of its ", samples,
               " samples passed chunk ", model_chunk);
  }
}

}  // namespace leeway::sim
