// Command mutate finds mistakes that no test would notice. It draws a random sample of small wrong changes to one
// package. It runs the short tests of the package and of its judges on each change, and lists the changes that no test
// notices. The sample is determined by a seed. The command never writes to the source tree.
//
// All changes in a sample are compiled into one set of test programs by an overlay. Every changed function has wrong
// copies, and a number in the environment selects a copy. A mutant therefore costs a run of the tests but no build.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// options contains the options on the command line.
type options struct {
	pkg        string
	judges     []string
	n          int
	seed       uint64
	seen       [][]uint64 // seeds of earlier samples that were reviewed, in the order in which they are excluded
	equivalent string
	survivors  string
	kept       string // folder of the results, with which an interrupted run continues
	fresh      bool
	verbose    bool
}

func main() {
	o := options{}
	judges := ""
	flag.StringVar(&o.pkg, "pkg", "", "the package to change, as a folder of this module")
	flag.StringVar(&judges, "judges", "", "other packages whose tests are run, by commas (default: those of the table of judges)")
	flag.IntVar(&o.n, "n", 100, "the size of the sample; 0 takes every mutant")
	flag.Uint64Var(&o.seed, "seed", 1, "which sample is drawn")
	flag.Func("seen", "seeds, by commas, whose samples somebody has looked at: none of their mutants is drawn; "+
		"given again, those that were drawn so", o.addSeen)
	flag.StringVar(&o.equivalent, "equivalent", "internal/tools/mutate/equivalent.txt",
		"the mutants that were judged to change nothing, with the reasons")
	flag.StringVar(&o.survivors, "survivors", "internal/tools/mutate/survivors.txt",
		"the mutants that tests do not notice and why that was left so, which is printed beside them")
	flag.StringVar(&o.kept, "kept", "dist/mutate", "the folder in which results are kept")
	flag.BoolVar(&o.fresh, "fresh", false, "run also what a kept result answers")
	flag.BoolVar(&o.verbose, "v", false, "print every mutant with what became of it")
	flag.Parse()
	o.pkg = strings.TrimPrefix(filepath.ToSlash(filepath.Clean(o.pkg)), "./")
	if o.judges = judgesOf[o.pkg]; judges != "" {
		o.judges = strings.Split(judges, ",")
	}
	if err := mutate(o); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func (o *options) addSeen(list string) error {
	var seeds []uint64
	for text := range strings.SplitSeq(list, ",") {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return err
		}
		seeds = append(seeds, seed)
	}
	o.seen = append(o.seen, seeds)
	return nil
}

// judgesOf maps packages to their judges: other packages whose tests also check the package's behaviour, nearest first.
var judgesOf = map[string][]string{
	"capture":                       {"capture/replay", "capture/live"},
	"experiments/netsim":            nil,
	"fpga/engine":                   {"fpga/twin", "capture/replay"},
	"fpga/program":                  {"fpga/program/switchml", "fpga/program/atp", "p4ctl/agent"},
	"fpga/program/atp":              {"experiments/netsim/closedloop"},
	"fpga/program/iswitch":          {"fpga/frame", "experiments/netsim/closedloop"},
	"fpga/program/p4inc":            {"experiments/netsim/closedloop", "experiments/sched/play"},
	"fpga/program/xagg":             {"pktgen/endpoint", "experiments/netsim/closedloop"},
	"fpga/program/vector":           {"fpga/program/iswitch", "fpga/program/switchml", "fpga/program/atp"},
	"fpga/twin":                     {"pktgen", "capture"},
	"experiments/netsim/closedloop": {"experiments/bench/job", "tui/loops", "experiments/netsim"},
	"fpga/program/switchml":         {"experiments/netsim/closedloop"},
	"pktgen/endpoint":               {"experiments/netsim/closedloop", "experiments/bench/job"},
	"p4ctl":                         {"p4ctl/agent"},
	"p4ctl/agent":                   {"p4ctl"},
	"pktgen":                        {"fpga/twin"},
	"results":                       {"results/compare", "results/inference", "results/sheets", "experiments/netsim"},
	"results/archive":               {"results/store"},
	"results/obsfile":               {"results/archive"},
	"results/metric":                {"results", "results/compare"},
	"results/table":                 {"results/sheets", "results/report", "results/xlsx"},
}

