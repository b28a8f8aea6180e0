"""Be the computation at a worker or a server of an olafctl testbed.

A worker or server started with ``--attach unix:PATH`` speaks the network's protocol; this package speaks with it over
that socket. Values are float32 arrays in one dimension. numpy is the only dependency; ``olaf.torch`` needs torch.
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
