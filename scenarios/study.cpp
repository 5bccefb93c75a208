#include "study.hpp"

#include <leeway/actors/job.hpp>
#include <leeway/core/exit_codes.hpp>
#include <leeway/core/files.hpp>
#include <leeway/core/text.hpp>
#include <leeway/models/datasets/first_samples.hpp>
#include <leeway/models/datasets/load.hpp>
#include <leeway/monitoring/run_folder.hpp>
#include <leeway/runtime/flags/data.hpp>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <thread>

namespace leeway::study {

CommandLine parse_simulated(const Scenario& scenario, int argc, char** argv) {
  CommandLine line = parse(scenario, argc, argv);
  if (!line.plan.simulated) line.plan.simulated = plan::World{};
  return line;
}

std::string cell(std::size_t width, const std::string& text) {
  return std::string(text.size() < width ? width - text.size() : 1, ' ') + text;
}

Status set_iteration_time(Plan& plan, double seconds) {
  Plan one = plan;
  one.workers = one.shards = 1;
  one.consistency = bsp();
  one.stragglers.clear();
  one.faults.clear();
  one.stop = {.iterations = 1};
  one.evaluate_every = 0;
  one.simulated->cost_only = true;
  one.simulated->noise = 0;
  if (const auto valid = validate(one); !valid) return valid.error();
  const Result result = run(one, {.quiet = true});
  if (!result.ok()) return Error{result.error};
  plan.simulated->speed *= result.totals.workers.front().compute.seconds() / seconds;
  return {};
}

Status share_data(Plan& plan, std::int64_t test_samples) {
  auto data = load_data(plan.data, plan.seed);
  if (!data) return data.error();
  data->test = std::make_shared<FirstSamples>(data->test, test_samples);
  // Plans that differ only in their data or in its size differ in its name.
  const std::string path = data_path(plan.data);
  const std::string name =
      concat("shared, ", test_samples, " test samples", path.empty() ? "" : ": ", path);
  register_data(name, [shared = *data](std::uint64_t) -> Expected<TrainTest> { return shared; });
  plan.data = plan::CustomData{name};
  return {};
}

Status check(std::span<const Named> plans) {
  for (const auto& [name, plan] : plans) {
    const auto refused = [&](const Error& error) { return Error{concat(name, ": ", error.text)}; };
    if (const auto valid = validate(plan); !valid) return refused(valid.error());
    auto data = load_data(plan.data, plan.seed);
    if (!data) return refused(data.error());
    if (const auto job = make_job(plan, std::move(*data)); !job) return refused(job.error());
  }
  return {};
}

int in_parallel(std::size_t count, const std::function<Result(std::size_t)>& run,
                const std::function<int(std::size_t, const Result&)>& end) {
  std::atomic<std::size_t> next = 0;
  std::atomic<int> code = 0;
  std::mutex mutex;
  const auto work = [&] {
    for (std::size_t i; code == 0 && (i = next++) < count;) {
      const Result result = run(i);
      std::lock_guard lock(mutex);
      if (code == 0) code = end(i, result);
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back(work);
  threads.clear();  // joins them
  return code;
}

Report::Report(const CommandLine& line)
    : name_(line.plan.name), folder_(line.options.folder), quiet_(line.options.quiet) {}

Status Report::open(const std::string& continues) {
  continues_ = !continues.empty() && !folder_.empty();
  const bool again = !continues.empty() && std::filesystem::exists(folder_ + '/' + continues);
  return folder_.empty() || again ? Status() : make_study_folder(folder_);
}

void Report::print(const std::string& text) {
  if (!quiet_) std::cout << text << std::flush;
  if (folder_.empty()) return;
  table_ += text;
  store("table.txt", table_);
}

void Report::store(const std::string& file, const std::string& content) {
  const Status written = write_durably(disk(), folder_ + '/' + file, content);
  if (stored_) stored_ = written;
}

void Report::draw(std::span<const Chart> charts, const PictureOptions& options) {
  write("loss.svg", svg(charts, options));
}

void Report::write(const std::string& file, const std::string& content) {
  if (folder_.empty()) return;
  store(file, content);
  if (std::ranges::find(files_, file) == files_.end()) files_.push_back(file);
}

int Report::failed(const std::string& run, const Result& result) {
  std::cerr << name_ << ": " << run << ": " << (result.error.empty() ? "interrupted" : result.error)
            << '\n';
  if (result.error.empty() && continues_)
    std::cerr << name_ << ": continue with --out " << folder_ << '\n';
  if (!table_.empty()) end(" so far");
  return result.exit_code;
}

int Report::refuse(const std::string& text) {
  std::cerr << name_ << ": " << text << '\n';
  return kExitRefused;
}

int Report::end(const std::string& more) {
  if (!table_.empty())
    std::cout << "\nKept in " << folder_ << ": table.txt" << (files_.empty() ? "" : ", ")
              << join(files_, ", ") << more << std::endl;
  if (stored_) return kExitOk;
  std::cerr << name_ << ": " << stored_.error().text << '\n';
  return kExitFailed;
}

}  // namespace leeway::study
