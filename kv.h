#ifndef LEEWAY_KV_H
#define LEEWAY_KV_H
/* Stores for C and other languages, in the library libleeway_kv (docs/kv.md). leeway/kv.hpp is the
 * same for C++, and documents iterations and updates.
 *
 * Example, started as `leeway launch --workers 4 ./mean`:
 *
 *   #include <leeway/kv.h>
 *   #include <stdio.h>
 *
 *   int main(void) {
 *     leeway_kv_options options = leeway_kv_default_options();
 *     options.samples = 1000;
 *     leeway_kv* kv = NULL;
 *     float mean = 0;
 *     leeway_kv_range range;
 *     if (leeway_kv_create("dist_ssp(3)", &options, &kv) ||
 *         leeway_kv_init(kv, "mean", &mean, NULL, 0) ||
 *         leeway_kv_set_optimizer(kv, "sgd", 0.1)) {
 *       fprintf(stderr, "%s\n", leeway_kv_error());
 *       return 1;
 *     }
 *     while (leeway_kv_next_range(kv, &range) == LEEWAY_KV_OK) {
 *       float gradient = 0;
 *       if (leeway_kv_pull(kv, "mean", &mean, NULL, 0, NULL)) break;
 *       for (size_t i = 0; i < range.count; ++i)
 *         gradient += (mean - (float)range.samples[i]) / (float)range.count;
 *       if (leeway_kv_push(kv, "mean", &gradient, NULL, 0, NULL)) break;
 *     }
 *     return leeway_kv_close(kv);
 *   }
 *
 * Tensors are row-major: `rank` extents in `shape`, which may be NULL for a scalar of rank 0. Their
 * elements are floats, or of the type that is given to a function whose name ends in _as. Shards
 * keep floats. Keys are strings; the key 7 is "7". A store and its handles belong to one thread.
 */
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define LEEWAY_KV_API __attribute__((visibility("default")))
#else
#define LEEWAY_KV_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct leeway_kv leeway_kv;
/* A push or a pull. A handle must be freed before its store is closed, and not used afterwards. */
typedef struct leeway_kv_handle leeway_kv_handle;

typedef enum leeway_kv_status {
  LEEWAY_KV_OK = 0,
  LEEWAY_KV_ERROR = 1, /* leeway_kv_error() says what to do */
  LEEWAY_KV_ENDED = 2, /* the run is over; of next_range: all epochs are trained */
  LEEWAY_KV_LOST = 3   /* the worker of this process is lost; the run may continue */
} leeway_kv_status;

/* The text of the latest status of this thread that was not LEEWAY_KV_OK. Valid until the next
 * call. */
LEEWAY_KV_API const char* leeway_kv_error(void);

typedef struct leeway_kv_options {
  int64_t samples; /* per epoch, for next_range; 0: the loops decide when they end */
  uint32_t batch;  /* samples of an iteration */
  double epochs;
  uint64_t seed;
} leeway_kv_options;

LEEWAY_KV_API leeway_kv_options leeway_kv_default_options(void);

/* `type`: local, dist_sync, dist_async, dist_ssp(S), dist_backup(B), dist_quorum(K,GRACE),
 * dist_adaptive(LOW,HIGH) or dist_auto. `options` may be NULL. */
LEEWAY_KV_API leeway_kv_status leeway_kv_create(const char* type, const leeway_kv_options* options,
                                                leeway_kv** kv);
/* Ends the iteration, leaves the run, and frees the store, also if it fails; but not while another
 * thread is in a call of the store. */
LEEWAY_KV_API leeway_kv_status leeway_kv_close(leeway_kv* kv);
/* Frees the store without its iteration, as if the process had died. */
LEEWAY_KV_API void leeway_kv_abandon(leeway_kv* kv);

/* Types of elements. f16: IEEE 754 binary16. bf16: the upper half of a float. */
typedef enum leeway_kv_type {
  LEEWAY_KV_F32 = 0,
  LEEWAY_KV_F64 = 1,
  LEEWAY_KV_BF16 = 2,
  LEEWAY_KV_F16 = 3
} leeway_kv_type;

