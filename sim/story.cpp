#include "sim/story.hpp"

#include <algorithm>

#include "core/text.hpp"
#include "messages/event_queries.hpp"
#include "policies/straggler/straggler.hpp"
#include "sim/search/trial.hpp"
#include "sim/words.hpp"

namespace leeway::sim::story {

namespace {

/// Well above the length of any story.
constexpr std::uint64_t kMostSteps = 1'000'000;

bool matches(const EventPattern& wanted, const EventPattern& seen) {
  return wanted.kind == seen.kind && (!wanted.type || wanted.type == seen.type) &&
         (!wanted.from || wanted.from == seen.from) && (!wanted.to || wanted.to == seen.to) &&
         (!wanted.iteration || wanted.iteration == seen.iteration);
}

std::optional<Iteration> iteration_of(std::optional<int> iteration) {
  if (!iteration) return std::nullopt;
  return Iteration(*iteration);
}

std::shared_ptr<const Job> job_of(const Plan& plan) {
  if (const auto there = check_sources(plan.stragglers); !there)
    throw CheckFailed(there.error().text);
  auto job = load_job(plan);
  if (!job) throw CheckFailed(job.error().text);
  return *job;
}

EventPattern seen(EventPattern::Kind kind, const Letter& letter) {
  EventPattern out{.kind = kind, .from = letter.from(), .to = letter.to()};
  if (const Envelope* envelope = letter.open()) {
    out.type = envelope->body.index();
    out.name = name_of(envelope->body);
    out.iteration = sim::iteration_of(envelope->body);
  }
  return out;
}

}  // namespace

std::string EventPattern::in_words() const {
  std::string text;
  if (kind == Kind::ended) return concat("the end of ", *from);
  if (kind == Kind::event) {
    text = concat("event '", name, '\'');
    if (to) text += concat(" of ", *to);
    if (from) text += concat(" at ", *from);
  } else {
    text = concat(kind == Kind::sent ? "the sending" : "the arrival", " of a ",
                  name.empty() ? "message" : name, " from ", *from, " to ", *to);
  }
  if (iteration) text += concat(", iteration ", *iteration);
  return text;
}

EventPattern pattern_of(const Event& event, std::optional<Address> worker,
                        std::optional<int> iteration) {
  return {.kind = EventPattern::Kind::event,
          .type = event.index(),
          .name = name_of(event),
          .from = {},
          .to = worker,
          .iteration = iteration_of(iteration)};
}

EventPattern ended(Address actor) {
  return {.kind = EventPattern::Kind::ended, .from = actor};
}

EventPattern pattern_of(EventPattern::Kind kind, const Body& body, Address from, Address to,
                        std::optional<int> iteration) {
  return {.kind = kind,
          .type = body.index(),
          .name = name_of(body),
          .from = from,
          .to = to,
          .iteration = iteration_of(iteration)};
}

/// Records events, messages and ends, and holds links when a message matches.
class Story::Witness final : public Observer {
 public:
  void on_event(Instant, Address actor, const Event& event) override {
    EventPattern one{.kind = EventPattern::Kind::event,
                     .type = event.index(),
                     .name = name_of(event),
                     .from = actor,
                     .to = {},
                     .iteration = leeway::iteration_of(event)};
    if (const auto worker = worker_of(event)) one.to = address_of(*worker);
    seen_.push_back(one);
  }
  void on_sent(Instant, const Letter& letter) override {
    seen_.push_back(seen(EventPattern::Kind::sent, letter));
    const auto trap = std::find_if(traps_.begin(), traps_.end(), [&](const EventPattern& wanted) {
      return matches(wanted, seen_.back());
    });
    if (trap == traps_.end()) return;
    traps_.erase(trap);
    host_->hold(letter.from(), letter.to());  // also holds this message, which is not sent yet
  }
  void on_delivered(Instant, const Letter& letter) override {
    seen_.push_back(seen(EventPattern::Kind::delivered, letter));
  }
  void on_ended(Instant, Address actor) override {
    seen_.push_back({.kind = EventPattern::Kind::ended, .from = actor});
  }

