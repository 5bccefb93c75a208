#include "kv/launched_worker.hpp"

#include <cstdlib>
#include <iostream>
#include <utility>

#include "cluster/node_name.hpp"
#include "core/number.hpp"
#include "core/text.hpp"
#include "kv/store_plan.hpp"
#include "kv/table.hpp"
#include "runtime/cluster/options.hpp"

namespace leeway::kv {
namespace {

std::string value_of(const char* variable) {
  const char* const value = std::getenv(variable);
  return value ? value : "";
}

Expected<std::uint32_t> number_of(const char* variable) {
  const std::string text = value_of(variable);
  const auto number = parse_number<std::uint32_t>(text);
  if (!number) return Error{concat(variable, ": \"", text, "\" is not a number")};
  return *number;
}

}  // namespace

/// The only loop of the process. The agent's job keeps it, and the agent may begin several jobs.
class LaunchedWorker::Loops final : public UserLoops {
 public:
  const std::shared_ptr<UserLoop> loop = std::make_shared<UserLoop>();

  std::shared_ptr<UserLoop> begin(const std::shared_ptr<const Job>& job, WorkerId,
                                  std::uint32_t) override {
    std::lock_guard lock(mutex_);
    if (std::exchange(has_begun_, true)) {
      auto lost = std::make_shared<UserLoop>();
      lost->end(UserLoop::End::worker, "the loop of this process has lost its worker");
      return lost;
    }
    job_ = job;
    return loop;
  }
  std::shared_ptr<const Job> job() const {
    std::lock_guard lock(mutex_);
    return job_.lock();
  }

 private:
  mutable std::mutex mutex_;
  bool has_begun_ = false;
  std::weak_ptr<const Job> job_;
};

Expected<std::shared_ptr<LaunchedWorker>> LaunchedWorker::open(const Options& options) {
  static std::atomic<bool> exists = false;
  if (value_of(variable::kLauncher).empty())
    return Error{
        "this process is no worker; start the program with `leeway launch --workers 4 PROGRAM`"};
  if (exists.exchange(true)) return Error{"this process has had a store; it can have only one"};
  std::shared_ptr<LaunchedWorker> site(new LaunchedWorker(options));
  if (const Status read = site->read_environment(); !read) return read.error();
  return site;
}

LaunchedWorker::LaunchedWorker(const Options& options)
    : options_(options), loops_(std::make_shared<Loops>()) {}

LaunchedWorker::~LaunchedWorker() {
  leaves_ = true;
  loops_->loop->end(UserLoop::End::worker, "the store is closed");
  if (thread_.joinable()) thread_.join();
}

Status LaunchedWorker::read_environment() {
  const auto worker = number_of(variable::kWorker), workers = number_of(variable::kWorkers);
  if (!worker) return worker.error();
  if (!workers) return workers.error();
  worker_ = WorkerId(*worker);
  options_.workers = *workers;
  const auto where = parse_node(value_of(variable::kListen));
  if (!where) return Error{concat(variable::kListen, ": ", where.error().text)};
  ClusterOptions links;
  links.tls = value_of(variable::kTls);
  const auto transport = parse_transport(value_of(variable::kTransport));
  if (!transport) return Error{concat(variable::kTransport, ": ", transport.error().text)};
  links.transport = *transport;
  const auto silence = parse_silence(value_of(variable::kSilence));
  if (!silence) return Error{concat(variable::kSilence, ": ", silence.error().text)};
  links.silence = *silence;
  agent_.mesh = mesh_options(links);
  agent_.mesh.address = where->host;
  agent_.mesh.port = where->port;
  return {};
}

const std::shared_ptr<UserLoop>& LaunchedWorker::loop() const {
  return loops_->loop;
}

std::shared_ptr<const Job> LaunchedWorker::job() const {
  return loops_->job();
}

void LaunchedWorker::declared(WorkerId, const Declarations& declarations) {
  register_tables();
  node::Declare declare{.worker = worker_,
                        .plan = Message(encode(store_plan(declarations, options_)), {})};
  if (worker_ == WorkerId(0)) declare.values = declarations.values;
  agent_.user_loops = loops_;
  agent_.declaration = {value_of(variable::kLauncher), std::move(declare),
                        [loop = loops_->loop](const std::string& reason) {
                          loop->end(UserLoop::End::worker, reason);
                        }};
  agent_.log = [](LogLevel level, const std::string& line) {
    if (level != LogLevel::info) std::cerr << line << std::endl;
  };
  thread_ = std::thread([this] { serve(); });
}

void LaunchedWorker::serve() {
  Status outcome;
  try {
    auto agent = AgentProcess::open(std::move(agent_));
    outcome = agent ? (*agent)->run([this] { return leaves_.load(); }) : agent.error();
  } catch (const std::exception& error) {
    outcome = Error{error.what()};
  }
  if (!outcome) loops_->loop->end(UserLoop::End::worker, outcome.error().text);
}

}  // namespace leeway::kv
