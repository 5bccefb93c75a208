// The functions of leeway/kv.h.
#include "kv.h"

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/limits.hpp"
#include "core/text.hpp"
#include "kv/serve.hpp"
#include "kv/store.hpp"
#include "policies/optimizer/updater.hpp"
#include "runtime/flags/optimizer_text.hpp"

using leeway::concat;
using leeway::Shape;
using leeway::kv::ConstView;
using leeway::kv::ElementType;
using leeway::kv::Handle;
using leeway::kv::Key;
using leeway::kv::StoreError;
using leeway::kv::View;

struct leeway_kv {
  explicit leeway_kv(leeway::kv::Store of) : store(std::move(of)) {}
  leeway::kv::Store store;
  leeway::kv::Range range;
  std::vector<std::string> keys;  // in the order of init
};

struct leeway_kv_handle {
  Handle handle;
};

namespace {

thread_local std::string latest_error;

leeway_kv_status failed(leeway_kv_status status, const std::string& text) {
  latest_error = text;
  return status;
}

/// Runs a call. No exception may reach C.
template <class Call>
leeway_kv_status guarded(Call call) {
  try {
    return call();
  } catch (const leeway::kv::Lost& error) {
    return failed(LEEWAY_KV_LOST, error.what());
  } catch (const leeway::kv::Ended& error) {
    return failed(LEEWAY_KV_ENDED, error.what());
  } catch (const std::exception& error) {
    return failed(LEEWAY_KV_ERROR, error.what());
  }
}

Shape shape_of(const char* key, const std::int64_t* extents, int rank) {
  if (rank < 0 || rank > static_cast<int>(leeway::limits::kMaxRank) || (rank > 0 && !extents))
    throw StoreError(concat("key \"", key, "\": give a rank from 0 to ", leeway::limits::kMaxRank,
                            " and as many extents"));
  return Shape(std::vector<std::int64_t>(extents, extents + rank));
}

ElementType element_type(int type) {
  switch (type) {
    case LEEWAY_KV_F32:
      return ElementType::f32;
    case LEEWAY_KV_F64:
      return ElementType::f64;
    case LEEWAY_KV_BF16:
      return ElementType::bf16;
    case LEEWAY_KV_F16:
      return ElementType::f16;
  }
  throw StoreError(concat("element type ", type,
                          ": give LEEWAY_KV_F32, LEEWAY_KV_F64, LEEWAY_KV_BF16 or LEEWAY_KV_F16"));
}

leeway_kv_status give(leeway_kv_handle** out, Handle handle) {
  if (out) *out = new leeway_kv_handle{std::move(handle)};
  return LEEWAY_KV_OK;
}

leeway_kv_status give_or_wait(leeway_kv_handle** out, Handle handle) {
  if (!out) handle.wait();
  return give(out, std::move(handle));
}

}  // namespace

const char* leeway_kv_error(void) {
  return latest_error.c_str();
}

// ---- stores ----

leeway_kv_options leeway_kv_default_options(void) {
  const leeway::kv::StoreOptions usual;
  return {usual.samples, usual.batch, usual.epochs, usual.seed};
}

leeway_kv_status leeway_kv_create(const char* type, const leeway_kv_options* options,
                                  leeway_kv** kv) {
  return guarded([&] {
    const leeway_kv_options given = options ? *options : leeway_kv_default_options();
    auto store = leeway::kv::Store::create(type, {.samples = given.samples,
                                                  .batch = given.batch,
                                                  .epochs = given.epochs,
                                                  .seed = given.seed});
    *kv = new leeway_kv(std::move(store));
    return LEEWAY_KV_OK;
  });
}

leeway_kv_status leeway_kv_close(leeway_kv* kv) {
  std::unique_ptr<leeway_kv> owned(kv);
  if (!kv) return LEEWAY_KV_OK;
  return guarded([&] {
    try {
      owned->store.close();
    } catch (const leeway::kv::Busy&) {
      (void)owned.release();  // the other thread still uses it
      throw;
    }
    return LEEWAY_KV_OK;
  });
}

void leeway_kv_abandon(leeway_kv* kv) {
  const std::unique_ptr<leeway_kv> owned(kv);
  if (kv) owned->store.abandon();
}

// ---- before the first iteration ----

