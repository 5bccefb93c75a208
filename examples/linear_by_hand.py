"""Linear regression by hand in Python, on the C interface of the stores, without a package.

  leeway launch --workers 4 --shards 2 python3 linear_by_hand.py
  LEEWAY_KV_LIBRARY=build/release/lib/libleeway_kv.so python3 linear_by_hand.py local
"""

import ctypes
import os
import random
import sys

FEATURES, SAMPLES = 3, 4096
TRUE = [3, -2, 0.5]
ENDED = 2  # leeway_kv_status

kv_h = ctypes.CDLL(os.environ.get("LEEWAY_KV_LIBRARY", "libleeway_kv.so"))
kv_h.leeway_kv_error.restype = ctypes.c_char_p
kv_h.leeway_kv_iterations.restype = ctypes.c_int64
Floats = ctypes.c_float * FEATURES


class Options(ctypes.Structure):
    _fields_ = [("samples", ctypes.c_int64), ("batch", ctypes.c_uint32),
                ("epochs", ctypes.c_double), ("seed", ctypes.c_uint64)]


class Range(ctypes.Structure):
    _fields_ = [("epoch", ctypes.c_int64), ("count", ctypes.c_size_t),
                ("samples", ctypes.POINTER(ctypes.c_int64))]


def check(status):
    if status:
        raise RuntimeError(kv_h.leeway_kv_error().decode())


def features_of(sample):
    rng = random.Random(sample)
    return [rng.random() - 0.5 for _ in range(FEATURES)]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def main(store_type):
    kv = ctypes.c_void_p()
    options = Options(samples=SAMPLES, batch=32, epochs=10, seed=1)
    check(kv_h.leeway_kv_create(store_type.encode(), ctypes.byref(options), ctypes.byref(kv)))
    w, shape = Floats(), (ctypes.c_int64 * 1)(FEATURES)
    check(kv_h.leeway_kv_init(kv, b"w", w, shape, 1))
    check(kv_h.leeway_kv_set_optimizer(kv, b"sgd", ctypes.c_double(0.5)))
    leased = Range()
    while (status := kv_h.leeway_kv_next_range(kv, ctypes.byref(leased))) == 0:
        check(kv_h.leeway_kv_pull(kv, b"w", w, shape, 1, None))
        gradient = Floats()
        for sample in leased.samples[:leased.count]:
            x = features_of(sample)
            error = dot(w, x) - dot(TRUE, x)
            for i in range(FEATURES):
                gradient[i] += 2 * error * x[i] / leased.count
        check(kv_h.leeway_kv_push(kv, b"w", gradient, shape, 1, None))
    if status != ENDED:
        check(status)
    print(f"{kv_h.leeway_kv_iterations(kv)} iterations, w = {list(w)}")
    check(kv_h.leeway_kv_close(kv))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "dist_ssp(3)")
