#include "runtime/cluster/run.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "actors/cluster/agent.hpp"
#include "cluster/hints.hpp"
#include "core/text.hpp"
#include "core/this_host.hpp"
#include "runtime/attend.hpp"
#include "runtime/scenario.hpp"

namespace leeway {
namespace {

std::string this_program(const Plan& plan) {
  const std::string host = host_name();
  return concat(plan.name, " (process ", getpid(), " on ", host.empty() ? "?" : host, ")");
}

/// Whether the nodes are to send their events.
bool needs_events(const RunOptions& options) {
  return options.trace || options.trace_json || !options.serve.empty() ||
         !options.metrics.empty() || options.on_event;
}

}  // namespace

Expected<std::unique_ptr<ClusterRun>> ClusterRun::open(
    const Plan& plan, const RunOptions& options, std::function<void(const std::string&)> say) {
  const ClusterOptions& nodes = *options.cluster;
  if (plan.simulated)
    return Error{"--nodes: a simulation runs in one process; leave out --nodes, or --simulate"};
  if (const Status checked = check_nodes(nodes); !checked) return checked.error();
  std::unique_ptr<ClusterRun> run(new ClusterRun);
  auto driver =
      Driver::open({.nodes = nodes.nodes,
                    .place = nodes.place,
                    .mesh = mesh_options(nodes),
                    .who = this_program(plan),
                    .trace = needs_events(options),
                    .trace_messages = options.trace_messages,
                    .say = say,
                    .interrupted = [guard = &run->guard_] { return guard->interrupted(); },
                    .at_least = nodes.at_least},
                   plan);
  if (!driver) return driver.error();
  run->driver_ = std::move(*driver);
  const std::string name = run->driver_->name();
  const std::string program = needs_program(plan) ? options.command : "leeway";
  say(concat("listening on ", name, ": nodes can join with `",
             cluster::join_command(program, name, nodes.tls), "`"));
  return run;
}

bool ClusterRun::is_here(Address actor) const {
  return driver_->placement().node_of(actor) == kProgramNode;
}

Status ClusterRun::prepare(const Job& job) {
  return driver_->prepare(job);
}

Status ClusterRun::run(const std::shared_ptr<const Job>& job,
                       const std::vector<Audience*>& audience, ActorObservers observers,
                       const std::function<bool()>& ended, StopRequest stop, Driver::Page page) {
  driver_->set_page(std::move(page));
  if (const auto started = driver_->start(job, audience, std::move(observers)); !started)
    return started;
  began_ = true;
  std::int64_t polled_at = steady_ns();
  const auto has_ended = [&] {
    driver_->poll({});
    const bool over = ended();
    const std::int64_t now = steady_ns();
    longest_pause_ = std::max(longest_pause_, Duration{now - std::exchange(polled_at, now)});
    return over;
  };
  const Status outcome = wait_for_end(driver_->host(), has_ended, std::move(stop));
  driver_->finish();
  return outcome;
}

std::string ClusterRun::pause_text() const {
  if (longest_pause_ <= kProgramSilence) return "";
  return concat("; this program was suspended for ", longest_pause_.ns / 1'000'000'000,
                " s, and nodes give up a program that is silent for ", kProgramSilence.seconds(),
                " s");
}

}  // namespace leeway
