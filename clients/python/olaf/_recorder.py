"""Record updates and the times at which they are ready, for `olafctl trace convert` or `trace record --attach`."""

import os
import struct
import time
from typing import BinaryIO, Optional

import numpy as np

from ._client import RECORD, ROLE_RECORDER, Error, _checked, _Connection

MAGIC = b"olafrec1"
_HEADER = struct.Struct("<8s4I32s")
_RECORD = struct.Struct("<QQdIf")


class _Socket(_Connection):
    """A connection to a recording."""

    def __init__(self, address: str) -> None:
        super().__init__(address, None)
        if self._role != ROLE_RECORDER:
            self.detach()
            raise Error("this socket does not belong to a recording; start one with 'olafctl trace record --attach'")


class Recorder:
    """Write one worker's updates into NAME.RANK.olafrec, or send them to `olafctl trace record --attach`.

    name: name of the files and of the trace's ``env``.
    rank, workers: this worker's number, from 0, and the number of workers.
    cluster: the worker's cluster.
    address: ``unix:PATH`` of a recording; default the environment's OLAF_RECORD; without either, updates are written to the file.

    The time of an update is taken when ``update`` is called, before anything is written; call it before the update
    is passed to the network. The times of workers on one machine share a clock. ``olafctl trace convert NAME.*.olafrec`` converts all
    workers' files to one trace.
    """

    def __init__(self, name: str, rank: int, workers: int, cluster: int = 0, address: Optional[str] = None) -> None:
        if not 0 <= rank < workers:
            raise ValueError(f"worker {rank} of {workers}; workers count from 0")
        self.path = f"{name}.{rank}.olafrec"
        self._head = (rank, workers, cluster, name.rsplit("/", 1)[-1].encode()[:32])
        self._file: Optional[BinaryIO] = None
        address = address or os.environ.get("OLAF_RECORD", "")
        self._socket = _Socket(address) if address else None
        self._lanes = -1
        self._last = time.time_ns()

    def update(self, values: np.ndarray, reward: float = 0.0, loss: float = 0.0, version: int = 0) -> None:
        """Record an update that is ready now.

        values: float32, shape (n,), the same n for all updates. version: of the model on which it was computed. Raises
        TypeError or ValueError for other values.
        """
        now = time.time_ns()
        array = _checked(values)
        if self._lanes < 0:
            rank, workers, cluster, name = self._head
            self._lanes = array.size
            if self._socket is None:
                self._file = open(self.path, "wb", buffering=1 << 20)
            self._write(_HEADER.pack(MAGIC, rank, workers, cluster, self._lanes, name))
        if array.size != self._lanes:
            raise ValueError(f"an update of {array.size} values after one of {self._lanes}; a trace has one length")
        self._write(_RECORD.pack(now, now - self._last, reward, version, loss), array)
        self._last = time.time_ns()

    def _write(self, head: bytes, values: Optional[np.ndarray] = None) -> None:
        if self._socket is not None:
            self._socket._send(RECORD, head, values)
        elif self._file is not None:
            self._file.write(head)
            if values is not None:
                self._file.write(memoryview(values).cast("B"))

    def close(self) -> None:
        """Complete the file, or end the connection."""
        if self._socket is not None:
            self._socket.close()
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, *unused) -> None:
        self.close()
