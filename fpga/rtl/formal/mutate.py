#!/usr/bin/env python3
"""Inserts each fault in formal/faults separately and prints which check detects it.

Usage, in fpga/rtl: formal/mutate.py [proof|tests|one port|NAME]...
The proof covers only the core. The tests are those of package fpga/rtl, such as golden vectors, streams and back-pressure.
The exit code is 1 if a fault was not detected or could not be checked."""
import json, os, pathlib, re, shutil, subprocess, sys, tempfile

FOUND, MISSED, UNTRIED = "found", "MISSED", "not checked"
depth = os.environ.get("DEPTH", "14")
# The tests to run for a fault, by the kind of check. Each kind builds the simulation once.
TESTS = {"tests": "TestGoldenVectors|TestBackPressure|TestBlocked|TestOverlong|TestResetInFrame|TestNoBubbles|TestLatency|TestLockstep/2_ports",
         "one port": "TestLockstep/1_ports"}


def insert_fault(file, old, new):
    text = pathlib.Path("sv", file).read_text()
    old, new = old.replace("\\n", "\n"), new.replace("\\n", "\n")
    if text.count(old) != 1:
        sys.exit(f"{file}: {old!r} occurs {text.count(old)} times, want once")
    return text.replace(old, new)


def run_proof(check, file, faulty):
    done = subprocess.run(["formal/prove.sh", depth, faulty], capture_output=True, text=True)
    return {1: FOUND, 0: MISSED}.get(done.returncode, UNTRIED), done.stdout.strip()


def run_tests(check, file, faulty):
    folder = pathlib.Path(faulty).parent
    overlay = folder / "overlay.json"
    overlay.write_text(json.dumps({"Replace": {str(pathlib.Path("sv", file).resolve()): faulty}}))
    # The simulation with the fault is deleted with the folder, so it is compiled quickly rather than optimised.
    go = os.environ.get("GO", "go")
    cache = subprocess.run([go, "env", "GOCACHE"], capture_output=True, text=True).stdout.strip()
    compiler = folder / "c++"
    compiler.write_text(f'''#!/bin/bash
for a; do case $a in -O?|-f*profile*) ;; *) args+=("$a"); [ "$last" = -o ] && out=$a ;; esac; last=$a; done
cached={folder}/$(printf "%s\\n" "$PWD" "${{args[@]}}" | md5sum | cut -c1-32)
[ -e $cached ] || {{ {shutil.which("c++")} -O1 "${{args[@]}}" || exit; [ -z "$out" ] || cp "$out" $cached; exit; }}
cp $cached "$out"
''')
    compiler.chmod(0o755)
    env = dict(os.environ, XDG_CACHE_HOME=str(folder), GOCACHE=cache, PATH=f"{folder}:{os.environ['PATH']}")
    done = subprocess.run([go, "test", "-overlay", str(overlay), "-count=1", "-failfast", "-timeout", "30m", "-run", TESTS[check], "."],
                          capture_output=True, text=True, env=env)
    failed = re.findall(r"--- FAIL: (\S+)", done.stdout)
    if failed:
        detail = re.search(r"seed \d+ .*? is ", done.stdout)
        return FOUND, max(failed, key=len) + (": " + detail.group(0)[:-4] if detail else "")
    return MISSED if done.returncode == 0 else UNTRIED, done.stdout.strip().rpartition("\n")[2]


missed = 0
for line in pathlib.Path("formal/faults").read_text().splitlines():
    if not line or line.startswith("#"):
        continue
    name, check, file, old, new = (line.split("\t") + [""])[:5]
    if len(sys.argv) > 1 and not {check, name} & set(sys.argv[1:]):
        continue
    with tempfile.TemporaryDirectory() as folder:
        faulty = os.path.join(folder, file)
        pathlib.Path(faulty).write_text(insert_fault(file, old, new))
        outcome, detail = (run_proof if check == "proof" else run_tests)(check, file, faulty)
    missed += outcome != FOUND
    print(f"{outcome}\t{name}\t{check}: {detail}", flush=True)
sys.exit(missed > 0)