leeway_kv_status leeway_kv_init_as(leeway_kv* kv, const char* key, int type, const void* values,
                                   const std::int64_t* shape, int rank) {
  return guarded([&] {
    kv->store.init(key, {values, shape_of(key, shape, rank), element_type(type)});
    kv->keys.emplace_back(key);
    return LEEWAY_KV_OK;
  });
}

leeway_kv_status leeway_kv_init(leeway_kv* kv, const char* key, const float* values,
                                const std::int64_t* shape, int rank) {
  return leeway_kv_init_as(kv, key, LEEWAY_KV_F32, values, shape, rank);
}

leeway_kv_status leeway_kv_set_optimizer(leeway_kv* kv, const char* optimizer,
                                         double learning_rate) {
  return guarded([&] {
    auto parsed = leeway::parse_optimizer(optimizer, "set_optimizer");
    if (!parsed) throw StoreError(parsed.error().text);
    if (learning_rate > 0) parsed->learning_rate = learning_rate;
    kv->store.set_optimizer(*parsed);
    return LEEWAY_KV_OK;
  });
}

leeway_kv_status leeway_kv_set_updater(leeway_kv* kv, const char* name) {
  return guarded([&] {
    kv->store.set_updater(name);
    return LEEWAY_KV_OK;
  });
}

// ---- the training loop ----

leeway_kv_status leeway_kv_pull_as(leeway_kv* kv, const char* key, int type, void* out,
                                   const std::int64_t* shape, int rank, leeway_kv_handle** handle) {
  return guarded([&] {
    return give_or_wait(handle,
                        kv->store.pull(key, {out, shape_of(key, shape, rank), element_type(type)}));
  });
}

leeway_kv_status leeway_kv_pull(leeway_kv* kv, const char* key, float* out,
                                const std::int64_t* shape, int rank, leeway_kv_handle** handle) {
  return leeway_kv_pull_as(kv, key, LEEWAY_KV_F32, out, shape, rank, handle);
}

leeway_kv_status leeway_kv_push_as(leeway_kv* kv, const char* key, int type, const void* gradient,
                                   const std::int64_t* shape, int rank, leeway_kv_handle** handle) {
  return guarded([&] {
    return give(handle,
                kv->store.push(key, {gradient, shape_of(key, shape, rank), element_type(type)}));
  });
}

leeway_kv_status leeway_kv_push(leeway_kv* kv, const char* key, const float* gradient,
                                const std::int64_t* shape, int rank, leeway_kv_handle** handle) {
  return leeway_kv_push_as(kv, key, LEEWAY_KV_F32, gradient, shape, rank, handle);
}

leeway_kv_status leeway_kv_push_pull_as(leeway_kv* kv, const char* key, int type,
                                        const void* gradient, void* out, const std::int64_t* shape,
                                        int rank, leeway_kv_handle** handle) {
  return guarded([&] {
    const Shape whole = shape_of(key, shape, rank);
    const ElementType element = element_type(type);
    return give_or_wait(
        handle, kv->store.push_pull(key, {gradient, whole, element}, {out, whole, element}));
  });
}

leeway_kv_status leeway_kv_push_pull(leeway_kv* kv, const char* key, const float* gradient,
                                     float* out, const std::int64_t* shape, int rank,
                                     leeway_kv_handle** handle) {
  return leeway_kv_push_pull_as(kv, key, LEEWAY_KV_F32, gradient, out, shape, rank, handle);
}

leeway_kv_status leeway_kv_set_as(leeway_kv* kv, const char* key, int type, const void* weights,
                                  const std::int64_t* shape, int rank, leeway_kv_handle** handle) {
  return guarded([&] {
    return give(handle,
                kv->store.set(key, {weights, shape_of(key, shape, rank), element_type(type)}));
  });
}

leeway_kv_status leeway_kv_set(leeway_kv* kv, const char* key, const float* weights,
                               const std::int64_t* shape, int rank, leeway_kv_handle** handle) {
  return leeway_kv_set_as(kv, key, LEEWAY_KV_F32, weights, shape, rank, handle);
}

leeway_kv_status leeway_kv_pull_many(leeway_kv* kv, const leeway_kv_tensor* outs, std::size_t count,
                                     leeway_kv_handle** handle) {
  return guarded([&] {
    std::vector<std::pair<Key, View>> pairs;
    for (const leeway_kv_tensor& one : std::span(outs, count))
      pairs.emplace_back(
          one.key, View{one.data, shape_of(one.key, one.shape, one.rank), element_type(one.type)});
    return give_or_wait(handle, kv->store.pull(pairs));
  });
}

