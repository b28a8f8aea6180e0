"""Train a small classifier asynchronously: `olafctl train --program` runs this as every worker and as the server.

Workers push gradients and pull the newest model without waiting for other workers. It needs only numpy.
"""

import os
import time

import numpy as np

import olaf

INPUTS, HIDDEN, CLASSES = 16, 24, 8
SHAPES = [(INPUTS, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,)]
SIZES = [int(np.prod(shape)) for shape in SHAPES]
STEPS = int(os.environ.get("STEPS", "150"))
PERIOD = float(os.environ.get("PERIOD", "0.02"))  # seconds between two updates
SEED = int(os.environ.get("OLAF_SEED", "1"))


def initial():
    generator = np.random.default_rng(SEED)
    return np.concatenate([0.3 * generator.standard_normal(size) for size in SIZES]).astype(np.float32)


def split(model):
    parts = np.split(model, np.cumsum(SIZES)[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, SHAPES)]


def samples(generator, n=32):
    centres = np.random.default_rng(SEED + 1000).standard_normal((CLASSES, INPUTS))
    labels = generator.integers(CLASSES, size=n)
    return centres[labels] + 0.8 * generator.standard_normal((n, INPUTS)), labels


def gradient(model, x, labels):
    """Return the loss and its gradient."""
    w1, b1, w2, b2 = split(model)
    hidden = np.maximum(x @ w1 + b1, 0)
    logits = hidden @ w2 + b2
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    loss = -np.log(p[np.arange(len(labels)), labels] + 1e-9).mean()
    p[np.arange(len(labels)), labels] -= 1
    p /= len(labels)
    back = (p @ w2.T) * (hidden > 0)
    parts = [x.T @ back, back.sum(0), hidden.T @ p, p.sum(0)]
    return loss, np.concatenate([part.ravel() for part in parts]).astype(np.float32)


def work():
    with olaf.Worker() as worker:
        model = initial()
        generator = np.random.default_rng([SEED, worker.worker])
        due = time.monotonic()
        for _ in range(STEPS):
            newest = worker.pull()
            if newest.version:
                model[:len(newest.values)] = newest.values
            loss, update = gradient(model, *samples(generator))
            worker.push(update, reward=-loss)
            olaf.report(loss=float(loss))
            due += PERIOD
            time.sleep(max(0.0, due - time.monotonic()))


def serve(rate=0.1):
    model = initial()

    def step(update, part):
        part -= rate * update.values / update.count

    olaf.Server().serve(model, step)


if __name__ == "__main__":
    serve() if os.environ.get("OLAF_ROLE") == "server" else work()
