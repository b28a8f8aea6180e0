#!/bin/bash
# Synthesizes the box for UltraScale+ by yosys and prints one line a size: an estimate, as no tool of AMD's placed anything.
# Usage: area.sh SLOTS FRAME_BYTES [PORTS] …; run it from fpga/rtl.
set -euo pipefail
slots=${1:-8} frame=${2:-256} ports=${3:-2} clusters=${4:-256}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# Frames of more than 1,024 B lie in UltraRAM, headers of more than 512 slots in block RAM.
lanes=1 headers=0
[ "$frame" -gt 1024 ] && lanes=2
[ "$slots" -gt 512 ] && lanes=2 headers=1
yosys -q -l "$out/log" -p "
read_verilog -sv -DSYNTHESIS sv/olaf_pkg.sv ../regmap/olaf_regs.svh $(ls sv/*.sv | grep -v olaf_pkg | tr '\n' ' ')
chparam -set SLOTS $slots -set CLUSTERS $clusters -set MAX_BYTES $frame -set PORTS $ports -set MODEL_CYCLES 0 -set PROVENANCE 0 \
  -set DESCRIPTORS 1024 -set FLOWS 64 -set LANE_STYLE $lanes -set HEADER_STYLE $headers olaf_box
synth_xilinx -family xcup -uram -noiopad -top olaf_box
tee -q -o $out/stat stat
" >/dev/null 2>&1
python3 - "$out" "$slots" "$frame" "$ports" <<'PY'
import collections, re, sys
out, slots, frame, ports = sys.argv[1:]
modules, name = {}, None
for line in open(out + "/stat"):
    if section := re.match(r"=== (.*) ===$", line):
        name = section.group(1)
        modules[name] = {}
    elif name and (cell := re.match(r"     (\S+) +(\d+)$", line)):
        modules[name][cell.group(1)] = int(cell.group(2))
def cells(name, skip):
    total = collections.Counter()
    for cell, n in modules[name].items():
        if cell not in modules:
            total[cell] += n
        elif not (skip and "olaf_generator" in cell):
            for c, k in cells(cell, skip).items():
                total[c] += n * k
    return total
top = next(m for m in modules if m.lstrip("\\").endswith("olaf_box") and m != "design hierarchy")
c = cells(top, True)
logic = sum(n for k, n in c.items() if re.fullmatch(r"LUT[1-6]", k))
memory = sum(n * {"RAM32M16": 8, "RAM64M8": 8, "RAM32M": 4, "RAM64M": 4, "RAM256X1S": 4, "RAM256X1D": 8, "RAM128X1D": 4, "RAM64X1D": 2, "RAM32X1D": 2}.get(k, 0) for k, n in c.items())
unknown = [k for k in c if k.startswith("RAM") and not k.startswith("RAMB") and k not in ("RAM32M16", "RAM64M8", "RAM32M", "RAM64M", "RAM256X1S", "RAM256X1D", "RAM128X1D", "RAM64X1D", "RAM32X1D")]
flops = sum(n for k, n in c.items() if k.startswith("FD"))
print("%5s x %4s B, %s ports: LUT %d + %d LUTRAM = %.2f %%, FF %d = %.2f %%, RAMB18 %d, RAMB36 %d, URAM %d, DSP %d%s" % (
    slots, frame, ports, logic, memory, 100 * (logic + memory) / 1303680, flops, 100 * flops / 2607360,
    c["RAMB18E2"], c["RAMB36E2"], c["URAM288"], c["DSP48E2"], "; not counted: " + " ".join(unknown) if unknown else ""))
PY
