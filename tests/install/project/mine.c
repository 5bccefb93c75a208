/* A C program on the installed library. */
#include <leeway/kv.h>
#include <stdio.h>

int main(void) {
  leeway_kv* kv = NULL;
  float w = 1, gradient = 2;
  if (leeway_kv_create("local", NULL, &kv) || leeway_kv_init(kv, "w", &w, NULL, 0) ||
      leeway_kv_push(kv, "w", &gradient, NULL, 0, NULL) ||
      leeway_kv_pull(kv, "w", &w, NULL, 0, NULL)) {
    fprintf(stderr, "%s\n", leeway_kv_error());
    return 1;
  }
  if (leeway_kv_close(kv)) return 1;
  return w == 3 ? 0 : 1;
}
