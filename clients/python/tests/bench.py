"""The client's side of `make attached`: measures waiting times in microseconds and checks that sums are exact."""

import hashlib
import json
import os
import sys
import time

import numpy as np

import olaf

FOLDER = os.environ["OLAF_TEST_FOLDER"]
RANK = int(os.environ.get("RANK", "0"))
VALUES = 1 << 18


def busy():
    """Return the busy time of this machine's processors in seconds."""
    with open("/proc/stat", encoding="ascii") as stat:
        user, nice, system, _, _, irq, softirq = (int(word) for word in stat.readline().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def figures(took):
    took = sorted(took)
    return {"least": 1e6 * took[0], "median": 1e6 * took[len(took) // 2], "p99": 1e6 * took[len(took) * 99 // 100]}


def measure(call, rounds):
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        took.append(time.perf_counter() - began)
    return figures(took)


def client():
    """Measure the socket alone, with a worker that returns its input, and the recorder."""
    megabyte = (np.arange(VALUES) / 1e6).astype(np.float32)
    frame = np.arange(608, dtype=np.float32) / 1e3
    out = {}
    with olaf.Worker(os.environ["OLAF_TEST_SUMS"]) as worker:
        out["sum"] = measure(lambda: worker.allreduce(megabyte), 300)
    with olaf.Worker(os.environ["OLAF_TEST_PUSH"]) as worker:
        out["push"] = measure(lambda: worker.push(frame), 2000)
    with olaf.Recorder(FOLDER + "/bench", 0, 1) as recorder:
        out["record"] = measure(lambda: recorder.update(frame), 2000)
    return out


def gloo():
    """Join the programs of all ranks over the cable of this namespace."""
    import torch

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    return torch


def turns(torch, ways, blocks, rounds):
    """Let all ranks take turns between ways, in blocks of rounds, and return each one's starts, ends and machine time."""
    out = {name: {"spans": [], "cpu": 0.0} for name in ways}
    for block in range(blocks + 1):  # the first warms up
        for name, call in ways.items():
            torch.distributed.barrier()
            spans, before = [], busy()
            for _ in range(rounds if block else 3):
                began = time.monotonic()
                call()
                spans.append([began, time.monotonic()])
            torch.distributed.barrier()
            if block:
                out[name]["spans"] += spans
                out[name]["cpu"] += busy() - before
    torch.distributed.destroy_process_group()
    return out


def allreduce():
    """Sum vectors of 1 MB through the network and through gloo."""
    torch = gloo()
    mine = np.random.default_rng(RANK).standard_normal(VALUES).astype(np.float32)
    theirs = torch.from_numpy(mine.copy())
    with olaf.Worker() as worker:
        ways = {"olaf": lambda: worker.allreduce(mine), "gloo": lambda: torch.distributed.all_reduce(theirs.copy_(torch.from_numpy(mine)))}
        return turns(torch, ways, 3, int(os.environ.get("OLAF_TEST_ROUNDS", "15")))


def ddp():
    """Train the same model of 26,122 parameters with gradients summed by the network and by gloo."""
    torch = gloo()
    import olaf.torch

    steps = int(os.environ["OLAF_TEST_STEPS"])

    def make():
        torch.manual_seed(1)
        layers = torch.nn.Sequential(torch.nn.Linear(91, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
        return torch.nn.parallel.DistributedDataParallel(layers)

    with olaf.Worker() as worker:
        trainings, ways = {}, {}
        for name in ("olaf", "gloo"):
            model = make()
            if name == "olaf":
                model.register_comm_hook(worker, olaf.torch.hook)
            generator = torch.Generator().manual_seed(1000 + RANK)
            trainings[name] = {"model": model, "losses": []}
            ways[name] = step(torch, trainings[name], torch.optim.SGD(model.parameters(), lr=0.1), generator)
        out = turns(torch, ways, 3, steps)
        for name, training in trainings.items():
            weights = torch.cat([p.detach().ravel() for p in training["model"].parameters()]).numpy()
            out[name] |= {"losses": training["losses"], "digest": hashlib.sha256(weights.tobytes()).hexdigest(), "parameters": len(weights),
                          "weights": weights.tolist() if RANK == 0 else None}
        out["olaf"]["scale"] = worker.scale
        return out


def step(torch, training, optimizer, generator):
    centres = torch.randn(10, 91, generator=torch.Generator().manual_seed(1))

    def one():
        labels = torch.randint(10, (32,), generator=generator)
        x = centres[labels] + torch.randn(32, 91, generator=generator)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(training["model"](x), labels)
        loss.backward()
        optimizer.step()
        training["losses"].append(float(loss.detach()))

    return one


def exact():
    """Compare every sum with all workers' inputs, which are computed from rank and round. Returns rounds and values."""
    ends = time.monotonic() + float(os.environ["OLAF_TEST_SECONDS"])
    rounds = values = 0
    with olaf.Worker() as worker:
        while True:
            n = int(np.random.default_rng(rounds).integers(2, VALUES))
            inputs = [np.random.default_rng([rounds, rank]).integers(-(1 << 20), 1 << 20, n, np.int32) for rank in range(worker.workers)]
            for rank, one in enumerate(inputs):
                one[-1] = 0  # rank 0 sets it when the time is over
            mine = inputs[RANK].astype(np.float32)
            mine[-1] = RANK == 0 and time.monotonic() > ends
            total = worker.allreduce(mine)
            over, want = total[-1] > 0, sum(inputs).astype(np.float32)
            want[-1] = over
            if not np.array_equal(total, want):
                raise SystemExit(f"round {rounds}: {np.count_nonzero(total != want)} of {n} values are wrong")
            rounds, values = rounds + 1, values + n
            if over:
                return {"exact": {"rounds": rounds, "values": values}}


if __name__ == "__main__":
    result = {"client": client, "allreduce": allreduce, "ddp": ddp, "exact": exact}[sys.argv[1]]()
    with open(f"{FOLDER}/{RANK}.json", "w", encoding="ascii") as file:
        json.dump(result, file)
    os._exit(0)  # torch takes seconds to exit
