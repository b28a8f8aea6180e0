"""A communication hook for torch.nn.parallel.DistributedDataParallel."""

import torch

from ._client import Worker


def hook(worker: Worker, bucket: torch.distributed.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Return the mean of all workers' gradients, summed by the network.

    Register it with ``model.register_comm_hook(worker, olaf.torch.hook)``. The first bucket may contain all
    gradients, so ``worker.largest`` must be at least the number of parameters.
    """
    buffer = bucket.buffer()
    buffer.copy_(torch.from_numpy(worker.allreduce(buffer.numpy(), mean=True)))
    future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    future.set_result(buffer)
    return future
