# A whole session of p4runtime-shell with an agent: ADDRESS P4INFO CONFIG. Each line that it prints is one step.
import logging
import sys

import p4runtime_sh.shell as sh
from p4.v1 import p4runtime_pb2

logging.disable(logging.CRITICAL)
address, info, config = sys.argv[1:4]


def step(name, action):
    try:
        said = action()
        print(f"{name}: ok" + (f": {said}" if said is not None else ""))
    except Exception as err:  # of gRPC, or of the shell
        text = " ".join(str(err).split())
        print(f"{name}: {type(err).__name__}: {text}")


def worker(address, cluster, number):
    e = sh.TableEntry("vnp4_1.workers")(action="vnp4_1.set_worker")
    e.match["address"] = address
    e.action["cluster_id"], e.action["worker_id"] = str(cluster), str(number)
    return e


def group(number, *replicas):
    g = sh.MulticastGroupEntry(number)
    for port, instance in replicas:
        g.add(port, instance)
    return g


def default_entry(action):
    e = sh.TableEntry("vnp4_1.workers")(action=action, is_default=True)
    return e


def count(table):
    return sum(1 for _ in sh.TableEntry(table).read())


def listed():
    found = []
    sh.MulticastGroupEntry(7).read(lambda g: found.append([(r.egress_port, r.instance) for r in g.replicas]))
    return found


def packet_out():
    out = p4runtime_pb2.StreamMessageRequest()
    out.packet.payload = b"x"
    sh.client.stream_out_q.put(out)
    answer = sh.client.get_stream_packet("unknown", timeout=5)
    return None if answer is None else f"stream error {answer.error.canonical_code}: {answer.error.message}"


step("set up as (0, 1)", lambda: sh.setup(1, address, (0, 1), None, sh.FwdPipeConfig(info, config), verbose=False))
step("insert", lambda: worker("10.0.0.1", 1, 5).insert())
step("insert it again", lambda: worker("10.0.0.1", 1, 5).insert())
step("modify", lambda: worker("10.0.0.1", 2, 6).modify())
step("entries", lambda: count("vnp4_1.workers"))
step("group", lambda: group(7, (1, 5), (2, 6)).insert())
step("group as it is read", listed)
step("group of fewer", lambda: group(7, (1, 5)).modify())
step("group as it is read", listed)
step("remove the group", lambda: group(7).delete())
step("the constant default as it is", lambda: default_entry("vnp4_1.bypass").modify())
step("another default", lambda: default_entry("vnp4_1.set_worker").modify())
step("delete", lambda: worker("10.0.0.1", 2, 6).delete())
step("delete it again", lambda: worker("10.0.0.1", 2, 6).delete())
step("entries", lambda: count("vnp4_1.workers"))
step("packet-out", packet_out)
step("leave", sh.teardown)
