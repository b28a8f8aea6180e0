"""DistributedDataParallel with gradients summed by the network. It needs torch."""

import os
import unittest

import numpy as np
import torch
import torch.multiprocessing as multiprocessing

import olaf
import olaf.torch

SUMS = os.environ["OLAF_TEST_SUMS"].split(",")


def train(rank, hooked, results):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=len(SUMS), init_method=f"file://{os.environ['OLAF_TEST_FOLDER']}/{hooked}")
    torch.manual_seed(3)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)))
    if hooked:
        worker = olaf.Worker(SUMS[rank])
        model.register_comm_hook(worker, olaf.torch.hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(20):
        x = torch.randn(16, 8, generator=generator)
        optimizer.zero_grad()
        loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
        loss.backward()
        optimizer.step()
    if hooked:
        worker.detach()
    results[rank] = torch.cat([p.detach().ravel() for p in model.parameters()]).numpy().tobytes()
    torch.distributed.destroy_process_group()


def weights(hooked):
    with multiprocessing.get_context("spawn").Manager() as manager:
        results = manager.dict()
        multiprocessing.spawn(train, args=(hooked, results), nprocs=len(SUMS))
        return [np.frombuffer(results[rank], np.float32) for rank in range(len(SUMS))]


class DDP(unittest.TestCase):
    def test_ranks_have_the_same_weights_and_gloo_nearly_so(self):
        ours, gloo = weights(True), weights(False)
        for rank in ours[1:]:
            np.testing.assert_array_equal(ours[0], rank)
        np.testing.assert_allclose(ours[0], gloo[0], atol=1e-5)


if __name__ == "__main__":
    unittest.main()
