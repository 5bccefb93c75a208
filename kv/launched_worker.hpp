#pragma once
// LaunchedWorker: a process that `leeway launch` has started, as one worker. The user's loop runs
// on the process's own thread, and a node agent with the worker on another.
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "cluster/agent_process.hpp"
#include "kv/run.hpp"
#include "kv/shared_store.hpp"

namespace leeway::kv {

/// Variables that the launcher sets in the environment of its workers.
namespace variable {
inline constexpr const char* kLauncher = "LEEWAY_LAUNCHER";  // HOST:PORT
inline constexpr const char* kWorker = "LEEWAY_WORKER";      // number of the worker
inline constexpr const char* kWorkers = "LEEWAY_WORKERS";
inline constexpr const char* kListen = "LEEWAY_LISTEN";  // HOST:PORT of the process
inline constexpr const char* kTls = "LEEWAY_TLS";        // folder; empty: none
inline constexpr const char* kTransport = "LEEWAY_TRANSPORT";
inline constexpr const char* kSilence = "LEEWAY_SILENCE";
// For programs that load leeway/kv.h at run time:
inline constexpr const char* kLibrary = "LEEWAY_KV_LIBRARY";  // path of libleeway_kv.so
}  // namespace variable

class LaunchedWorker final : public StoreSite {
 public:
  /// Reads the environment. The error says how to start the process.
  static Expected<std::shared_ptr<LaunchedWorker>> open(const Options& options);
  /// The worker leaves the cluster.
  ~LaunchedWorker() override;

  WorkerId worker() const { return worker_; }
  const std::shared_ptr<UserLoop>& loop() const;

  std::uint32_t workers() const override { return options_.workers; }
  bool has_samples() const override { return options_.samples > 0; }
  void declared(WorkerId worker, const Declarations& declarations) override;
  std::shared_ptr<const Job> job() const override;

 private:
  class Loops;

  explicit LaunchedWorker(const Options& options);
  Status read_environment();
  /// The node agent, until the worker leaves.
  void serve();

  Options options_;
  WorkerId worker_{0};
  AgentProcessOptions agent_;
  const std::shared_ptr<Loops> loops_;
  std::atomic<bool> leaves_ = false;
  std::thread thread_;
};

}  // namespace leeway::kv
