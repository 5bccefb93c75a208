#include "cluster/local_node.hpp"

namespace leeway {
namespace {

std::vector<LocalFaults::Planned> faults_on(const Job& job, const NodeHostOptions& node) {
  std::vector<LocalFaults::Planned> here;
  for (std::size_t number = 0; number < job.faults.size(); ++number)
    if (const plan::Fault& fault = job.faults[number];
        node.placement.node_of(fault.actor) == node.self)
      here.push_back({number, fault});
  return here;
}

}  // namespace

LocalNode::LocalNode(std::shared_ptr<const Job> job, std::vector<Audience*> audience,
                     Options options) {
  auto on_return = options.on_return;
  if (!on_return)
    on_return = [this](Address actor) { node_->launch(actor, node_->launch_of(actor) + 1); };
  faults_.emplace(faults_on(*job, options.node), job->disturbances, orders_, std::move(on_return));
  host_ = std::make_unique<LocalHost>(host_options(*job, options));
  options.node.later = [this](std::function<void()> call) { orders_.after({}, std::move(call)); };
  node_ = std::make_unique<NodeHost>(std::move(job), std::move(audience), *host_,
                                     std::move(options.node));
}

LocalNode::~LocalNode() {
  orders_.stop();
}

LocalHost::Options LocalNode::host_options(const Job& job, Options& options) {
  return {.seed = job.plan.seed,
          .pool_threads = options.pool_threads,
          .stragglers = job.stragglers,
          .first_iterations = job.first_iterations(),
          .disturbances = job.disturbances,
          .on_event =
              [this, on_event = std::move(options.observers.on_event)](
                  Address actor, Instant at, const Event& event, std::uint64_t record) {
                if (on_event) on_event(actor, at, event, record);
                faults_->on_event(actor, event);
              },
          .on_message = std::move(options.observers.on_message),
          .events = this};
}

void LocalNode::start() {
  node_->start();
  faults_->start(*host_);
  orders_.begin();
}

}  // namespace leeway
