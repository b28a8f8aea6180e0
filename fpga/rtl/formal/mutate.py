#!/usr/bin/env python3
"""Plants every fault of formal/faults by itself and says who finds it; run it from fpga/rtl: mutate.py [proof|lockstep].
Exit code 1 when one is found by nobody, or could not be tried."""
import json, os, pathlib, re, subprocess, sys, tempfile

FOUND, MISSED, UNTRIED = "found", "MISSED", "not tried"
depth = os.environ.get("DEPTH", "14")


def plant(file, old, new):
    text = pathlib.Path("sv", file).read_text()
    old, new = old.replace("\\n", "\n"), new.replace("\\n", "\n")
    if text.count(old) != 1:
        sys.exit(f"{file}: {old!r} stands there {text.count(old)} times")
    return text.replace(old, new)


def proof(core):
    done = subprocess.run(["formal/prove.sh", depth, core], capture_output=True, text=True)
    return {1: FOUND, 0: MISSED}.get(done.returncode, UNTRIED), done.stdout.strip()


def lockstep(file, core):
    overlay = pathlib.Path(core).with_name("overlay.json")
    overlay.write_text(json.dumps({"Replace": {str(pathlib.Path("sv", file).resolve()): core}}))
    done = subprocess.run(["go", "test", "-overlay", str(overlay), "-count=1", "-timeout", "60m", "-run", "TestLockstep/1_ports", "."], capture_output=True, text=True)
    found = re.search(r"seed \d+ .*? is ", done.stdout)
    if found:
        return FOUND, found.group(0)[:-4]
    return MISSED if done.returncode == 0 else UNTRIED, done.stdout.strip().rpartition("\n")[2]


missed = 0
for line in pathlib.Path("formal/faults").read_text().splitlines():
    if not line or line.startswith("#"):
        continue
    name, who, file, old, new = (line.split("\t") + [""])[:5]
    if len(sys.argv) > 1 and sys.argv[1] != who:
        continue
    with tempfile.TemporaryDirectory() as folder:
        planted = os.path.join(folder, file)
        pathlib.Path(planted).write_text(plant(file, old, new))
        outcome, said = proof(planted) if who == "proof" else lockstep(file, planted)
    missed += outcome != FOUND
    print(f"{outcome}\t{name}\t{who}: {said}", flush=True)
sys.exit(missed > 0)
