/* Linear regression by hand in C: each worker computes its gradients in its own process.
 *
 *   leeway launch --workers 4 --shards 2 ./linear_in_c
 *   ./linear_in_c local
 */
#include <leeway/kv.h>
#include <stdio.h>

enum { kFeatures = 3, kSamples = 4096 };
static const float kTrue[kFeatures] = {3, -2, 0.5f};

/* The features of a sample, from its number: -0.5 to 0.5. */
static void features_of(int64_t sample, float* x) {
  uint64_t state = (uint64_t)sample + 1;
  for (int i = 0; i < kFeatures; ++i) {
    for (int round = 0; round < 3; ++round)
      state = state * 6364136223846793005u + 1442695040888963407u;
    x[i] = (float)(state >> 40) / (float)(1 << 24) - 0.5f;
  }
}

static float dot(const float* a, const float* b) {
  float sum = 0;
  for (int i = 0; i < kFeatures; ++i) sum += a[i] * b[i];
  return sum;
}

static int fail(void) {
  fprintf(stderr, "%s\n", leeway_kv_error());
  return 1;
}

int main(int argc, char** argv) {
  leeway_kv_options options = leeway_kv_default_options();
  options.samples = kSamples;
  options.batch = 32;
  options.epochs = 20;
  leeway_kv* kv = NULL;
  if (leeway_kv_create(argc > 1 ? argv[1] : "dist_ssp(3)", &options, &kv)) return fail();
  const int64_t shape[] = {kFeatures};
  float w[kFeatures] = {0};
  if (leeway_kv_init(kv, "w", w, shape, 1) || leeway_kv_set_optimizer(kv, "sgd", 0.5)) return fail();
  leeway_kv_range range;
  leeway_kv_status status;
  while ((status = leeway_kv_next_range(kv, &range)) == LEEWAY_KV_OK) {
    float* gradient = NULL;
    if (leeway_kv_pull(kv, "w", w, shape, 1, NULL) || leeway_kv_gradient(kv, "w", &gradient))
      return fail();
    for (int i = 0; i < kFeatures; ++i) gradient[i] = 0;
    for (size_t sample = 0; sample < range.count; ++sample) {
      float x[kFeatures];
      features_of(range.samples[sample], x);
      const float error = dot(w, x) - dot(kTrue, x);
      for (int i = 0; i < kFeatures; ++i) gradient[i] += 2 * error * x[i] / (float)range.count;
    }
    if (leeway_kv_push_gradient(kv, "w", NULL)) return fail();
  }
  if (status != LEEWAY_KV_ENDED) return fail();
  printf("%lld iterations, w = %g %g %g\n", (long long)leeway_kv_iterations(kv), w[0], w[1], w[2]);
  return leeway_kv_close(kv) ? fail() : 0;
}