  void watch(Simulator& host) { host_ = &host; }
  void hold_at(const EventPattern& sent) { traps_.push_back(sent); }
  const std::vector<EventPattern>& all() const { return seen_; }
  std::size_t count(const EventPattern& wanted, std::size_t from = 0) const {
    return static_cast<std::size_t>(
        std::count_if(seen_.begin() + static_cast<std::ptrdiff_t>(from), seen_.end(),
                      [&](const EventPattern& one) { return matches(wanted, one); }));
  }

 private:
  Simulator* host_ = nullptr;
  std::vector<EventPattern> seen_, traps_;
};

Story::Story(std::shared_ptr<const Job> job) : Story(std::move(job), std::make_shared<Witness>()) {}

Story::Story(const Plan& plan) : Story(job_of(plan)) {}

Story::Story(std::shared_ptr<const Job> job, std::shared_ptr<Witness> witness)
    : witness_(witness), simulation_(std::move(job), {}, {.observers = {std::move(witness)}}) {
  witness_->watch(host());
}

Story::~Story() = default;

// ---- advancing the run ----

void Story::step(const std::string& goal) {
  if (!started_) simulation_.start();
  started_ = true;
  const bool more = simulation_.step();
  if (simulation_.ended()) return;
  if (host().trace().steps() > kMostSteps)
    throw CheckFailed(concat("waited for ", goal, ": the run does not end"));
  if (const auto stuck = simulation_.stuck(more); !stuck.empty())
    throw CheckFailed(concat("waited for ", goal, ": ", stuck));
}

Story& Story::until(const EventPattern& pattern) {
  const std::string goal = pattern.in_words();
  for (std::size_t searched = witness_->all().size(); witness_->count(pattern, searched) == 0;) {
    searched = witness_->all().size();
    if (simulation_.ended()) throw CheckFailed(concat("the run ended without ", goal));
    step(goal);
  }
  return *this;
}

Story& Story::pass(Duration time) {
  const auto over = std::make_shared<bool>(false);
  host().at(host().now() + time, [over] { *over = true; });
  while (!*over) {
    if (simulation_.ended()) throw CheckFailed("the run ended before that time");
    step("time to pass");
  }
  return *this;
}

Story& Story::to_the_end() {
  while (!simulation_.ended()) step("the end");
  return *this;
}

// ---- faults ----

Story& Story::hold(Address from, Address to) {
  host().hold(from, to);
  return *this;
}

Story& Story::hold(const EventPattern& sent) {
  LW_CHECK(sent.kind == EventPattern::Kind::sent, sent.in_words());
  witness_->hold_at(sent);
  return *this;
}

Story& Story::release(Address from, Address to) {
  host().release(from, to);
  return *this;
}

Story& Story::deliver_one(Address from, Address to) {
  LW_CHECK(host().release_one(from, to), "no message waits", from, to);
  return until({.kind = EventPattern::Kind::delivered, .from = from, .to = to});
}

Story& Story::sever(Address a, Address b) {
  host().sever(a, b);
  return *this;
}

Story& Story::mend(Address a, Address b) {
  host().mend(a, b);
  return *this;
}

Story& Story::delay(Address from, Address to, Duration extra) {
  host().delay(from, to, extra);
  return *this;
}

Story& Story::crash(Address actor) {
  host().kill(actor, "crashed by the story");
  return *this;
}

Story& Story::start_again(Address actor) {
  simulation_.start_again(actor);
  return *this;
}

Story& Story::freeze(Address actor) {
  host().freeze(actor);
  return *this;
}

Story& Story::thaw(Address actor) {
  host().thaw(actor);
  return *this;
}

// ---- results ----

std::size_t Story::count(const EventPattern& pattern) const {
  return witness_->count(pattern);
}

bool Story::waits(Address worker, Address shard) const {
  std::vector<Iteration> waiting;
  for (const auto& one : witness_->all()) {
    if (matches(parked(worker).at(shard), one)) waiting.push_back(*one.iteration);
    if (matches(removed(worker).at(shard), one)) waiting.clear();
    if (matches(answered(worker).at(shard), one) || matches(refused(worker).at(shard), one))
      std::erase(waiting, *one.iteration);
  }
  return !waiting.empty();
}

}  // namespace leeway::sim::story
