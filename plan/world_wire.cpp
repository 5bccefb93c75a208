// A plan's world <-> Cap'n Proto.
#include "plan/wire.hpp"

namespace leeway::wire {

void write(plan_schema::World::Builder out, const plan::World& in) {
  out.setNodes(static_cast<plan_schema::World::Nodes>(in.nodes));
  out.setCores(in.cores);
  out.setSpeed(in.speed);
  out.setMemory(in.memory);
  out.setNoise(in.noise);
  out.setLatencyUs(in.latency_us);
  out.setLocalLatencyUs(in.local_latency_us);
  out.setJitter(in.jitter);
  out.setLink(in.link);
  out.setDetectionMs(in.detection_ms);
  out.setCostOnly(in.cost_only);
  out.setMessageUs(in.message_us);
  out.setTimerUs(in.timer_us);
  out.setSliceUs(in.slice_us);
  out.setContention(in.contention);
  out.setCold(in.cold);
}

plan::World read(plan_schema::World::Reader in) {
  plan::World out;
  out.nodes = read_enum(in.getNodes(), plan::World::Nodes::one, "world.nodes");
  out.cores = in.getCores();
  out.speed = in.getSpeed();
  out.memory = in.getMemory();
  out.noise = in.getNoise();
  out.latency_us = in.getLatencyUs();
  out.local_latency_us = in.getLocalLatencyUs();
  out.jitter = in.getJitter();
  out.link = in.getLink();
  out.detection_ms = in.getDetectionMs();
  out.cost_only = in.getCostOnly();
  out.message_us = in.getMessageUs();
  out.timer_us = in.getTimerUs();
  out.slice_us = in.getSliceUs();
  out.contention = in.getContention();
  out.cold = in.getCold();
  return out;
}

}  // namespace leeway::wire
