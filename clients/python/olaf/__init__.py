"""Provide the computation for a worker or a server of an olafctl testbed.

A worker or server started with ``--attach unix:PATH`` implements the network's protocol. This package communicates with
it over that socket. Values are one-dimensional float32 arrays. numpy is the only dependency; ``olaf.torch`` needs torch.
"""

from ._client import (
    Disagreement,
    Ended,
    Error,
    Model,
    Numbers,
    Pushed,
    Queue,
    Server,
    Sum,
    Update,
    Worker,
    report,
)
from ._recorder import Recorder

__all__ = [
    "Disagreement", "Ended", "Error", "Model", "Numbers", "Pushed", "Queue", "Recorder", "Server", "Sum", "Update", "Worker", "report",
]
