#!/usr/bin/env python3
"""Writes the longest combinational path of each module according to yosys' ltp, as the number of 6-input LUTs between flip-flops.
Adders are trees of LUTs, because carry chains are not used. Multiplications and memories begin and end a path. ltp does not
use times. The build is narrow: 8 slots of 256 B and 256 clusters, with all words at full width. Usage, in fpga/rtl:
synth/path.py >synth/path.tsv"""
import glob, re, subprocess, sys, time

SIZES = {"SLOTS": 8, "CLUSTERS": 256, "PORTS": 1, "MODEL_CYCLES": 0, "PROVENANCE": 0, "MAX_BYTES": 256, "OLAF_BYTES": 256, "BUFFER": 64,
         "LINES": 3, "DEPTH": 27, "LANES": 48, "PHYS": 9, "PW": 4, "CW": 4, "UW": 8, "BA": 6, "LW": 5, "DESCRIPTORS": 1024, "FLOWS": 64}
PARTS = ["olaf_core", "olaf_ingress", "olaf_lanes", "olaf_reader", "olaf_control", "olaf_counters", "olaf_clusters", "olaf_generator", "olaf_box"]
sources = ["sv/olaf_pkg.sv", "../regmap/olaf_regs.svh"] + sorted(set(glob.glob("sv/*.sv")) - {"sv/olaf_pkg.sv"})


def longest(part):
    text = open(f"sv/{part}.sv").read()
    declared = set(re.findall(r"parameter int (\w+)", text))
    sets = " ".join(f"-set {name} {value}" for name, value in SIZES.items() if name in declared)
    script = f"""
read_verilog -sv -DSYNTHESIS {" ".join(sources)}
chparam {sets} {part}
hierarchy -check -top {part}; proc; flatten; opt; wreduce; peepopt; opt_clean; memory -nomap; opt -full
delete t:$mul
alumacc; share; opt; techmap; opt; opt -full
abc -lut 6; opt_clean; ltp -noff
"""
    done = subprocess.run(["yosys", "-p", script], capture_output=True, text=True)
    found = re.search(r"Longest topological path in \S+ \(length=(\d+)\):\n(.*?)\n\n", done.stdout, re.S)
    if not found:
        sys.exit(f"yosys: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    names = re.findall(r"^ +\d+: (\S+)", found.group(2), re.M)
    return found.group(1), readable(names[0]), readable(names[-1])


def readable(name):
    """Returns the name of a signal in the sources, or a dash for one that yosys created."""
    named = re.match(r"(?:\$0)?\\?([a-z][\w.]*)", name)
    return named.group(1) if named else "–"


print("part\tlevels\tfrom\tto", flush=True)
for part in sys.argv[1:] or PARTS:
    began = time.time()
    print("\t".join((part, *longest(part))), flush=True)
    print(f"{part}: {time.time() - began:.0f} s", file=sys.stderr, flush=True)
