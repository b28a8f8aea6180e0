package experiments

import (
	"context"
	"fmt"
)

// table1 reproduces the micro-benchmark: FIFO and Olaf at 40 and 20 Gbps (§8.1, Table 1, and the AoM reductions beside it).
var table1 = Experiment{
	Name:     "table1",
	Artefact: "Table 1 and the AoM reductions of §8.1",
	About:    "27 workers in 9 clusters at 60 Gbps through 8 slots, FIFO and Olaf at 40 and 20 Gbps",
	Needs:    "1 s",
	OnDevice: true,
	Run:      runPreset("table1"),
}

// Table1 is the specification of the paper's micro-benchmark with the traffic that was found to fit it.
func Table1() Spec {
	s := DefaultSpec()
	s.Experiment = "table1"
	return s
}

// Presets are the specifications that run on a single-queue testbed.
func Presets() []Spec { return []Spec{Table1(), Fig6()} }

// Preset finds a specification by its experiment's name. The error matches ErrUnknown.
func Preset(name string) (Spec, error) {
	for _, s := range Presets() {
		if s.Experiment == name {
			return s, nil
		}
	}
	return Spec{}, fmt.Errorf("%w: %q is none that runs on a single-queue testbed", ErrUnknown, name)
}

// runPreset runs a preset on the device of the options.
func runPreset(name string) func(context.Context, Options) (Report, error) {
	return func(ctx context.Context, o Options) (Report, error) {
		spec, err := Preset(name)
		if err != nil {
			return nil, err
		}
		if o.Quick {
			spec.Runs = 6
		}
		if o.Runs > 0 {
			spec.Runs = o.Runs
		}
		if o.Seed > 0 {
			spec.Seed = o.Seed
		}
		report, err := Bench(ctx, spec, BenchOptions{Device: o.Device, Access: o.Access, Stream: o.Stream, Beside: BesidePaper})
		if report == nil {
			return nil, err // not a Report that holds nothing
		}
		return report, err
	}
}
