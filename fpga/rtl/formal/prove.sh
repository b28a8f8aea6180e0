#!/bin/bash
# Proves the assertions in formal/olaf_formal.sv with yosys' SAT solver. CORE, if given, replaces the core, for example with a
# faulty one.
#   prove.sh DEPTH [CORE]      for DEPTH cycles after a reset
#   prove.sh induction [CORE]  for any number of cycles: a few cycles after a reset, then from any two cycles to the next
# Exit codes: 0 proved; 1 counterexample found or induction step failed; 2 no result.
depth=${1:-14} core=${2:-sv/olaf_core.sv} patience=${PROVE_SECONDS:-1800}
sources="sv/olaf_pkg.sv sv/olaf_ram.sv sv/olaf_lutram.sv $core formal/olaf_formal.sv"

# solve OPTIONS runs the solver on the module that $prepare prepares.
solve() {
  timeout "$patience" yosys -p "$prepare; opt -full; techmap; opt -full; sat -prove-asserts -set-assumes $1" 2>&1
}

# prove_bounded proves the assertions for $depth cycles and prints the result.
prove_bounded() {
  local resets="-set-at 1 rst 1" out i
  for ((i = 2; i <= depth; i++)); do resets+=" -set-at $i rst 0"; done
  out=$(solve "-seq $depth -prove-skip 1 $resets")
  case $out in
    *"SAT proof finished - no model found: SUCCESS"*) echo "proved for $depth cycles"; return 0 ;;
    *"model found: FAIL"*) echo "counterexample of at most $depth cycles"; return 1 ;;
  esac
  echo "$out" | tail -3; return 2
}

prepare="read_verilog -sv -formal -DSYNTHESIS $sources; prep -flatten -top olaf_formal; async2sync; memory_map; dffunmap"
[ "$depth" = induction ] || { prove_bounded; exit; }

# Connect the wires through which olaf_formal reads the core's internal signals.
peeks=""
peek() { peeks+="connect -nomap -nounset -set peek_$1 core.$2; "; }
for name in paying t1 t2 t3 ours_3 put tail place_1 place_2 place_3 put_slot count_3 count_sum_3 put_meta w_meta; do peek $name $name; done
for i in 0 1; do peek place_of_$i "places.genblk1.g.mem[$i]"; done
for i in 0 1 2; do peek slot_$i "slots.genblk1.g.mem[$i]"; peek head_$i "heads.mem[$i]"; done
prepare="read_verilog -sv -formal -DSYNTHESIS -DHELP $sources; hierarchy -check -top olaf_formal; proc; flatten; memory_collect; memory_map
cd olaf_formal; $peeks delete -input w:peek_*; cd; opt_clean; async2sync; setundef -undriven -anyseq; dffunmap"
depth=6
prove_bounded || exit
out=$(solve "-tempinduct-inductonly -maxsteps 3")
case $out in
  *"Induction step proven: SUCCESS"*) echo "proved for any number of cycles by induction"; exit 0 ;;
  *"Reached maximum number of time steps"*) echo "induction step failed"; exit 1 ;;
esac
echo "$out" | tail -3; exit 2