leeway_kv_status leeway_kv_push_many(leeway_kv* kv, const leeway_kv_tensor* gradients,
                                     std::size_t count, leeway_kv_handle** handle) {
  return guarded([&] {
    std::vector<std::pair<Key, ConstView>> pairs;
    for (const leeway_kv_tensor& one : std::span(gradients, count))
      pairs.emplace_back(one.key, ConstView{one.data, shape_of(one.key, one.shape, one.rank),
                                            element_type(one.type)});
    return give(handle, kv->store.push(pairs));
  });
}

leeway_kv_status leeway_kv_gradient(leeway_kv* kv, const char* key, float** memory) {
  return guarded([&] {
    *memory = kv->store.gradient(key).floats();
    return LEEWAY_KV_OK;
  });
}

leeway_kv_status leeway_kv_push_gradient(leeway_kv* kv, const char* key,
                                         leeway_kv_handle** handle) {
  return guarded([&] { return give(handle, kv->store.push(key)); });
}

leeway_kv_status leeway_kv_view(leeway_kv* kv, const char* key, const float** weights) {
  return guarded([&] {
    *weights = kv->store.view(key).floats();
    return LEEWAY_KV_OK;
  });
}

leeway_kv_status leeway_kv_end_iteration(leeway_kv* kv) {
  return guarded([&] {
    kv->store.end_iteration();
    return LEEWAY_KV_OK;
  });
}

leeway_kv_status leeway_kv_barrier(leeway_kv* kv) {
  return guarded([&] {
    kv->store.barrier();
    return LEEWAY_KV_OK;
  });
}

leeway_kv_status leeway_kv_next_range(leeway_kv* kv, leeway_kv_range* range) {
  return guarded([&] {
    auto next = kv->store.next_range();
    if (!next) return failed(LEEWAY_KV_ENDED, "all epochs are trained, or the run is over");
    kv->range = std::move(*next);
    *range = {kv->range.epoch, kv->range.samples.size(), kv->range.samples.data()};
    return LEEWAY_KV_OK;
  });
}

std::size_t leeway_kv_key_count(const leeway_kv* kv) {
  return kv->keys.size();
}

const char* leeway_kv_key(const leeway_kv* kv, std::size_t index) {
  return index < kv->keys.size() ? kv->keys[index].c_str() : nullptr;
}

std::uint32_t leeway_kv_rank(const leeway_kv* kv) {
  return kv->store.rank();
}

std::uint32_t leeway_kv_workers(const leeway_kv* kv) {
  return kv->store.workers();
}

leeway_kv_status leeway_kv_iteration(leeway_kv* kv, std::int64_t* iteration) {
  return guarded([&] {
    *iteration = kv->store.iteration();
    return LEEWAY_KV_OK;
  });
}

std::int64_t leeway_kv_iterations(const leeway_kv* kv) {
  std::int64_t number = -1;
  guarded([&] {
    number = kv->store.iterations();
    return LEEWAY_KV_OK;
  });
  return number;
}

// ---- handles ----

leeway_kv_status leeway_kv_wait(leeway_kv_handle* handle) {
  return guarded([&] {
    handle->handle.wait();
    return LEEWAY_KV_OK;
  });
}

int leeway_kv_done(leeway_kv_handle* handle) {
  int done = -1;
  guarded([&] {
    done = handle->handle.done() ? 1 : 0;
    return LEEWAY_KV_OK;
  });
  return done;
}

leeway_kv_status leeway_kv_then(leeway_kv_handle* handle, void (*next)(void* context),
                                void* context) {
  return guarded([&] {
    handle->handle.then([=] { next(context); });
    return LEEWAY_KV_OK;
  });
}

void leeway_kv_free(leeway_kv_handle* handle) {
  delete handle;
}

// ---- the program of the shards ----

leeway_kv_status leeway_kv_register_updater(const char* name, leeway_kv_updater update,
                                            void* context) {
  return guarded([&] {
    if (!name || !*name || !update)
      throw StoreError("register_updater: give a name and a function");
    leeway::register_updater(name, [=](const leeway::UpdaterCall& call) {
      update(context, std::string(call.key).c_str(), call.first, call.gradient.data(),
             call.weights.data(), call.weights.size());
    });
    return LEEWAY_KV_OK;
  });
}

int leeway_kv_serve(int argc, char** argv) {
  return leeway::kv::serve(argc, argv);
}