/* ---- before the first push, pull or range ---- */

/* Adds a key. All workers add the same keys; the values of worker 0 count. */
LEEWAY_KV_API leeway_kv_status leeway_kv_init(leeway_kv* kv, const char* key, const float* values,
                                              const int64_t* shape, int rank);
LEEWAY_KV_API leeway_kv_status leeway_kv_init_as(leeway_kv* kv, const char* key,
                                                 int type, const void* values,
                                                 const int64_t* shape, int rank);
/* `optimizer`: sgd, momentum, nesterov, adam, adamw, adagrad, nadam, lion, muon, delayed_nesterov, sum
 * or assign, with numbers if they are not the defaults: "momentum(0.95)". `learning_rate` <= 0: the
 * default of the optimizer. */
LEEWAY_KV_API leeway_kv_status leeway_kv_set_optimizer(leeway_kv* kv, const char* optimizer,
                                                       double learning_rate);
/* A function that the process of the shards has registered. */
LEEWAY_KV_API leeway_kv_status leeway_kv_set_updater(leeway_kv* kv, const char* name);

/* ---- the training loop ---- */

/* `handle` may be NULL: then a pull waits for the weights, and a push does not wait; to wait for a
 * push, give a handle to leeway_kv_wait. Buffers of a pull must exist until it is done; those of
 * push and set may be changed on return. */
LEEWAY_KV_API leeway_kv_status leeway_kv_pull(leeway_kv* kv, const char* key, float* out,
                                              const int64_t* shape, int rank,
                                              leeway_kv_handle** handle);
LEEWAY_KV_API leeway_kv_status leeway_kv_push(leeway_kv* kv, const char* key, const float* gradient,
                                              const int64_t* shape, int rank,
                                              leeway_kv_handle** handle);
/* Pushes, ends the iteration, and pulls. */
LEEWAY_KV_API leeway_kv_status leeway_kv_push_pull(leeway_kv* kv, const char* key,
                                                   const float* gradient, float* out,
                                                   const int64_t* shape, int rank,
                                                   leeway_kv_handle** handle);
/* Replaces the weights of a key. */
LEEWAY_KV_API leeway_kv_status leeway_kv_set(leeway_kv* kv, const char* key, const float* weights,
                                             const int64_t* shape, int rank,
                                             leeway_kv_handle** handle);
/* The same with elements of another type, rounded to nearest where they are narrowed. */
LEEWAY_KV_API leeway_kv_status leeway_kv_pull_as(leeway_kv* kv, const char* key,
                                                 int type, void* out,
                                                 const int64_t* shape, int rank,
                                                 leeway_kv_handle** handle);
LEEWAY_KV_API leeway_kv_status leeway_kv_push_as(leeway_kv* kv, const char* key,
                                                 int type, const void* gradient,
                                                 const int64_t* shape, int rank,
                                                 leeway_kv_handle** handle);
LEEWAY_KV_API leeway_kv_status leeway_kv_push_pull_as(leeway_kv* kv, const char* key,
                                                      int type, const void* gradient,
                                                      void* out, const int64_t* shape, int rank,
                                                      leeway_kv_handle** handle);
LEEWAY_KV_API leeway_kv_status leeway_kv_set_as(leeway_kv* kv, const char* key,
                                                int type, const void* weights,
                                                const int64_t* shape, int rank,
                                                leeway_kv_handle** handle);
/* Several keys in one call. */
typedef struct leeway_kv_tensor {
  const char* key;
  void* data; /* read by pushes, written by pulls */
  int type;   /* a leeway_kv_type */
  const int64_t* shape;
  int rank;
} leeway_kv_tensor;
LEEWAY_KV_API leeway_kv_status leeway_kv_pull_many(leeway_kv* kv, const leeway_kv_tensor* outs,
                                                   size_t count, leeway_kv_handle** handle);
