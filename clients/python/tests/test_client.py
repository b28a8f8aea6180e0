"""Tests that any client of the protocol must pass. `go test ./pktgen/attach` starts the other side and sets OLAF_TEST_*.

`go test ./cmd/olafctl -run Daemons` runs Sums with the daemons of every other system whose workers wait, and Answers with
those of a parameter server whose workers do not wait.
"""

import os
import threading
import unittest

import numpy as np

import olaf

SUMS = os.environ["OLAF_TEST_SUMS"].split(",")  # workers of one job, with a network that adds
PUSH, SERVER = os.environ.get("OLAF_TEST_PUSH"), os.environ.get("OLAF_TEST_SERVER")
PUSHES, ANSWERS = os.environ.get("OLAF_TEST_PUSHES", "").split(","), os.environ.get("OLAF_TEST_ANSWERS")
SYSTEM = os.environ.get("OLAF_TEST_SYSTEM", "xagg")
SCALE = {"xagg": 1e8, "atp": 1e6}.get(SYSTEM, 0)  # switchml derives one from each frame, and the others carry float32
LARGEST = 1000


def together(vectors, **options):
    """Send one vector per worker in one round and return the workers' sums, their reports and the rounds."""
    workers = [olaf.Worker(address) for address in SUMS]
    out = [None] * len(workers)

    def run(i):
        try:
            out[i] = workers[i].allreduce(vectors[i], **options)
        except Exception as error:
            out[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(workers))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for w in workers:
        w.detach()
    return out, workers


class Sums(unittest.TestCase):
    def test_greeting_describes_the_worker(self):
        for i, address in enumerate(SUMS):
            w = olaf.Worker(address)
            self.assertEqual((w.system, w.worker, w.workers, w.largest, w.scale, w.synchronous), (SYSTEM, i, len(SUMS), LARGEST, SCALE, True))
            w.detach()

    def test_sums_of_any_length_are_exact(self):
        generator = np.random.default_rng(1)
        for n in (LARGEST, 1, 0, 300):
            if SYSTEM == "xagg":
                vectors = [generator.standard_normal(n).astype(np.float32) for _ in SUMS]
                want = (sum(np.rint(v.astype(np.float64) * SCALE) for v in vectors) / SCALE).astype(np.float32)
            else:  # exact in the lanes of all systems
                vectors = [generator.integers(64, 128, n).astype(np.float32) for _ in SUMS]
                want = sum(vectors)
            out, _ = together(vectors)
            for total in out:
                self.assertEqual(total.dtype, np.float32)
                np.testing.assert_array_equal(total, want)

    def test_mean(self):
        out, _ = together([np.full(3, i, np.float32) for i in range(len(SUMS))], mean=True)
        np.testing.assert_array_equal(out[0], np.full(3, (len(SUMS) - 1) / 2, np.float32))

    def test_rounds_count_up_and_a_new_client_learns_the_round(self):
        _, first = together([np.ones(1, np.float32)] * len(SUMS))
        _, second = together([np.ones(1, np.float32)] * len(SUMS))
        self.assertEqual(second[0].round, first[0].round + 1)
        self.assertEqual(second[0].last.round, first[0].round)

    @unittest.skipIf(SYSTEM in ("iswitch", "ps", "ring"), "no number changes")
    def test_values_that_vanish_are_reported(self):
        _, workers = together([np.array([10, 1e-9], np.float32)] + [np.zeros(2, np.float32)] * (len(SUMS) - 1))
        self.assertEqual(workers[0].last.numbers, olaf.Numbers(0, 1, 0))

    def test_rewards_add_up(self):
        _, workers = together([np.ones(1, np.float32)] * len(SUMS), reward=-1.25)
        self.assertEqual((workers[0].last.reward, workers[0].last.workers), (-1.25 * len(SUMS), len(SUMS)))

    @unittest.skipIf(SYSTEM != "xagg", "the lanes of xagg")
    def test_changed_numbers_are_reported(self):
        with self.assertWarns(UserWarning):
            _, workers = together([np.array([30, 1e-9], np.float32)] + [np.zeros(2, np.float32)] * (len(SUMS) - 1))
        self.assertEqual(workers[0].last.numbers, olaf.Numbers(1, 1, 1))
        self.assertEqual((workers[0].clipped, workers[0].vanished, workers[0].saturated), (1, 1, 1))

    def test_bad_vectors_are_refused_and_the_next_is_taken(self):
        w = olaf.Worker(SUMS[0])
        with self.assertRaisesRegex(TypeError, "float64"):
            w.allreduce(np.zeros(2))
        with self.assertRaisesRegex(ValueError, "shape"):
            w.allreduce(np.zeros((2, 2), np.float32))
        if SCALE or SYSTEM == "switchml":
            with self.assertRaisesRegex(ValueError, "value 1 is NaN"):
                w.allreduce(np.array([0, np.nan], np.float32))
        with self.assertRaisesRegex(ValueError, "1001 values, and the largest is 1000"):
            w.allreduce(np.zeros(1001, np.float32))
        w.detach()

    @unittest.skipIf(SCALE or SYSTEM == "switchml", "lanes of integers")
    def test_nan_passes_where_lanes_are_floats(self):
        out, _ = together([np.array([np.nan, 1], np.float32)] * len(SUMS))
        np.testing.assert_array_equal(out[0], np.array([np.nan, len(SUMS)], np.float32))

    @unittest.skipUnless(SYSTEM == "switchml", "one system is enough, because it takes a second")
    def test_waiting_client_learns_whose_vector_is_missing(self):
        told = threading.Event()
        first = olaf.Worker(SUMS[0], waits=lambda text: "the vector of worker 1 is missing" in text and told.set())
        thread = threading.Thread(target=first.allreduce, args=(np.ones(900, np.float32),))
        thread.start()
        self.assertTrue(told.wait(30))
        second = olaf.Worker(SUMS[1])
        np.testing.assert_array_equal(second.allreduce(np.ones(900, np.float32)), np.full(900, 2, np.float32))
        thread.join()
        first.detach()
        second.detach()

    def test_second_client_is_refused(self):
        w = olaf.Worker(SUMS[0])
        with self.assertRaisesRegex(olaf.Error, "another client"):
            olaf.Worker(SUMS[0])
        w.detach()

    def test_roles_and_addresses_are_checked(self):
        with self.assertRaisesRegex(olaf.Error, "olaf.Worker"):
            olaf.Server(SUMS[0])
        with self.assertRaisesRegex(ValueError, "unix:PATH"):
            olaf.Worker("tcp:1")

    def test_connection_is_not_used_after_a_fork(self):
        w = olaf.Worker(SUMS[0])
        pid = os.fork()
        if pid == 0:
            try:
                w.allreduce(np.zeros(1, np.float32))
            except olaf.Error:
                os._exit(7)
            os._exit(0)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 7)
        w.detach()


