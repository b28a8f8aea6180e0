#!/bin/bash
# Proves formal/olaf_formal.sv to a depth by yosys' SAT solver: prove.sh DEPTH [CORE], where CORE is a core with a fault.
# Exit code 0: it holds; 1: a counterexample was found; 2: neither.
depth=${1:-14} core=${2:-sv/olaf_core.sv}
resets="-set-at 1 rst 1"
for ((i = 2; i <= depth; i++)); do resets+=" -set-at $i rst 0"; done
out=$(timeout "${PROVE_SECONDS:-1800}" yosys -p "
read_verilog -sv -formal -DSYNTHESIS sv/olaf_pkg.sv sv/olaf_ram.sv sv/olaf_lutram.sv $core formal/olaf_formal.sv
prep -flatten -top olaf_formal; async2sync; memory_map; dffunmap; opt -full; techmap; opt -full
sat -seq $depth -prove-asserts -prove-skip 1 -set-assumes $resets" 2>&1)
case $out in
  *"SAT proof finished - no model found: SUCCESS"*) echo "holds for $depth cycles"; exit 0 ;;
  *"model found: FAIL"*) echo "a counterexample of at most $depth cycles"; exit 1 ;;
esac
echo "$out" | tail -3; exit 2