LEEWAY_KV_API leeway_kv_status leeway_kv_push_many(leeway_kv* kv, const leeway_kv_tensor* gradients,
                                                   size_t count, leeway_kv_handle** handle);

/* Memory of the store for the key's gradient, as floats, until push_gradient sends it without a copy. */
LEEWAY_KV_API leeway_kv_status leeway_kv_gradient(leeway_kv* kv, const char* key, float** memory);
LEEWAY_KV_API leeway_kv_status leeway_kv_push_gradient(leeway_kv* kv, const char* key,
                                                       leeway_kv_handle** handle);
/* The weights of a key as floats, without a copy, until the iteration ends. */
LEEWAY_KV_API leeway_kv_status leeway_kv_view(leeway_kv* kv, const char* key,
                                              const float** weights);
LEEWAY_KV_API leeway_kv_status leeway_kv_end_iteration(leeway_kv* kv);
/* Ends the iteration and waits for all workers of the run. */
LEEWAY_KV_API leeway_kv_status leeway_kv_barrier(leeway_kv* kv);

typedef struct leeway_kv_range {
  int64_t epoch;
  size_t count;
  const int64_t* samples; /* their numbers; valid until the next range */
} leeway_kv_range;

/* The samples of the next iteration; LEEWAY_KV_ENDED when all epochs are trained. */
LEEWAY_KV_API leeway_kv_status leeway_kv_next_range(leeway_kv* kv, leeway_kv_range* range);

LEEWAY_KV_API size_t leeway_kv_key_count(const leeway_kv* kv);
/* In the order of init. NULL if `index` is not below the number of keys. */
LEEWAY_KV_API const char* leeway_kv_key(const leeway_kv* kv, size_t index);
LEEWAY_KV_API uint32_t leeway_kv_rank(const leeway_kv* kv);
LEEWAY_KV_API uint32_t leeway_kv_workers(const leeway_kv* kv);
/* The number of this iteration on the worker's clock, from 0; begins the iteration. It continues when
 * the worker was started again, and in a resumed run, which may skip a few numbers. Right after a
 * push it is the number of that push: a loop ends its iteration before it asks. */
LEEWAY_KV_API leeway_kv_status leeway_kv_iteration(leeway_kv* kv, int64_t* iteration);
/* Ended iterations of this process, from 0 also in a resumed run. -1 while another thread is in a
 * call of the store. */
LEEWAY_KV_API int64_t leeway_kv_iterations(const leeway_kv* kv);

/* ---- handles ---- */

LEEWAY_KV_API leeway_kv_status leeway_kv_wait(leeway_kv_handle* handle);
/* 1 if the push or pull is done, 0 if not, -1 while another thread is in a call of the store. Does
 * not wait. */
LEEWAY_KV_API int leeway_kv_done(leeway_kv_handle* handle);
/* Calls next(context) on this thread when the handle is done: at once if it is, or at the end of a
 * later call. `next` must not close the store. */
LEEWAY_KV_API leeway_kv_status leeway_kv_then(leeway_kv_handle* handle, void (*next)(void* context),
                                              void* context);
/* Freeing a handle does not cancel its push or pull. */
LEEWAY_KV_API void leeway_kv_free(leeway_kv_handle* handle);

/* ---- the program of the shards ---- */

/* Updates `weights` with `gradient`: `count` floats of a key, after its first `first` floats. Several
 * threads call it, with the `context` of its registration, which must exist while runs do. */
typedef void (*leeway_kv_updater)(void* context, const char* key, int64_t first,
                                  const float* gradient, float* weights, size_t count);
LEEWAY_KV_API leeway_kv_status leeway_kv_register_updater(const char* name,
                                                          leeway_kv_updater update, void* context);
/* The command `leeway launch` with the registered updaters. Returns the exit code. */
LEEWAY_KV_API int leeway_kv_serve(int argc, char** argv);

#ifdef __cplusplus
}
#endif
#endif
