package bench

import (
	"github.com/spf13/pflag"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/pktgen/process"
	"github.com/olafctl/olaf/pktgen/trace"
)

// traceTrafficFlags are the flags for a bench that replays a recorded training run.
type traceTrafficFlags struct {
	name      string
	averaging string
	spread    float64
	limit     olaf.Duration
	fragments int
	firstOnly bool
}

func (f *traceTrafficFlags) add(flags *pflag.FlagSet) {
	f.limit = 2 * olaf.Microsecond
	flags.StringVar(&f.name, "trace", "", "replay a trace instead of bursts")
	flags.StringVar(&f.averaging, "trace-averaging", trace.Stationary,
		"averaging window used to scale a trace to --rate: stationary | whole-run")
	flags.Float64Var(&f.spread, "trace-spread", 1, "slowest cluster's time divided by the fastest's")
	flags.IntVar(&f.fragments, "trace-frames", 0, "frames per update of a trace; 0 splits only long ones")
	flags.BoolVar(&f.firstOnly, "first-frame-only", false, "never split updates of a trace")
	flags.Var(&f.limit, "trace-limit", "largest deviation of a send time from the trace in a valid run")
}

// resolveTrace sets the specification's trace, or changes a trace that came from a file.
func (f *traceTrafficFlags) resolveTrace(given func(string) bool, s *bench.Spec) error {
	if f.limit < 0 {
		return cli.UsageError("--trace-limit %v is negative", f.limit)
	}
	if f.name != "" {
		t, err := trace.NewTraffic(f.name, &s.Workload)
		if err != nil {
			return &cli.Exit{Kind: olaf.Usage, Err: err}
		}
		s.Trace = t
	}
	t := s.Trace
	if t == nil {
		for _, flag := range []string{"trace-frames", "first-frame-only"} {
			if given(flag) {
				return cli.UsageError("--%s does not apply to bursts; --trace has updates to split", flag)
			}
		}
		return nil
	}
	if f.name != "" || given("trace-limit") {
		t.MaxDeparture = f.limit
	}
	switch {
	case t.Updates > 0:
		s.Runs = 1 // every run would be the same
	default:
		if f.name != "" || given("trace-averaging") {
			t.Averaging = f.averaging
		}
		if f.name != "" || given("trace-spread") {
			t.Spread = f.spread
		}
	}
	return f.split(given, s)
}

// split divides the trace's updates into several frames if requested, or if they do not fit into one frame.
func (f *traceTrafficFlags) split(given func(string) bool, s *bench.Spec) error {
	t, w := s.Trace, &s.Workload
	long := f.name != "" && t.Values() > olaf.MaxLanes && !f.firstOnly
	switch {
	case f.firstOnly && given("trace-frames"):
		return cli.UsageError("--first-frame-only and --trace-frames contradict each other; leave one out")
	case !given("trace-frames") && !long:
		return nil
	case t.Fragments > 1:
		return cli.UsageError("--trace-frames: the file's trace has %d of them already", t.Fragments)
	}
	n := f.fragments
	if n == 0 && t.Values() > olaf.MaxLanes {
		if !given("size") {
			w.Size = olaf.FrameSize(process.MaxOpenLanes)
		}
		lanes := max(1, int(w.Size-olaf.HeaderBytes)/olaf.LaneBytes)
		n = (t.Values() + lanes - 1) / lanes
	}
	if err := t.Split(w, max(n, 1)); err != nil {
		return &cli.Exit{Kind: olaf.Usage, Err: err}
	}
	return nil
}
