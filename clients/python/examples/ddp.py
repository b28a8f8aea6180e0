"""Train with PyTorch's DistributedDataParallel: the network sums the gradients.

`olafctl train --program` sets RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and the worker's socket. gloo is used only for the start.
"""

import os

import torch

import olaf
import olaf.torch

STEPS = int(os.environ.get("STEPS", "50"))

if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    seed = int(os.environ.get("OLAF_SEED", "1"))
    torch.manual_seed(seed)
    layers = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    model = torch.nn.parallel.DistributedDataParallel(layers)
    with olaf.Worker() as worker:
        model.register_comm_hook(worker, olaf.torch.hook)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        generator = torch.Generator().manual_seed(1000 * seed + worker.worker)
        centres = torch.randn(10, 64, generator=torch.Generator().manual_seed(seed))
        for _ in range(STEPS):
            labels = torch.randint(10, (32,), generator=generator)
            x = centres[labels] + torch.randn(32, 64, generator=generator)
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), labels)
            loss.backward()
            optimizer.step()
            olaf.report(loss=float(loss))
