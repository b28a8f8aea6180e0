#!/bin/bash
# Proves formal/olaf_formal.sv by yosys' SAT solver: prove.sh DEPTH [CORE] for so many cycles after a reset, where CORE is a core with
# a fault; prove.sh induction [CORE] for all times: for some cycles after a reset, and then from any two cycles to the next.
# Exit code 0: it holds; 1: a counterexample was found, or induction does not close; 2: neither.
depth=${1:-14} core=${2:-sv/olaf_core.sv} patience=${PROVE_SECONDS:-1800}
sources="sv/olaf_pkg.sv sv/olaf_ram.sv sv/olaf_lutram.sv $core formal/olaf_formal.sv"

# solve HOW runs the solver over the module as $prepare leaves it.
solve() {
  timeout "$patience" yosys -p "$prepare; opt -full; techmap; opt -full; sat -prove-asserts -set-assumes $1" 2>&1
}

# bounded is what a proof of $depth cycles came to.
bounded() {
  local resets="-set-at 1 rst 1" out i
  for ((i = 2; i <= depth; i++)); do resets+=" -set-at $i rst 0"; done
  out=$(solve "-seq $depth -prove-skip 1 $resets")
  case $out in
    *"SAT proof finished - no model found: SUCCESS"*) echo "holds for $depth cycles"; return 0 ;;
    *"model found: FAIL"*) echo "a counterexample of at most $depth cycles"; return 1 ;;
  esac
  echo "$out" | tail -3; return 2
}

prepare="read_verilog -sv -formal -DSYNTHESIS $sources; prep -flatten -top olaf_formal; async2sync; memory_map; dffunmap"
[ "$depth" = induction ] || { bounded; exit; }

# The wires that olaf_formal peeks by lie in the core.
peeks=""
peek() { peeks+="connect -nomap -nounset -set peek_$1 core.$2; "; }
for name in paying t1 t2 t3 ours_3 put tail place_1 place_2 place_3 put_slot count_3 count_sum_3 put_meta w_meta; do peek $name $name; done
for i in 0 1; do peek place_of_$i "places.genblk1.g.mem[$i]"; done
for i in 0 1 2; do peek slot_$i "slots.genblk1.g.mem[$i]"; peek head_$i "heads.mem[$i]"; done
prepare="read_verilog -sv -formal -DSYNTHESIS -DHELP $sources; hierarchy -check -top olaf_formal; proc; flatten; memory_collect; memory_map
cd olaf_formal; $peeks delete -input w:peek_*; cd; opt_clean; async2sync; setundef -undriven -anyseq; dffunmap"
depth=6
bounded || exit
out=$(solve "-tempinduct-inductonly -maxsteps 3")
case $out in
  *"Induction step proven: SUCCESS"*) echo "holds for all times: induction closes"; exit 0 ;;
  *"Reached maximum number of time steps"*) echo "induction does not close"; exit 1 ;;
esac
echo "$out" | tail -3; exit 2
