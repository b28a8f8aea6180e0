package cli

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/monitor"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/engine"
)

// TimeScale parses the value of --time-scale, such as 1/500, and returns the divisor, such as 500.
func TimeScale(text string) (by int64, err error) {
	of, ok := strings.CutPrefix(text, "1/")
	by, err = strconv.ParseInt(of, 10, 64)
	if !ok || err != nil || by < 1 {
		return 0, UsageError("--time-scale %q: write 1/500, for rates of a five-hundredth and times of 500 times "+
			"as long", text)
	}
	return by, nil
}

// AddTrainingFlags adds the options that are common to training and to recording a training run.
func AddTrainingFlags(cmd *cobra.Command, c *rl.Config) {
	flags := cmd.Flags()
	flags.IntVar(&c.Workers, "workers", c.Workers, "workers, spread evenly over the clusters")
	flags.IntVar(&c.Clusters, "clusters", c.Clusters, "clusters (training jobs), each with its own model")
	flags.IntVar(&c.Iterations, "iterations", c.Iterations, "iterations per worker")
	flags.Uint64Var(&c.Seed, "seed", c.Seed, "seed for environments, actions and weights")
	Choose(cmd, &c.Gradient, "gradient", "content of an update: delta (local PPO) | literal (one gradient; hardly "+
		"learns)", rl.Delta, rl.Literal)
	Choose(cmd, &c.Gate, "gate", "server's acceptance gate: none | max (the paper's; stalls) | ema | band", rl.NoGate,
		rl.MaxGate, rl.EMAGate, rl.BandGate)
	flags.Float64Var(&c.Band, "band", c.Band, "reward below the running mean that the band gate still accepts")
	flags.BoolVar(&c.Average, "average", c.Average, "average each gradient with the running one")
	addFloat32(flags, &c.StepSize, "step-size", "step size γ of the parameter server")
	addFloat32(flags, &c.PPO.LearnRate, "learn-rate", "learning rate of the workers' optimiser")
	flags.IntVar(&c.PPO.Steps, "steps", c.PPO.Steps, "minimum environment steps per iteration, in whole episodes")
	flags.IntVar(&c.PPO.Epochs, "epochs", c.PPO.Epochs, "passes over each iteration's samples")
	flags.Float64Var(&c.Spread, "spread", c.Spread, "slowest worker's time divided by the fastest's")
}

// AddQuiet adds the flag --quiet.
func AddQuiet(flags *pflag.FlagSet, quiet *bool) {
	flags.BoolVarP(quiet, "quiet", "q", false, "no progress on stderr")
}

// AddForce adds the flag --force. what is the name of the files that it overwrites.
func AddForce(flags *pflag.FlagSet, force *bool, what string) {
	flags.BoolVar(force, "force", false, "overwrite "+what)
}

// AddWrite adds the flag --write.
func AddWrite(flags *pflag.FlagSet, path *string, usage string) {
	flags.StringVarP(path, "write", "w", "", usage)
}

// AddRewardFilter adds the flags for a queue's reward filter.
func AddRewardFilter(flags *pflag.FlagSet, on *bool, threshold *float64) {
	flags.BoolVar(on, "reward-filter", false, "compare rewards before merging (§3)")
	flags.Float64Var(threshold, "reward-threshold", 0, "threshold of the reward filter")
}

// AddAckContent adds the flag --tc-ack.
func AddAckContent(cmd *cobra.Command, ack *tc.AckContent) {
	Choose(cmd, ack, "tc-ack", "part of an ACK that the law uses: slots in use, or whether the queue is full (§5)", tc.AckContents()...)
}

// controlFlags lists the flags for transmission control.
var controlFlags = []string{"tc", "tc-law", "tc-ack", "tc-count", "slope"}

// AddControl adds the flags for the workers' transmission control. SettleControl completes c.
func AddControl(cmd *cobra.Command, c *tc.Control) {
	c.Slope, c.Law, c.Ack = tc.Urgency, tc.PaperLaw, tc.NumberAck
	cmd.Flags().Var(&c.Threshold, "tc", "transmission control threshold for the time since the last ACK (§5); 0s for off")
	Choose(cmd, &c.Slope, "slope", "slope v of transmission control", tc.Slopes()...)
	Choose(cmd, &c.Law, "tc-law", "law of transmission control, with --tc", tc.LawNames()...)
	AddAckContent(cmd, &c.Ack)
}

