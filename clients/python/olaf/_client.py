"""The client's side of the protocol in docs/reference/attach.md."""

import json
import os
import socket
import struct
import warnings
from typing import Callable, Iterator, NamedTuple, Optional, Tuple, Union

import numpy as np

VERSION = 2
HELLO, VECTOR, PULL, TAKE, REPLY, BYE, RECORD = range(1, 8)
GREETING, SUM, PUSHED, MODEL, UPDATE, WAITS, ERROR = range(16, 23)
ROLE_SERVER = 1
ROLE_RECORDER = 2
FLAG_WAITS = 1
FLAG_MODEL_DUE = 2
CODE_VECTOR = 4
CODE_ENDED = 5

_HEAD = struct.Struct("<IB3x")
_STRUCTURES = {
    GREETING: struct.Struct("<4sHBBIIIII4xd16s"),
    SUM: struct.Struct("<6If"),
    PUSHED: struct.Struct("<5IIHH"),
    MODEL: struct.Struct("<3IHHI4x"),
    UPDATE: struct.Struct("<6IQQf4I4x"),
    WAITS: struct.Struct("<"),
    ERROR: struct.Struct("<I"),
}


class Error(Exception):
    """The worker or server refused a request."""


class Ended(Error):
    """The worker or server ended; the text names the reason."""


class Disagreement(Ended):
    """Programs of the job use another scale or length."""


class Numbers(NamedTuple):
    """Values that changed between float32 and the network's integers."""

    clipped: int  #: values of the vector that were clipped to the range
    vanished: int  #: nonzero values of the vector that were sent as 0
    saturated: int  #: values of the sum at the end of the range


class Sum(NamedTuple):
    """Information about the last sum."""

    round: int
    workers: int  #: number of vectors in the sum
    torn: bool  #: its frames contain different vectors
    numbers: Numbers
    reward: float  #: sum of the vectors' rewards


class Queue(NamedTuple):
    """A queue's status according to the last answer."""

    occupancy: int
    clusters: int
    slots: int


class Pushed(NamedTuple):
    """The outcome of an update."""

    round: int
    withheld: bool  #: transmission control did not send it
    numbers: Numbers
    queue: Queue


class Model(NamedTuple):
    """The newest model at a worker."""

    version: int  #: of the newest frame: number of updates in the server's answers for it; 0 before the first answer
    oldest: int  #: of the oldest frame; the model is torn if it is below version
    values: np.ndarray  #: float32, empty before the first answer
    queue: Queue
    saturated: int  #: values at the end of the range

    @property
    def torn(self) -> bool:
        """Whether its frames contain different numbers of updates."""
        return self.oldest < self.version


class Update(NamedTuple):
    """One frame that arrived at a server."""

    number: int  #: from 0
    count: int  #: number of updates in the frame
    first: int  #: index of the first value in the vector
    job: int  #: the cluster
    worker: int  #: worker of the newest update
    vector: int  #: number of that update at its worker
    staleness: float  #: mean number of updates that the server answered here since the models on which these were computed
    generated_ns: int  #: time at which the newest update was ready, modulo 2**48
    reward: float  #: sum of the updates' rewards
    dropped: int  #: frames dropped so far because the server's queue was full
    waiting: int  #: frames in the server's queue
    saturated: int  #: values at the end of the range
    version: int  #: of the model here; the reply's is count higher
    values: np.ndarray  #: float32, the sum of the updates


def _checked(values: np.ndarray) -> np.ndarray:
    """Return values as a contiguous one-dimensional float32 array.

    Raises TypeError for another dtype and ValueError for another shape.
    """
    array = np.asarray(values)
    if array.dtype != np.float32:
        raise TypeError(f"values are {array.dtype}; convert them with .astype(numpy.float32)")
    if array.ndim != 1:
        raise ValueError(f"values have the shape {array.shape}; flatten them with .ravel()")
    return np.ascontiguousarray(array)