class Daemons(unittest.TestCase):
    """A worker that sends a greeting and then runs the test's function."""

    def greeted(self, end):
        import socket
        import struct
        import tempfile

        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(folder.name + "/w.sock")
        listener.listen()

        def run():
            connection, _ = listener.accept()
            connection.recv(16)
            greeting = struct.pack("<4sHBBIIIII4xd16s", b"OLAF", 2, 0, 1, 0, 2, 10, 10, 0, 1e8, b"xagg")
            connection.sendall(struct.pack("<IB3x", len(greeting), 17 - 1) + greeting)
            connection.recv(1 << 16)
            end(connection)
            connection.close()

        thread = threading.Thread(target=run)
        thread.start()
        self.addCleanup(thread.join)
        return olaf.Worker("unix:" + folder.name + "/w.sock")

    def test_worker_that_dies_ends_its_program(self):
        with self.assertRaisesRegex(olaf.Ended, "gone"):
            self.greeted(lambda connection: None).allreduce(np.ones(3, np.float32))

    def test_worker_that_dies_within_an_answer(self):
        with self.assertRaisesRegex(olaf.Ended, "gone"):
            self.greeted(lambda connection: connection.sendall(b"\x28\0\0\0\x11\0\0\0")).allreduce(np.ones(3, np.float32))

    def test_answer_of_another_protocol_is_an_error(self):
        with self.assertRaisesRegex(olaf.Error, "version 2 of the protocol"):
            self.greeted(lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request")).allreduce(np.ones(3, np.float32))

    def test_texts_about_waiting_reach_the_program(self):
        texts = []

        def end(connection):
            connection.sendall(b"\x05\0\0\0\x15\0\0\0hello")

        w = self.greeted(end)
        w._waits = texts.append
        with self.assertRaises(olaf.Ended):
            w.allreduce(np.ones(3, np.float32))
        self.assertEqual(texts, ["hello"])


class Pushes(unittest.TestCase):
    def test_model_of_several_frames_comes_back(self):
        worker, server = olaf.Worker(PUSH), olaf.Server(SERVER)
        self.assertFalse(worker.synchronous)
        self.assertEqual(worker.pull().version, 0)
        model = np.zeros(LARGEST, np.float32)
        stale = []

        def serve():
            frames = -(-LARGEST // server.frame)
            for _ in range(2 * frames):
                u = server.take()
                stale.append(u.staleness)
                part = model[u.first:u.first + len(u.values)]
                part -= u.values
                server.reply(u, part)
            server.detach()

        thread = threading.Thread(target=serve)
        thread.start()
        gradient = np.arange(LARGEST, dtype=np.float32) / 64
        pushed = worker.push(gradient, reward=1.5)
        self.assertFalse(pushed.withheld)
        frames = -(-LARGEST // worker.frame)

        def whole(version):
            while True:
                got = worker.pull(after=version - 1)
                if len(got.values) == LARGEST and not got.torn:
                    return got

        got = whole(1)
        self.assertEqual((got.version, got.oldest), (1, 1))
        np.testing.assert_array_equal(got.values, -gradient)
        worker.push(gradient)
        np.testing.assert_array_equal(whole(2).values, -2 * gradient)
        thread.join()
        self.assertEqual(stale[0], 0)
        self.assertEqual(stale[frames:], [0] * frames)  # computed on a whole model
        worker.detach()


@unittest.skipUnless(ANSWERS, "no server that answers whole updates")
class Answers(unittest.TestCase):
    def test_server_answers_each_update_with_a_model_of_any_length(self):
        updates, lengths = [], [LARGEST, 1, 700, 0]  # length of each update; its answer has the next length

        def serve():
            for i in range(len(lengths) * len(PUSHES)):
                server = olaf.Server(ANSWERS)  # attaches again for each update
                u = server.take()
                updates.append(u)
                length = lengths[(lengths.index(len(u.values)) + 1) % len(lengths)]
                server.reply(u, np.full(length, i, np.float32) if length else None)
                server.detach()

        thread = threading.Thread(target=serve)
        thread.start()
        workers = [olaf.Worker(address) for address in PUSHES]
        versions, sent = 0, []
        for step, length in enumerate(lengths):
            for k, worker in enumerate(workers):
                self.assertEqual((worker.worker, worker.synchronous, worker.round, worker.largest), (k, False, step, LARGEST))
                before = worker.pull()
                with self.assertRaisesRegex(ValueError, "pull without waiting"):
                    worker.pull(after=before.version)
                values = np.arange(length, dtype=np.float32) * (k + 1)
                values[-1:] = np.nan  # passes, because lanes are floats
                pushed = worker.push(values, reward=step + k / 10)
                self.assertEqual((pushed.round, pushed.withheld, pushed.numbers), (step, False, olaf.Numbers(0, 0, 0)))
                sent.append((k, step, values, np.float32(step + k / 10), before.version))
                answer, got = lengths[(step + 1) % len(lengths)], worker.pull()
                if answer:
                    np.testing.assert_array_equal(got.values, np.full(answer, versions, np.float32))
                    self.assertEqual((got.version, got.torn), (versions + 1, False))
                else:  # an ACK alone does not change the model
                    self.assertEqual((got.version, len(got.values)), (before.version, len(before.values)))
                versions += 1
                worker.detach()
                workers[k] = olaf.Worker(PUSHES[k])
                self.assertEqual(workers[k].round, step + 1)
        thread.join()
        for i, (u, (k, step, values, reward, version)) in enumerate(zip(updates, sent)):
            self.assertEqual((u.number, u.worker, u.vector, u.count, u.first, u.version, u.reward), (i, k, step, 1, 0, i, reward))
            self.assertEqual(u.staleness, i - version)
            np.testing.assert_array_equal(u.values, values)
        for worker in workers:
            worker.detach()


class Recorders(unittest.TestCase):
    def test_records_have_their_layout(self):
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            with olaf.Recorder(folder + "/mlp", 1, 2) as rec:
                rec.update(np.ones(3, np.float32), reward=2.5)
                with self.assertRaisesRegex(ValueError, "one length"):
                    rec.update(np.ones(4, np.float32))
            with open(folder + "/mlp.1.olafrec", "rb") as file:
                self.assertEqual(len(file.read()), 56 + 32 + 12)

    def test_recorders_send_to_a_recording(self):
        address = os.environ["OLAF_TEST_RECORD"]
        recorders = [olaf.Recorder("mlp", k, 2, cluster=k, address=address) for k in range(2)]
        for seq in range(2):
            for k, rec in enumerate(recorders):
                rec.update(np.full(3, k + seq / 2, np.float32), reward=seq)
        self.assertFalse(os.path.exists(recorders[0].path))
        for rec in recorders:
            rec.close()
        with self.assertRaisesRegex(olaf.Error, "not belong to a recording"):
            olaf.Recorder("mlp", 0, 1, address=PUSH)


if __name__ == "__main__":
    unittest.main()
