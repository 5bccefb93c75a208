#include "kv/launch.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "cluster/node_name.hpp"
#include "cluster/process.hpp"
#include "core/exit_codes.hpp"
#include "core/text.hpp"
#include "kv/launch_flags.hpp"
#include "kv/launched_worker.hpp"
#include "kv/resumed_launch.hpp"
#include "kv/store_plan.hpp"
#include "kv/table.hpp"
#include "runtime/cluster/children.hpp"
#include "runtime/cluster/options.hpp"
#include "runtime/flags/command_line.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/scenario.hpp"
#include "runtime/user_run.hpp"

namespace leeway::kv {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// After an interrupted run, until the programs are stopped, and then killed.
constexpr auto kEndLimit = std::chrono::seconds(5), kStopLimit = std::chrono::seconds(2);
/// A worker that fails so often before it has declared its keys is not restarted.
constexpr auto kMostFirstRestart = std::chrono::seconds(8);
/// Between two notes about workers that are awaited.
constexpr auto kNoteEvery = std::chrono::seconds(10);

/// The name of a run: "my-loop" of "./my-loop.py".
std::string name_of(const std::string& program, const std::vector<std::string>& arguments) {
  const bool is_interpreter = program.find("python") != std::string::npos && !arguments.empty();
  return std::filesystem::path(is_interpreter ? arguments.front() : program).stem().string();
}

/// The words of a command line behind its flags.
std::string program_text(const LaunchOptions& options) {
  std::string text = options.restart ? "--restart " : "";
  text += shell_path(options.program);
  for (const std::string& argument : options.arguments) text += ' ' + shell_word(argument);
  return text;
}

/// The library of leeway/kv.h, beside the folder of this program or where it is installed; empty if
/// there is none, or the user has named one.
std::string library_path() {
  if (std::getenv(variable::kLibrary)) return "";
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto above = program.parent_path().parent_path();
  for (const auto& folder :
       {above / "lib", above / LEEWAY_LIBRARY_FOLDER, std::filesystem::path(LEEWAY_INSTALLED)}) {
    const auto path = folder / "libleeway_kv.so";
    if (!error && std::filesystem::exists(path, error)) return path;
  }
  return "";
}

// ---- the workers ----

/// The declaration of a worker's process.
struct Declared {
  std::string name;  // the address on which it listens
  Plan plan;
};

/// The plan of a worker: the settings that its process decides.
Plan taken_from(const Plan& sent, std::size_t workers) {
  Plan plan = any_plan();
  plan.model = sent.model;
  plan.optimizer = sent.optimizer;
  plan.consistency = sent.consistency;
  plan.data = sent.data;
  plan.batch = sent.batch;
  plan.stop = sent.stop;
  plan.seed = sent.seed;
  plan.workers = static_cast<std::uint32_t>(workers);
  return plan;
}

/// How the plan of a worker differs from that of worker 0, which sets the optimizer; empty if they
/// agree.
std::string difference(const Plan& first, const Plan& found) {
  std::string why = difference(table_keys(first.model), table_keys(found.model), "worker 0");
  if (!why.empty()) return concat(why, "; all workers initialise the same keys");
  const auto differs = [](const char* what) {
    return concat("has another ", what, " than worker 0; all workers create the same store");
  };
  if (found.consistency != first.consistency) return differs("type");
  if (found.data != first.data) return differs("number of samples");
  if (found.batch != first.batch) return differs("batch");
  if (found.stop != first.stop) return differs("number of epochs");
  return found.seed == first.seed ? "" : differs("seed");
}

/// The processes of the workers. One thread starts them, prints their output and answers them.
class Workers {
 public:
  Workers(const LaunchOptions& options, std::uint32_t count, const ClusterOptions& links,
          const InterruptGuard& guard)
      : options_(options), links_(links), guard_(guard), workers_(count) {
    links_.port = 0;  // given to the program of the job
  }
  /// Without end() something has thrown: the programs are stopped, because no run serves them.
  ~Workers() {
    if (!is_over_) fail("the launcher has failed");
    end();
  }