class _Connection:
    """A connection to one worker or server. It must not be shared between threads, nor used after a fork."""

    _waits: Callable[[str], None]

    def __init__(self, address: Optional[str], waits: Optional[Callable[[str], None]]) -> None:
        address = address or os.environ.get("OLAF_ATTACH", "")
        if not address.startswith("unix:"):
            raise ValueError(f"the address {address!r} is not unix:PATH; give one, or set OLAF_ATTACH")
        self._waits = waits or (lambda text: None)
        self._owner = os.getpid()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)  # or what the kernel allows
        try:
            self._socket.connect(address[len("unix:"):])
            self._send(HELLO, struct.pack("<4sHxx", b"OLAF", VERSION))
            fields, _ = self._answer(GREETING)
        except BaseException:
            self._socket.close()
            raise
        (_, self.version, self._role, self._flags, self.worker, self.workers, self.largest, self.frame, self.round, self.scale, system) = fields
        self.system = system.rstrip(b"\0").decode()

    def close(self) -> None:
        """End the session. The worker or server exits, too."""
        if self._socket.fileno() >= 0 and self._owner == os.getpid():
            try:
                self._send(BYE)
            except OSError:
                pass  # the other end closed first
        self._socket.close()

    def detach(self) -> None:
        """Close the connection without ending the session: the worker or server waits for the next program."""
        try:
            self._socket.settimeout(5)
            self._socket.shutdown(socket.SHUT_WR)
            while self._socket.recv(1 << 16):  # until the other end has closed
                pass
        except OSError:
            pass  # the other end has exited
        self._socket.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace) -> None:
        if kind is None:
            self.close()
        else:
            self.detach()

    def _send(self, kind: int, structure: bytes = b"", values: Optional[np.ndarray] = None) -> None:
        if self._owner != os.getpid():
            raise Error("this connection belongs to the process before the fork; attach again in this one")
        tail = memoryview(values).cast("B") if values is not None and values.size else memoryview(b"")
        head = _HEAD.pack(len(structure) + len(tail), kind) + structure
        sent = self._socket.sendmsg([head, tail])
        if sent < len(head):
            self._socket.sendall(head[sent:])
            sent = len(head)
        if sent < len(head) + len(tail):
            self._socket.sendall(tail[sent - len(head):])

    def _receive(self, into: memoryview) -> None:
        while len(into):
            n = self._socket.recv_into(into, 0, socket.MSG_WAITALL)
            if n == 0:
                raise Ended("the worker or server is gone; its own output names the reason")
            into = into[n:]

    def _answer(self, want: int) -> Tuple[tuple, np.ndarray]:
        """Return the structure and the values of the next answer. Texts about waiting are passed to ``waits``."""
        while True:
            head = bytearray(_HEAD.size)
            self._receive(memoryview(head))
            length, kind = _HEAD.unpack(head)
            structure = _STRUCTURES.get(kind)
            if structure is None or length < structure.size:
                raise Error(f"a message of kind {kind} and {length} bytes is not in version {VERSION} of the protocol")
            body = bytearray(structure.size)
            self._receive(memoryview(body))
            rest = length - structure.size
            if kind in (WAITS, ERROR):
                text = bytearray(rest)
                self._receive(memoryview(text))
                if kind == WAITS:
                    self._waits(text.decode())
                    continue
                self._raise(structure.unpack(body)[0], text.decode())
            if kind != want or rest % 4:
                raise Error(f"the answer is a message of kind {kind}, not {want}")
            values = np.empty(rest // 4, np.float32)
            self._receive(memoryview(values).cast("B"))
            return structure.unpack(body), values

    def _raise(self, code: int, text: str) -> None:
        if code == CODE_VECTOR:
            raise ValueError(text)
        if "disagree" in text:
            raise Disagreement(text)
        raise (Ended if code == CODE_ENDED else Error)(text)

    def _ask(self, want: int, kind: int, structure: bytes = b"", values: Optional[np.ndarray] = None) -> Tuple[tuple, np.ndarray]:
        try:
            self._send(kind, structure, values)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the answer may name the reason
        try:
            return self._answer(want)
        except ConnectionResetError as error:
            raise Ended("the worker or server is gone; its own output names the reason") from error


def report(**numbers: float) -> None:
    """Print numbers such as loss and reward for ``olafctl train --program``, which stamps and draws them."""
    print(json.dumps(numbers), flush=True)


class Worker(_Connection):
    """A worker's computation.

    address: ``unix:PATH``; default the environment's OLAF_ATTACH.
    waits: called with a text every second while an answer is missing; default nothing.

    Attributes: worker, workers, largest (values of the longest vector), round (of the next vector), scale, system,
    synchronous (use allreduce; otherwise push and pull).
    """

    def __init__(self, address: Optional[str] = None, waits: Optional[Callable[[str], None]] = None) -> None:
        super().__init__(address, waits)
        if self._role == ROLE_SERVER:
            self.detach()
            raise Error("this socket is a server's; use olaf.Server")
        self.synchronous = bool(self._flags & FLAG_WAITS)
        self.model_due = bool(self._flags & FLAG_MODEL_DUE)
        self.last: Union[Sum, Pushed, None] = None
        self.clipped = self.vanished = self.saturated = 0

    def _count(self, numbers: Numbers) -> None:
        if self.clipped == 0 < numbers.clipped:
            warnings.warn(f"{numbers.clipped} values are beyond ±{(2**31 - 1) / self.scale:g} and were clipped; use a smaller --scale", stacklevel=3)
        if self.saturated == 0 < numbers.saturated:
            warnings.warn(f"{numbers.saturated} values of a sum are at ±{(2**31 - 1) / self.scale:g}, the end of the range; use a smaller --scale", stacklevel=3)
        self.clipped += numbers.clipped
        self.vanished += numbers.vanished
        self.saturated += numbers.saturated

    def allreduce(self, values: np.ndarray, mean: bool = False, reward: float = 0.0) -> np.ndarray:
        """Return the sum of all workers' vectors, or their mean.

        values: float32, shape (n,), n the same at every worker and at most ``largest``. Returns the same shape and
        dtype. ``last`` describes the sum, including the sum of the rewards, which are sent in steps of 1/256. All
        vectors in a sum belong to one round, so none is stale. Raises ValueError for a vector that cannot be sent,
        Disagreement if workers differ in length or scale, and Ended if the job is over.
        """
        fields, total = self._ask(SUM, VECTOR, struct.pack("<f4x", reward), _checked(values))
        self.last = Sum(fields[0], fields[1], bool(fields[2]), Numbers(*fields[3:6]), fields[6])
        self.round = fields[0] + 1
        self._count(self.last.numbers)
        if mean:
            total /= self.workers
        return total

    def push(self, values: np.ndarray, reward: float = 0.0) -> Pushed:
        """Send an update and return its outcome. It does not wait for other workers.

        values: float32, shape (n,), n at most ``largest``. Raises the same errors as allreduce.
        """
        fields, _ = self._ask(PUSHED, VECTOR, struct.pack("<f4x", reward), _checked(values))
        self.last = Pushed(fields[0], bool(fields[1]), Numbers(*fields[2:5]), Queue(*fields[5:]))
        self.round = fields[0] + 1
        self._count(self.last.numbers)
        return self.last

    def pull(self, after: Optional[int] = None) -> Model:
        """Return the newest model. Unless ``after`` is None, wait for a version above it."""
        fields, values = self._ask(MODEL, PULL, struct.pack("<II", after or 0, after is not None))
        return Model(fields[0], fields[1], values, Queue(*fields[2:5]), fields[5])


class Server(_Connection):
    """A server's computation. It takes updates frame by frame and answers each with the model's values at its place."""

    def __init__(self, address: Optional[str] = None, waits: Optional[Callable[[str], None]] = None) -> None:
        super().__init__(address, waits)
        if self._role != ROLE_SERVER:
            self.detach()
            raise Error("this socket is a worker's; use olaf.Worker")

    def take(self) -> Update:
        """Wait for the next frame. Reply to it before taking another one."""
        fields, values = self._ask(UPDATE, TAKE)
        number, count, first, job, worker, vector, versions, generated, reward, dropped, waiting, saturated, version = fields
        return Update(number, count, first, job, worker, vector, version - versions / max(count, 1), generated, reward, dropped, waiting, saturated, version, values)

    def reply(self, update: Update, values: Optional[np.ndarray] = None) -> None:
        """Answer a frame with the model's values from ``update.first`` on, float32, at most ``frame``; None sends only an ACK."""
        self._send(REPLY, struct.pack("<I4x", update.number), None if values is None else _checked(values))

    def updates(self) -> Iterator[Update]:
        """Yield frames until the server ends."""
        while True:
            try:
                update = self.take()
            except Ended:
                return
            yield update

    def serve(self, model: np.ndarray, step: Callable[[Update, np.ndarray], None]) -> None:
        """Answer frames until the server ends.

        model: float32, shape (n,). step(update, part) changes ``part`` in place, which is the view of the model
        for the frame's values.
        """
        for update in self.updates():
            part = model[update.first:update.first + len(update.values)]
            step(update, part)
            self.reply(update, part)