// ControlGiven returns the first flag for transmission control on the command line, or "" if there is none.
func ControlGiven(cmd *cobra.Command) string {
	for _, name := range controlFlags {
		if cmd.Flags().Changed(name) {
			return "--" + name
		}
	}
	return ""
}

// SettleControl returns the transmission control that the flags of AddControl select. It returns nil if the control is
// off, for example without a threshold.
func SettleControl(c tc.Control) *tc.Control {
	if c.Threshold == 0 && (c.Law == tc.PaperLaw || c.Law == tc.NoLaw) && c.Ack == tc.NumberAck {
		return nil
	}
	if c.Ack == tc.NumberAck {
		c.Ack = "" // as in the documents of older runs
	}
	return &c
}

// float32Value is a flag value of type float32, in which the learner computes.
type float32Value struct{ value *float32 }

func addFloat32(flags *pflag.FlagSet, value *float32, name, usage string) {
	flags.Var(float32Value{value}, name, usage)
}

func (v float32Value) String() string {
	if v.value == nil {
		return ""
	}
	return fmt.Sprint(*v.value)
}

func (v float32Value) Type() string { return "float" }

func (v float32Value) Set(s string) error {
	x, err := olaf.ParseNumber(s)
	if err != nil || math.Abs(x) > math.MaxFloat32 {
		return &strconv.NumError{Num: s, Err: strconv.ErrSyntax}
	}
	*v.value = float32(x)
	return nil
}

func ProfileFlag(cmd *cobra.Command, p *engine.Profile) {
	Choose(cmd, (*string)(p), "profile", "engine timing", engine.ProfileNames()...)
}

// waitOptions are the flags of closed-loop workers that are options of a system; WaitNames are all of them.
var (
	waitOptions = []string{
		system.OptionH, system.OptionBound, system.OptionSlots, system.OptionWrap, system.OptionProfile,
		system.OptionRecovery, system.OptionTimeout,
		system.OptionPacket, system.OptionWindow, system.OptionCongestion,
	}
	WaitNames = append([]string{"mode"}, waitOptions...)
)

// SimulateName is the name under which simulations are stored.
const SimulateName = "simulate"

// RefuseFlags returns an error if one of the named flags is given, because the flag does not apply to the subject named
// by to.
func RefuseFlags(cmd *cobra.Command, names []string, to string) error {
	var wrong error
	cmd.Flags().VisitAll(func(given *pflag.Flag) {
		if given.Changed && slices.Contains(names, given.Name) {
			wrong = UsageError("--%s does not apply to %s", given.Name, to)
		}
	})
	return wrong
}

// OrDash returns s, or a dash if it is empty.
func OrDash(s string) string {
	return cmp.Or(s, "-")
}

// MetricsFlag is the flag --metrics, which exposes the progress of a long command to Prometheus.
type MetricsFlag struct{ address string }

func (f *MetricsFlag) Add(cmd *cobra.Command) {
	InGroup(cmd, OutputFlags, func() {
		cmd.Flags().StringVar(&f.address, "metrics", "", "serve Prometheus metrics while it runs, at PORT or HOST:PORT")
	})
}

// StartMonitor serves a monitor until stop is called. Without the flag it returns a nil monitor, which is valid and
// does nothing.
func (f *MetricsFlag) StartMonitor(ctx context.Context, env *Env) (m *monitor.Monitor, stop func(), err error) {
	if f.address == "" {
		return nil, func() {}, nil
	}
	l, err := monitor.Listen(f.address)
	if err != nil {
		return nil, nil, err
	}
	m = NewMonitor()
	stop = m.Serve(ctx, l)
	fmt.Fprintf(env.Stderr, "metrics: http://%s/metrics\n", l.Addr())
	if at, tcp := l.Addr().(*net.TCPAddr); tcp && !at.IP.IsLoopback() {
		fmt.Fprintf(env.Stderr, "every host that reaches this one can read them, without TLS or a password; "+
			"--metrics %d limits them to this host\n", at.Port)
	}
	return m, stop, nil
}

// NewMonitor returns a monitor with this build's version.
func NewMonitor() *monitor.Monitor {
	b := ThisBuild()
	return monitor.New(b.Version, b.Revision)
}
