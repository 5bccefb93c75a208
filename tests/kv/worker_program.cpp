// A program for launch_test: worker_program TYPE MODE [EPOCHS].
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "kv.hpp"

namespace {

using leeway::KvStore;
using leeway::Shape;

/// Counts the samples of all ranges.
void count(KvStore& store) {
  float none = 0;
  store.init("count", {&none, {}});
  while (const auto range = store.next_range()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const auto samples = static_cast<float>(range->samples.size());
    store.push("count", {&samples, {}});
  }
}

/// Pushes the number of the worker, from 1, in each of five rounds, to keys of several sizes.
void sum(KvStore& store) {
  const Shape large{600, 700}, small{3, 5};
  const std::vector<float> zeros(static_cast<std::size_t>(large.count()), 0.0f);
  const std::vector<float> ones(zeros.size(), static_cast<float>(store.rank() + 1));
  store.init("large", {zeros.data(), large});
  store.init(7, {zeros.data(), small});
  for (int round = 0; round < 5; ++round) {
    store.push("large", {ones.data(), large});
    store.push(7, {ones.data(), small});
    store.end_iteration();
  }
}

void other_shapes(KvStore& store) {
  const float x[2] = {};
  store.init("w", {x, {store.rank() + 1}});
  store.end_iteration();
}

/// Worker 1 ends in its fourth iteration; the others go on for a while.
void end_early(KvStore& store, const std::string& mode) {
  float one = 1;
  store.init("w", {&one, {}});
  for (int i = 0; i < 30; ++i) {
    store.push("w", {&one, {}});
    store.end_iteration();
    if (store.rank() != 1 || i < 3) continue;
    if (mode == "throws") throw std::runtime_error("a fault of the user's");
    if (mode == "exits") std::_Exit(0);
    if (mode == "calls exit") std::exit(1);
    if (mode == "returns") return;
  }
}

/// Says where it begins, and counts the iterations until 1,500.
void go_on(KvStore& store) {
  const float zero = 0, one = 1;
  store.init("w", {&zero, {}});
  std::cout << "begins at " << store.iteration() << " with " << store.get("w")[0] << std::endl;
  while (store.iteration() < 1500) {
    std::this_thread::sleep_for(std::chrono::milliseconds(4));
    store.push("w", {&one, {}});
    store.end_iteration();
  }
}

/// Worker 0 sets the optimizer, and has its keys in another order.
void declare_apart(KvStore& store) {
  const float zero = 0, one = 1;
  for (const char* key : {store.rank() == 0 ? "a" : "b", store.rank() == 0 ? "b" : "a"})
    store.init(key, {&zero, {}});
  if (store.rank() == 0) store.set_optimizer(leeway::sgd(0.5));
  store.push("b", {&one, {}});
  store.end_iteration();
}

/// Tries again after each error.
void declare_nothing(KvStore& store) {
  for (int i = 0; i < 3; ++i) {
    try {
      store.end_iteration();
    } catch (const leeway::kv::StoreError& error) {
      std::cout << error.what() << std::endl;
    }
  }
}

void flood(KvStore& store) {
  for (int i = 0; i < 200000; ++i) std::cout << "line " << i << '\n';
  std::cout << "50%\r100%\r" << std::flush;
  sum(store);
}

/// The largest gradient, by an updater of the server's; then a new value of worker 1.
void update(KvStore& store) {
  const float zero = 0, mine = static_cast<float>(store.rank() + 1), replaced = 100;
  for (const char* key : {"largest", "replaced"}) store.init(key, {&zero, {}});
  store.set_updater("keep largest");
  store.push("largest", {&mine, {}});
  store.push("replaced", {&mine, {}});
  store.barrier();
  if (store.rank() == 1) store.set("replaced", {&replaced, {}}).wait();
  store.barrier();
  const float found = store.get("replaced")[0];
  if (found != replaced) throw std::runtime_error("found " + std::to_string(found));
}

/// Ends each phase at a barrier; worker 1 is slower.
void wait_in_phases(KvStore& store, int phases) {
  const float one = 1;
  float sum = 0;
  store.init("sum", {&sum, {}});
  for (int phase = 0; phase < phases; ++phase) {
    if (store.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    store.push("sum", {&one, {}});
    store.barrier();
  }
}

void wait_for_ever(KvStore& store) {
  if (store.rank() == 1) std::this_thread::sleep_for(std::chrono::hours(1));
  float one = 1;
  store.init("w", {&one, {}});
  store.end_iteration();
}

void run(const std::string& type, const std::string& mode, double epochs) {
  const bool counts = mode == "count";
  KvStore store = KvStore::create(
      type, {.samples = counts ? 600 : 0, .batch = 10, .epochs = epochs, .seed = 3});
  if (mode == "twice") KvStore::create(type);
  if (counts) return count(store);
  if (mode == "sum") return sum(store);
  if (mode == "shapes") return other_shapes(store);
  if (mode == "apart") return declare_apart(store);
  if (mode == "nothing") return declare_nothing(store);
  if (mode == "floods") return flood(store);
  if (mode == "updates") return update(store);
  if (mode == "phases") return wait_in_phases(store, 100);
  if (mode == "waits") return wait_for_ever(store);
  if (mode == "goes on") return go_on(store);
  end_early(store, mode);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argv[1], argv[2], argc > 3 ? std::atof(argv[3]) : 1);
    std::cout << "done" << std::endl;
    return 0;
  } catch (const leeway::kv::StoreError& error) {
    std::cout << "store error: " << error.what() << std::endl;
    return 1;
  }
}