  /// Starts the processes, and waits until all have declared their keys. The error says which has
  /// not.
  Status start() {
    if (const Status opened = registry_.open(mesh_options(links_), open_mesh); !opened)
      return opened.error();
    thread_ = std::thread([this] { serve(); });
    auto note_at = SteadyClock::now() + kNoteEvery;
    std::unique_lock lock(mutex_);
    while (!failure_ && !guard_.interrupted() && !missing().empty()) {
      changed_.wait_for(lock, std::chrono::milliseconds(50));
      if (SteadyClock::now() < note_at) continue;
      note_at = SteadyClock::now() + kNoteEvery;
      std::cerr << "leeway: waiting for " << join(missing(), ", ")
                << " to pull, push or lease samples" << std::endl;
    }
    if (!failure_ && guard_.interrupted()) failure_ = Error{"interrupted before the start"};
    return failure_ ? Status(*failure_) : Status();
  }
  // After start(), these do not change.
  const Plan& plan() const { return workers_.front().declared->plan; }
  const std::vector<Blob>& values() const { return values_; }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Worker& worker : workers_) names.push_back(worker.declared->name);
    return names;
  }
  /// The processes need not end by themselves.
  void fail(const std::string& why) {
    std::lock_guard lock(mutex_);
    if (!failure_) failure_ = Error{why};
    changed_.notify_all();
  }
  /// The run is over: waits for the processes. Stops them at Ctrl-C, or if something has failed.
  void end() {
    is_over_ = true;
    if (thread_.joinable()) thread_.join();
    registry_.close();
  }

 private:
  struct Worker {
    std::optional<Declared> declared;
    RestartPause pause;
    bool failed = false;  // it waits for a restart
  };

  // These require the mutex.
  std::vector<std::string> missing() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < workers_.size(); ++i)
      if (!workers_[i].declared) names.push_back(concat("worker ", i));
    return names;
  }
  bool is_complete() const { return missing().empty(); }

  bool has_failed() {
    std::lock_guard lock(mutex_);
    return failure_.has_value();
  }
  bool has_declared(std::size_t number) {
    std::lock_guard lock(mutex_);
    return workers_[number].declared.has_value();
  }

  // ---- on the thread ----

  void serve() {
    try {
      for (std::size_t i = 0; i < workers_.size(); ++i) launch(i);
      while (!is_over_) {
        poll();
        if (options_.restart && !guard_.interrupted()) restart_failed();
      }
      wait_for_ends();
    } catch (const std::exception& error) {
      fail(error.what());
    }
    children_.stop(kStopLimit);
  }
  void poll() {
    children_.poll();
    registry_.poll({});
  }
  /// The programs may evaluate or save what they have trained.
  void wait_for_ends() {
    const auto begin = SteadyClock::now();
    auto note_at = begin + kNoteEvery;
    while (children_.running() > 0 && !has_failed()) {
      // After an interrupted run, they have a moment to notice its end.
      if (guard_.interrupted() && SteadyClock::now() > begin + kEndLimit) return;
      poll();
      if (SteadyClock::now() < note_at) continue;
      note_at = SteadyClock::now() + kNoteEvery;
      std::cerr << "leeway: the run is over; waiting for the programs to end (Ctrl-C stops them)"
                << std::endl;
    }
  }

  void launch(std::size_t number) {
    Worker& worker = workers_[number];
    worker.pause.started();
    worker.failed = false;
    const std::string host = reachable_at(registry_.mesh().address(), links_.nodes);
    std::string listen = node_name(host, 0);
    {
      std::lock_guard lock(mutex_);
      // The program of the job calls it there.
      if (worker.declared) listen = worker.declared->name;
    }
    const auto set = [](const char* variable, const auto& value) {
      return concat(variable, '=', value);
    };
    std::vector<std::string> environment = {
        set(variable::kLauncher, node_name(host, registry_.mesh().port())),
        set(variable::kWorker, number),
        set(variable::kWorkers, workers_.size()),
        set(variable::kListen, listen),
        set(variable::kTls, links_.tls),
        set(variable::kTransport, name_of(links_.transport)),
        set(variable::kSilence, silence_text(links_.silence))};
    if (const std::string library = library_path(); !library.empty())
      environment.push_back(set(variable::kLibrary, library));
    children_.start(number, {.program = options_.program,
                             .arguments = options_.arguments,
                             .environment = std::move(environment)});
  }
  void restart_failed() {
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      Worker& worker = workers_[i];
      if (!worker.failed || !worker.pause.is_over()) continue;
      worker.pause.adapt();
      std::cerr << "leeway: restarting worker " << i << std::endl;
      launch(i);
    }
  }
  static void print(std::size_t number, Children::Stream stream, const std::string& line) {
    (stream == Children::Stream::out ? std::cout : std::cerr)
        << "worker " << number << ": " << line << std::endl;
  }
  void has_ended(std::size_t number, int status) {
    const bool is_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    const bool is_missing = WIFEXITED(status) && WEXITSTATUS(status) == 127;  // the program
    Worker& worker = workers_[number];
    if (!is_well && !is_over_)
      std::cerr << "leeway: worker " << number << ' ' << end_text(status) << std::endl;
    worker.failed = !is_well;
    const bool tries_again =
        options_.restart && !is_well && !is_missing && worker.pause.length() < kMostFirstRestart;
    if (!tries_again && !has_declared(number))
      fail(concat("worker ", number, ' ', end_text(status),
                  " before it has pulled, pushed or leased samples",
                  is_well ? "; does it create a store of a dist_ type? One of type local takes no "
                            "part in a launch"
                          : ""));
  }

  void received(PeerId peer, node::Body& body) {
    auto* const declare = std::get_if<node::Declare>(&body);
    if (!declare) return;
    const std::string why = take(*declare);
    if (why.empty()) return;
    registry_.send(peer, 0, node::Refused{why});
    std::lock_guard lock(mutex_);
    if (!is_complete() && !failure_) failure_ = Error{why};
    changed_.notify_all();
  }
  /// Why the declaration is refused; empty if it is not.
  std::string take(node::Declare& declare) {
    const std::uint32_t number = declare.worker.value();
    const auto sent = decode_plan(declare.plan.header());
    if (!sent) return sent.error().text;
    if (number >= workers_.size()) return concat("there is no worker ", number);
    if (table_keys(sent->model).empty() || !register_if_numbered_samples(sent->data))
      return concat("worker ", number, " has declared no store");
    const Plan plan = taken_from(*sent, workers_.size());
    std::lock_guard lock(mutex_);
    if (is_complete()) return named(number, difference(workers_.front().declared->plan, plan));
    if (number == 0) values_ = std::move(declare.values);
    workers_[number].declared = {declare.name, plan};
    if (!is_complete()) return "";
    for (std::uint32_t i = 1; i < workers_.size(); ++i)
      if (const std::string why =
              named(i, difference(workers_.front().declared->plan, workers_[i].declared->plan));
          !why.empty()) {
        failure_ = Error{why};
        return why;
      }
    changed_.notify_all();
    return "";
  }
  static std::string named(std::uint32_t number, const std::string& why) {
    return why.empty() ? "" : concat("worker ", number, ' ', why);
  }

  const LaunchOptions& options_;
  ClusterOptions links_;
  const InterruptGuard& guard_;
  Children children_{
      {print, [this](std::size_t number, int status) { has_ended(number, status); }}};
  /// The processes declare their stores here.
  Process registry_{
      {[this](PeerId peer, std::uint64_t, node::Body& body) { received(peer, body); },
       [](PeerId) {}, [](PeerId) {}, [](PeerId, const std::string&) {},
       [](const std::string& text) { std::cerr << "leeway: " << text << std::endl; }}};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Worker> workers_;
  std::vector<Blob> values_;
  std::optional<Error> failure_;
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

