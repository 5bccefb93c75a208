#pragma once
// PrometheusExporter: serves the metrics of a run to Prometheus (docs/metrics.md).
#include <memory>
#include <string>

#include "actors/monitor/monitor.hpp"
#include "core/address.hpp"
#include "core/time.hpp"
#include "messages/events.hpp"
#include "monitoring/listen_address.hpp"

namespace leeway {

/// Answers GET /metrics over HTTP until it is destroyed, in Prometheus's text format. It accepts
/// every caller: an address that other machines reach shows the metrics to all of them.
class PrometheusExporter final : public Audience {
 public:
  /// `address`: [HOST:]PORT, where HOST is a name, an IPv4 address or an IPv6 address in brackets,
  /// 127.0.0.1 by default. Port 0 is any free port. Errors: not such an address; the system refuses
  /// to listen there.
  static Expected<std::unique_ptr<PrometheusExporter>> open(const std::string& address,
                                                            const Job& job);
  ~PrometheusExporter() override;

  /// Where the metrics are: "http://127.0.0.1:9464/metrics".
  const std::string& url() const { return url_; }

  /// Counts an event. Several threads may call it at once, also during the calls of the audience.
  void event(Address actor, Instant at, const Event& event);

  void progress(const Progress& progress) override;
  void evaluated(const EvaluationResult& result) override;
  void checkpointed(const CheckpointResult& result) override;
  void evicted(WorkerId worker, const msg::Evicted& evicted) override;
  void came_back(WorkerId worker) override;
  void replicas_changed(const msg::ReplicasChanged& changed) override;
  void ended(const RunTotals& totals) override;

 private:
  class Metrics;

  PrometheusExporter(std::shared_ptr<Metrics> metrics, std::shared_ptr<void> server,
                     ListenAddress address);

  std::shared_ptr<Metrics> metrics_;
  std::shared_ptr<void> server_;  // reads the metrics
  const ListenAddress address_;
  const std::string url_;
};

}  // namespace leeway