func mutate(o options) error {
	if o.pkg == "" || o.pkg == "." {
		return errors.New("which package? -pkg fpga/engine")
	}
	target, err := load(o.pkg)
	if err != nil {
		return err
	}
	judged, err := readJudged(o.equivalent, o.pkg)
	if err != nil {
		return err
	}
	left, err := readJudged(o.survivors, o.pkg)
	if err != nil {
		return err
	}
	all := target.listMutants()
	unseen := target.unseen(all, o)
	sample, broken := target.draw(unseen, o.n, o.seed)
	if len(sample) == 0 {
		return fmt.Errorf("%s: none of %d mutants is left that no sample held yet", o.pkg, len(all))
	}
	fmt.Fprintf(os.Stderr, "%s: %d mutants, %d of them looked at; %d in the sample of seed %d; %d drawn do not compile and are not counted\n",
		o.pkg, len(all), len(all)-len(unseen), len(sample), o.seed, broken)
	results, err := openKept(o)
	if err != nil {
		return err
	}
	defer results.Close()
	r := runner{options: o, target: target, results: results}
	var open []*mutant
	for _, m := range sample {
		if !judged.has(m) && !results.known(m) {
			open = append(open, m)
		}
	}
	if err := r.runAll(open); err != nil {
		return err
	}
	report(os.Stdout, o, sample, results, judged, left)
	for _, line := range judged.stale(all) {
		fmt.Fprintf(os.Stderr, "judged equivalent, but no longer a mutant: %s\n", line)
	}
	for _, m := range sample {
		if left.has(m) && results.of(m) != survived {
			fmt.Fprintf(os.Stderr, "listed as a survivor, but noticed by now: %s\n", m.id)
		}
	}
	return nil
}

// runAll runs the mutants of functions with a single build, and each package-level mutant with a separate build.
func (r *runner) runAll(open []*mutant) error {
	var together []*mutant
	for _, m := range open {
		if m.fn != nil {
			together = append(together, m)
		}
	}
	if err := r.runBatch(together); err != nil {
		return err
	}
	for _, m := range open {
		if m.fn == nil {
			if err := r.runBatch([]*mutant{m}); err != nil {
				return err
			}
		}
	}
	return nil
}

// runBatch builds and runs a batch of mutants. If the compiler rejects code that the type checker accepted, runBatch
// divides the batch in two and tries again.
func (r *runner) runBatch(batch []*mutant) error {
	if len(batch) == 0 {
		return nil
	}
	built, err := r.build(batch)
	if refused := (*exec.ExitError)(nil); errors.As(err, &refused) && len(batch) > 1 {
		return errors.Join(r.runBatch(batch[:len(batch)/2]), r.runBatch(batch[len(batch)/2:]))
	} else if errors.As(err, &refused) {
		return r.results.keep(batch[0], uncompiled, "")
	} else if err != nil {
		return err
	}
	defer built.remove()
	if batch[0].fn != nil {
		if err := built.measureBaseline(); err != nil {
			return err
		}
	} else {
		built.allow(generous)
	}
	for _, m := range batch {
		fate, judge, err := built.run(m)
		if err != nil {
			return err
		}
		if err := r.results.keep(m, fate, judge); err != nil {
			return err
		}
		if r.verbose {
			fmt.Fprintf(os.Stderr, "%s %s %s\n", fate, m.place(), m.id)
		}
	}
	return nil
}

// packages returns the names of the package and its judges.
func (o options) packages() []string { return slices.Concat([]string{o.pkg}, o.judges) }
