#!/usr/bin/env python3
"""Synthesizes the box for UltraScale+ with yosys and writes one tab-separated line of resources per size. These are estimates,
because nothing was placed with AMD's tools. They do not include the generator and VNP4. Usage, in fpga/rtl:
synth/area.py SLOTS,FRAME_BYTES[,PORTS]... >synth/area.tsv"""
import collections, glob, pathlib, re, subprocess, sys, tempfile, time

COLUMNS = ["slots", "frame", "ports", "lut", "lutram", "ff", "ramb18", "ramb36", "uram", "dsp"]
# Number of SLICEM LUTs in each kind of distributed memory.
LUTRAM = {"RAM32M16": 8, "RAM64M8": 8, "RAM32M": 4, "RAM64M": 4, "RAM256X1S": 4, "RAM256X1D": 8, "RAM128X1S": 2, "RAM128X1D": 4,
          "RAM64X1S": 1, "RAM64X1D": 2, "RAM32X1S": 1, "RAM32X1D": 2, "RAM512X1S": 8, "SRL16E": 1, "SRLC32E": 1}
sources = ["sv/olaf_pkg.sv", "../regmap/olaf_regs.svh"] + sorted(set(glob.glob("sv/*.sv")) - {"sv/olaf_pkg.sv", "sv/olaf_generator.sv"})


def synthesize(slots, frame, ports):
    # Frames above 1,024 B, or above 512 slots, are stored in UltraRAM, and headers above 512 slots in block RAM.
    lanes, headers = (2 if frame > 1024 or slots > 512 else 1), (1 if slots > 512 else 0)
    with tempfile.TemporaryDirectory() as folder:
        stat = pathlib.Path(folder, "stat")
        script = f"""
read_verilog -sv -DSYNTHESIS {" ".join(sources)}
read_verilog -sv -lib sv/olaf_generator.sv
chparam -set SLOTS {slots} -set CLUSTERS 256 -set MAX_BYTES {frame} -set PORTS {ports} -set MODEL_CYCLES 0 -set PROVENANCE 0 \
-set LANE_STYLE {lanes} -set HEADER_STYLE {headers} olaf_box
synth_xilinx -family xcup -uram -noiopad -top olaf_box
tee -q -o {stat} stat
"""
        done = subprocess.run(["yosys", "-q", "-p", script], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"yosys: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return cells(stat.read_text())


def cells(text):
    """Returns the number of cells in the design by kind, including those in its modules."""
    modules, name = {}, None
    for line in text.splitlines():
        if section := re.match(r"=== (.*) ===$", line):
            name = section.group(1)
            modules[name] = {}
        elif name and (cell := re.match(r"     (\S+) +(\d+)$", line)):
            modules[name][cell.group(1)] = int(cell.group(2))

    def total(name):
        all = collections.Counter()
        for cell, n in modules[name].items():
            for kind, k in (total(cell) if cell in modules else {cell: 1}).items():
                all[kind] += n * k
        return all

    return total(next(m for m in modules if m.lstrip("\\").endswith("olaf_box")))


print("\t".join(COLUMNS), flush=True)
for size in sys.argv[1:]:
    slots, frame, ports = ([int(n) for n in size.split(",")] + [2])[:3]
    began = time.time()
    c = synthesize(slots, frame, ports)
    unknown = [k for k in c if k.startswith(("RAM", "SRL")) and k not in LUTRAM and k not in ("RAMB18E2", "RAMB36E2")]
    if unknown:
        sys.exit(f"{size}: memories that are not counted: {' '.join(unknown)}")
    row = [slots, frame, ports, sum(n for k, n in c.items() if re.fullmatch("LUT[1-6]", k)), sum(n * LUTRAM.get(k, 0) for k, n in c.items()),
           sum(n for k, n in c.items() if k.startswith("FD")), c["RAMB18E2"], c["RAMB36E2"], c["URAM288"], c["DSP48E2"]]
    print("\t".join(map(str, row)), flush=True)
    print(f"{size}: {time.time() - began:.0f} s", file=sys.stderr, flush=True)
