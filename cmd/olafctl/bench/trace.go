package bench

import (
	"github.com/spf13/pflag"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/pktgen/trace"
)

// traceTrafficFlags are the flags for a bench that replays a recorded training.
type traceTrafficFlags struct {
	name      string
	averaging string
	spread    float64
	limit     olaf.Duration
}

func (f *traceTrafficFlags) add(flags *pflag.FlagSet) {
	f.limit = 2 * olaf.Microsecond
	flags.StringVar(&f.name, "trace", "", "replay a trace instead of bursts")
	flags.StringVar(&f.averaging, "trace-averaging", trace.Stationary,
		"averaging window used to scale a trace to --rate: stationary | whole-run")
	flags.Float64Var(&f.spread, "trace-spread", 1, "slowest cluster's time divided by the fastest's")
	flags.Var(&f.limit, "trace-limit", "largest deviation of a send time from the trace in a valid run")
}

// resolveTrace sets the trace of the specification, or changes the one from a file.
func (f *traceTrafficFlags) resolveTrace(given func(string) bool, s *bench.Spec) error {
	if f.limit < 0 {
		return cli.UsageError("--trace-limit %v is negative", f.limit)
	}
	if f.name != "" {
		t, err := bench.NewTraceTraffic(f.name, &s.Workload)
		if err != nil {
			return &cli.Exit{Kind: olaf.Usage, Err: err}
		}
		s.Trace = t
	}
	t := s.Trace
	if t == nil {
		return nil
	}
	if f.name != "" || given("trace-limit") {
		t.MaxDeparture = f.limit
	}
	if t.Updates > 0 {
		s.Runs = 1 // every run would be the same
		return nil
	}
	if f.name != "" || given("trace-averaging") {
		t.Averaging = f.averaging
	}
	if f.name != "" || given("trace-spread") {
		t.Spread = f.spread
	}
	return nil
}
