"""Print the median and the 99th percentile, in microseconds, of what a program waits for: `go test -bench Python ./pktgen/attach`."""

import json
import os
import time

import numpy as np

import olaf

MEGABYTE = (np.arange(1 << 18) / 1e6).astype(np.float32)
FRAME = np.arange(608, dtype=np.float32) / 1e3


def measure(call, rounds):
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        took.append(time.perf_counter() - began)
    took.sort()
    return {"least": 1e6 * took[0], "median": 1e6 * took[rounds // 2], "p99": 1e6 * took[rounds * 99 // 100]}


out = {}
with olaf.Worker(os.environ["OLAF_TEST_SUMS"]) as worker:
    out["sum-1MB"] = measure(lambda: worker.allreduce(MEGABYTE), 300)
with olaf.Worker(os.environ["OLAF_TEST_PUSH"]) as worker:
    out["push-608"] = measure(lambda: worker.push(FRAME), 2000)
with olaf.Recorder(os.environ["OLAF_TEST_FOLDER"] + "/bench", 0, 1) as recorder:
    out["record-608"] = measure(lambda: recorder.update(FRAME), 2000)
print(json.dumps(out))
