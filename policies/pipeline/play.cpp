#include "policies/pipeline/play.hpp"

#include <algorithm>
#include <deque>

#include "core/check.hpp"
#include "core/text.hpp"

namespace leeway::pipeline {

namespace {

constexpr std::int64_t kNever = -1;

/// The content of a message: the activation that a model chunk reads, or the gradient of its
/// output.
enum class Content : std::uint8_t { activation, gradient };

class Player {
 public:
  Player(const Table& table, const Costs& costs, int bound)
      : table_(table),
        costs_(costs),
        bound_(static_cast<std::size_t>(bound)),
        next_(static_cast<std::size_t>(table.stages)),
        free_(next_.size()),
        waits_for_room_(next_.size()),
        queued_(next_.size()),
        channels_(4 * next_.size()),
        arrived_(2 * static_cast<std::size_t>(table.model_chunks() * table.all_micro_batches()),
                 kNever) {
    timeline_.slots.resize(next_.size());
    timeline_.busy.resize(next_.size());
  }

  Expected<Timeline> play() {
    for (int stage = 0; stage < table_.stages; ++stage) wake(stage);
    while (!ready_.empty()) {
      const int stage = ready_.front();
      ready_.pop_front();
      queued_[index(stage)] = false;
      while (step(stage)) {
      }
    }
    for (int stage = 0; stage < table_.stages; ++stage)
      if (next_[index(stage)] < ops(stage).size() || waits_for_room_[index(stage)])
        return stuck(stage);
    for (const Channel& one : channels_)
      timeline_.most_in_channel = std::max(timeline_.most_in_channel, one.most());
    return std::move(timeline_);
  }

 private:
  /// Messages from one stage to a neighbour: when they were sent and taken, each in its order.
  struct Channel {
    std::vector<std::int64_t> sent, taken;
    /// Most messages at once.
    int most() const {
      std::size_t most = 0;
      for (std::size_t i = 0; i < sent.size(); ++i) {
        const auto later = std::upper_bound(taken.begin(), taken.end(), sent[i]);
        most = std::max(most, i + 1 - std::min(i, static_cast<std::size_t>(later - taken.begin())));
      }
      return static_cast<int>(most);
    }
  };

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  const std::vector<Op>& ops(int stage) const { return table_.ops[index(stage)]; }

  std::int64_t& arrived(Content what, int chunk, int micro_batch) {
    return arrived_[2 * index(chunk * table_.all_micro_batches() + micro_batch) +
                    index(static_cast<int>(what))];
  }
  /// The channel that this model chunk sends to.
  Channel& channel(Content what, int model_chunk) {
    const Placement placement = table_.placement();
    const bool back = placement.runs_back(placement.chunk_of(model_chunk));
    return channels_[4 * index(placement.stage_of(model_chunk)) + (back ? 2 : 0) +
                     index(static_cast<int>(what))];
  }
  void wake(int stage) {
    if (queued_[index(stage)]) return;
    queued_[index(stage)] = true;
    ready_.push_back(stage);
  }

  /// Does one operation, or sends one message; false if the stage has to wait.
  bool step(int stage) {
    if (waits_for_room_[index(stage)]) return send(stage, ops(stage)[next_[index(stage)] - 1]);
    if (next_[index(stage)] == ops(stage).size()) return false;
    const Op& op = ops(stage)[next_[index(stage)]];
    const int chunk = table_.model_chunk(stage, op.chunk);
    const std::int64_t input = take(stage, op, chunk);
    if (input == kNever) return false;
    const std::int64_t cost = costs_.of(op.kind, chunk);
    const std::int64_t begin = std::max(free_[index(stage)], input);
    if (reads_from_other_) {
      Channel& from = channel(reads_, sender_);
      from.taken.push_back(begin);
      wake(table_.stage_of(sender_));
    }
    timeline_.slots[index(stage)].push_back({begin, begin + cost});
    timeline_.busy[index(stage)] += cost;
    timeline_.length = std::max(timeline_.length, begin + cost);
    free_[index(stage)] = begin + cost;
    ++next_[index(stage)];
    waits_for_room_[index(stage)] = sends(op, chunk);
    return true;
  }

  /// When the input of the operation arrives, or kNever; sets its sender.
  std::int64_t take(int stage, const Op& op, int chunk) {
    reads_from_other_ = false;
    if (op.kind == OpKind::forward && chunk > 0)
      return look(Content::activation, chunk, chunk - 1, op, stage);
    if (gives_input_gradient(op.kind) && chunk < table_.model_chunks() - 1)
      return look(Content::gradient, chunk, chunk + 1, op, stage);
    return 0;
  }
  std::int64_t look(Content what, int chunk, int from, const Op& op, int stage) {
    sender_ = from;
    reads_ = what;
    reads_from_other_ = table_.stage_of(from) != stage;
    return arrived(what, chunk, op.micro_batch);
  }

