#include "actors/shard/bucket_queues.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/check.hpp"

namespace leeway {

BucketQueues::BucketQueues(const std::shared_ptr<const Job>& job, ShardId shard, FirstState first) {
  const Device device = job->devices.shard(shard.value());
  for (const Bucket& bucket : job->layout->buckets(shard))
    buckets_.push_back({std::make_unique<ParameterBucket>(job, bucket, device, first), nullptr, 0});
  LW_CHECK(!buckets_.empty(), shard);  // make_job refuses such a layout
}

bool BucketQueues::is_idle() const {
  return std::all_of(buckets_.begin(), buckets_.end(),
                     [](const Entry& entry) { return entry.parameters->is_idle(); });
}

bool BucketQueues::is_plain() const {
  return std::all_of(buckets_.begin(), buckets_.end(),
                     [](const Entry& entry) { return entry.parameters->is_plain(); });
}

std::vector<msg::StoredBlock> BucketQueues::save() const {
  std::vector<msg::StoredBlock> blocks;
  for (const Entry& entry : buckets_) entry.parameters->save(blocks);
  return blocks;
}

void BucketQueues::restore(const std::vector<msg::StoredBlock>& blocks) {
  for (const msg::StoredBlock& block : blocks)
    for (Entry& entry : buckets_) entry.parameters->restore(block);
  for (Entry& entry : buckets_) count_kept(entry);
}

void BucketQueues::forget(std::uint32_t bucket, WorkerId worker, Iteration upto) {
  if (buckets_[bucket].parameters->follows_pulls())
    enqueue(bucket, ParameterBucket::Forget{worker, upto});
}

void BucketQueues::forget(WorkerId worker, Outbox& out) {
  for (std::uint32_t bucket = 0; bucket < size(); ++bucket) {
    forget(bucket, worker, Iteration(std::numeric_limits<std::int64_t>::max()));
    run(bucket, out);
  }
}

void BucketQueues::run(std::uint32_t bucket, Outbox& out) {
  Entry& entry = buckets_[bucket];
  if (entry.running) return;
  entry.running = entry.parameters->advance();
  count_kept(entry);
  if (entry.running) out.compute(entry.running);
}

void BucketQueues::count_kept(Entry& entry) {
  const std::uint64_t bytes = entry.parameters->kept_bytes();
  kept_bytes_ += bytes - std::exchange(entry.kept_bytes, bytes);
  most_kept_bytes_ = std::max(most_kept_bytes_, kept_bytes_);
}

void BucketQueues::run_scaled(std::uint32_t bucket, float scale, Outbox& out) {
  Entry& entry = buckets_[bucket];
  LW_CHECK(!entry.running, bucket);
  entry.running = entry.parameters->scaled(scale);
  out.compute(entry.running);
}

std::uint32_t BucketQueues::take(const Work& work) {
  const auto entry = std::find_if(buckets_.begin(), buckets_.end(),
                                  [&](const Entry& other) { return other.running.get() == &work; });
  LW_CHECK(entry != buckets_.end(), "finished work of no bucket");
  entry->running.reset();
  return static_cast<std::uint32_t>(entry - buckets_.begin());
}

std::uint32_t BucketQueues::measured(const Work& work) {
  return take(work);
}

BucketQueues::Finished BucketQueues::finish(const Work& work) {
  const std::uint32_t bucket = take(work);
  return {bucket, buckets_[bucket].parameters->finish()};
}

}  // namespace leeway