// ---- the run ----

/// Worker i on the node of its process; shards and standbys on the other nodes, or in this process.
std::string placement(std::size_t workers, std::size_t nodes, bool replicas) {
  std::string place;
  for (std::size_t i = 0; i < workers; ++i) place += concat(i == 0 ? "workers=" : "+", i + 1);
  if (nodes == 0) return place + ",shards=0" + (replicas ? ",standbys=0" : "");
  place += ",shards=";
  for (std::size_t i = 0; i < nodes; ++i) place += concat(i == 0 ? "" : "+", workers + 1 + i);
  if (replicas) place += ",standbys=";
  for (std::size_t i = 1; replicas && i <= nodes; ++i)
    place += concat(i == 1 ? "" : "+", workers + 1 + i % nodes);
  return place;
}

void say(const std::string& text) {
  std::cerr << "leeway: " << text << std::endl;
}

int refuse(const std::string& text, int code = kExitRefused) {
  say(text);
  return code;
}

/// Runs the job that the workers have declared; returns the exit code. `began`: the plan of the run
/// that is resumed; null: none.
int run(const Workers& workers, const LaunchOptions& options, const CommandLine& first,
        const Plan* began) {
  Plan plan = workers.plan();
  plan.name = began ? began->name : name_of(options.program, options.arguments);
  plan.shards = first.plan.shards;
  CommandLine line = read_flags(std::move(plan), options.flags);
  if (line.exit_code) return *line.exit_code;
  if (began) {
    if (const std::string why = why_not_resumed(*began, workers.plan()); !why.empty())
      return refuse(why);
    if (const std::string note = ignored_settings(line.plan, *began, workers.plan()); !note.empty())
      say(note);
    register_if_numbered_samples(line.plan.data);
  }
  if (counts_zeros(line.plan.optimizer) && has_groups(line.plan.model))
    return refuse(
        "--optimizer: the keys are grouped for another optimizer; set this one in the program");
  try {
    line.plan.shards = shards_for(line.plan.model, line.plan.shards);
  } catch (const StoreError& error) {
    return refuse(error.what(), kExitFailed);
  }
  ClusterOptions cluster = *line.options.cluster;
  cluster.place = placement(first.plan.workers, cluster.nodes.size(), line.plan.replicas > 1);
  auto nodes = workers.names();
  nodes.insert(nodes.end(), cluster.nodes.begin(), cluster.nodes.end());
  cluster.nodes = std::move(nodes);
  line.options.cluster = std::make_shared<const ClusterOptions>(std::move(cluster));
  line.options.command = "leeway";
  const std::vector<Blob> values = began ? std::vector<Blob>() : workers.values();
  line.options.user_run = std::make_shared<UserRun>(UserRun{.loops = nullptr,
                                                            .initial_weights = values,
                                                            .workers_return = options.restart,
                                                            .command = options.command,
                                                            .program = program_text(options)});
  const Result result = leeway::run(line.plan, line.options);
  if (!result.error.empty()) say(result.error);
  return result.exit_code;
}

}  // namespace

int launch(const LaunchOptions& given) {
  register_tables();
  LaunchOptions options = given;
  const auto from = find_resumed(options.flags, name_of(options.program, options.arguments));
  if (!from) return refuse(concat("--resume: ", from.error().text));
  const Plan* const began = *from ? &(*from)->plan : nullptr;
  // Refuses wrong flags before any process starts.
  const CommandLine first = read_flags(began ? any_plan(began->name) : any_plan(), options.flags);
  if (first.exit_code) return *first.exit_code;
  const InterruptGuard guard;
  Workers workers(options, first.plan.workers, *first.options.cluster, guard);
  if (const Status started = workers.start(); !started) {
    say(started.error().text);
    return guard.interrupted() ? kExitInterrupted : kExitFailed;
  }
  const int code = run(workers, options, first, began);
  if (code != 0 && !guard.interrupted()) workers.fail("the run has failed");
  workers.end();
  return code;
}

std::size_t leading_launch_flags(const std::vector<std::string>& words) {
  register_tables();
  return leading_flags(Scenario(any_plan(), ""), words);
}

}  // namespace leeway::kv
