#!/usr/bin/env python3
"""Plants every fault of formal/faults by itself and says what finds it; run it from fpga/rtl: mutate.py [proof|tests|one port|NAME] ….
A proof is of the core alone, tests are those of the package: golden vectors, streams, back-pressure.
Exit code 1 when one is found by nobody, or could not be tried."""
import json, os, pathlib, re, shutil, subprocess, sys, tempfile

FOUND, MISSED, UNTRIED = "found", "MISSED", "not tried"
depth = os.environ.get("DEPTH", "14")
# What runs for a fault, with one build of the simulation.
TESTS = {"tests": "TestGoldenVectors|TestBackPressure|TestBlocked|TestOverlong|TestResetInFrame|TestNoBubbles|TestLatency|TestLockstep/2_ports",
         "one port": "TestLockstep/1_ports"}


def plant(file, old, new):
    text = pathlib.Path("sv", file).read_text()
    old, new = old.replace("\\n", "\n"), new.replace("\\n", "\n")
    if text.count(old) != 1:
        sys.exit(f"{file}: {old!r} stands there {text.count(old)} times")
    return text.replace(old, new)


def proof(who, file, planted):
    done = subprocess.run(["formal/prove.sh", depth, planted], capture_output=True, text=True)
    return {1: FOUND, 0: MISSED}.get(done.returncode, UNTRIED), done.stdout.strip()


def tests(who, file, planted):
    folder = pathlib.Path(planted).parent
    overlay = folder / "overlay.json"
    overlay.write_text(json.dumps({"Replace": {str(pathlib.Path("sv", file).resolve()): planted}}))
    # The simulation with the fault goes with the folder, and is compiled in little time instead of for speed.
    go = os.environ.get("GO", "go")
    cache = subprocess.run([go, "env", "GOCACHE"], capture_output=True, text=True).stdout.strip()
    compiler = folder / "c++"
    compiler.write_text(f'''#!/bin/bash
for a; do case $a in -O?|-f*profile*) ;; *) args+=("$a"); [ "$last" = -o ] && out=$a ;; esac; last=$a; done
kept={folder}/$(printf "%s\\n" "$PWD" "${{args[@]}}" | md5sum | cut -c1-32)
[ -e $kept ] || {{ {shutil.which("c++")} -O1 "${{args[@]}}" || exit; [ -z "$out" ] || cp "$out" $kept; exit; }}
cp $kept "$out"
''')
    compiler.chmod(0o755)
    env = dict(os.environ, XDG_CACHE_HOME=str(folder), GOCACHE=cache, PATH=f"{folder}:{os.environ['PATH']}")
    done = subprocess.run([go, "test", "-overlay", str(overlay), "-count=1", "-failfast", "-timeout", "30m", "-run", TESTS[who], "."],
                          capture_output=True, text=True, env=env)
    failed = re.findall(r"--- FAIL: (\S+)", done.stdout)
    if failed:
        said = re.search(r"seed \d+ .*? is ", done.stdout)
        return FOUND, max(failed, key=len) + (": " + said.group(0)[:-4] if said else "")
    return MISSED if done.returncode == 0 else UNTRIED, done.stdout.strip().rpartition("\n")[2]


missed = 0
for line in pathlib.Path("formal/faults").read_text().splitlines():
    if not line or line.startswith("#"):
        continue
    name, who, file, old, new = (line.split("\t") + [""])[:5]
    if len(sys.argv) > 1 and not {who, name} & set(sys.argv[1:]):
        continue
    with tempfile.TemporaryDirectory() as folder:
        planted = os.path.join(folder, file)
        pathlib.Path(planted).write_text(plant(file, old, new))
        outcome, said = (proof if who == "proof" else tests)(who, file, planted)
    missed += outcome != FOUND
    print(f"{outcome}\t{name}\t{who}: {said}", flush=True)
sys.exit(missed > 0)
