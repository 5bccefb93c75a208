#include "models/profile.hpp"

#include <chrono>

namespace leeway {

namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

void Profile::add(const std::string& where, const std::string& what, double seconds, double flops,
                  double bytes) {
  std::lock_guard lock(mutex_);
  const auto [found, fresh] = index_.try_emplace({where, what}, rows_.size());
  if (fresh) rows_.push_back({where, what});
  Row& row = rows_[found->second];
  ++row.calls;
  row.seconds += seconds;
  row.flops += flops;
  row.bytes += bytes;
}

std::vector<Profile::Row> Profile::rows() const {
  std::lock_guard lock(mutex_);
  return rows_;
}

Profile::Timer::Timer(Profile* profile, Executor& on) : profile_(profile), on_(on) {
  if (!profile_) return;
  on_.synchronize();
  began_ns_ = now_ns();
}

void Profile::Timer::end(const std::string& where, const char* what, double flops, double bytes) {
  if (!profile_) return;
  on_.synchronize();
  profile_->add(where, what, static_cast<double>(now_ns() - began_ns_) * 1e-9, flops, bytes);
}

}  // namespace leeway