  bool sends(const Op& op, int chunk) const {
    return (op.kind == OpKind::forward && chunk < table_.model_chunks() - 1) ||
           (gives_input_gradient(op.kind) && chunk > 0);
  }

  /// Sends the message of the latest operation; false if the channel is full.
  bool send(int stage, const Op& op) {
    const int chunk = table_.model_chunk(stage, op.chunk);
    const Content what = op.kind == OpKind::forward ? Content::activation : Content::gradient;
    const int to = what == Content::activation ? chunk + 1 : chunk - 1;
    const int receiver = table_.stage_of(to);
    std::int64_t& arrives = arrived(what, to, op.micro_batch);
    std::int64_t& now = free_[index(stage)];
    if (receiver == stage) {
      arrives = now;
    } else {
      Channel& out = channel(what, chunk);
      if (out.sent.size() >= bound_) {
        const std::size_t before = out.sent.size() - bound_;
        if (out.taken.size() <= before) return false;
        now = std::max(now, out.taken[before]);
      }
      out.sent.push_back(now);
      arrives = now + costs_.links[index(std::min(chunk, to))];
      wake(receiver);
    }
    waits_for_room_[index(stage)] = false;
    return true;
  }

  Error stuck(int stage) {
    if (waits_for_room_[index(stage)]) {
      const Op& op = ops(stage)[next_[index(stage)] - 1];
      return Error{concat("stage ", stage, " deadlocks sending the output of ",
                          text_of(op, table_.chunks), ": the channel holds ", bound_,
                          "; give channels a larger bound, or let the neighbour take it earlier")};
    }
    const Op& op = ops(stage)[next_[index(stage)]];
    return Error{concat("stage ", stage, " deadlocks waiting for the input of operation ",
                        next_[index(stage)], ", ", text_of(op, table_.chunks),
                        "; let the neighbour do its ",
                        op.kind == OpKind::forward ? "forward" : "backward", " of micro-batch ",
                        op.micro_batch, " earlier")};
  }

  const Table& table_;
  const Costs& costs_;
  const std::size_t bound_;
  std::vector<std::size_t> next_;     // per stage: operations begun
  std::vector<std::int64_t> free_;    // per stage: the end of its latest operation
  std::vector<char> waits_for_room_;  // per stage: the message of its latest operation is not sent
  std::vector<char> queued_;
  std::deque<int> ready_;
  std::vector<Channel> channels_;
  std::vector<std::int64_t> arrived_;
  Timeline timeline_;
  // Of the operation that take() looked at:
  bool reads_from_other_ = false;
  Content reads_{};
  int sender_ = 0;  // model chunk
};

}  // namespace

Costs Costs::equal(int model_chunks, const OpCosts& costs, std::int64_t communication) {
  return {std::vector(static_cast<std::size_t>(model_chunks), costs),
          std::vector(static_cast<std::size_t>(model_chunks - 1), communication)};
}

std::int64_t Costs::of(OpKind kind, int model_chunk) const {
  const OpCosts& costs = chunks[static_cast<std::size_t>(model_chunk)];
  switch (kind) {
    case OpKind::forward:
      return costs.forward;
    case OpKind::backward_input:
      return costs.backward_input;
    case OpKind::backward_weights:
      return costs.backward_weights;
    case OpKind::backward:
      return costs.backward_input + costs.backward_weights;
    case OpKind::update:
      return costs.update;
  }
  return 0;
}

Share Timeline::bubble() const {
  const auto stages = static_cast<std::int64_t>(busy.size());
  std::int64_t idle = length * stages;
  for (const auto time : busy) idle -= time;
  return {idle, std::max<std::int64_t>(length * stages, 1)};
}

Expected<Timeline> play(const Table& table, const Costs& costs, int channel_bound) {
  const auto chunks = static_cast<std::size_t>(table.model_chunks());
  LW_CHECK(costs.chunks.size() == chunks && costs.links.size() == chunks - 1, chunks,
           costs.chunks.size(), costs.links.size());
  LW_CHECK(channel_bound >= 1, channel_bound);
  LW_CHECK(table.ops.size() == static_cast<std::size_t>(table.stages), table.ops.size());
  for (const auto& ops : table.ops)
    for (const Op& op : ops)
      LW_CHECK(op.micro_batch >= 0 && op.micro_batch < table.all_micro_batches() && op.chunk >= 0 &&
                   op.chunk < table.chunks,
               op.micro_batch, op.chunk);
  return Player(table, costs, channel_bound).play();
}

Expected<int> least_channel_bound(const Table& table) {
  const Costs costs = Costs::equal(table.model_chunks(), {});
  const auto unbounded = play(table, costs);
  if (!unbounded) return unbounded.error();
  int bound = 1;
  while (!play(table, costs, bound)) ++bound;
  return bound;
}

}  // namespace leeway::pipeline
