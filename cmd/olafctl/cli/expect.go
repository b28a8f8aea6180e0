package cli

import (
	"context"
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/expect"
	"github.com/olafctl/olaf/cmd/olafctl/monitor"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// ExpectFlags are the flags for expectations, which are thresholds for the measured values.
type ExpectFlags struct {
	Texts []string
	Rules []*expect.Rule
	at    []expect.Configuration
}

func (f *ExpectFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.Texts, "expect", nil, "`rule` for a mean, 'olaf.lost_pct < 12'; exit 4 if missed")
}

// ResolveRules parses the rules from a file and the flags before anything runs. An error in a file's rule names the
// rule, for olaf.FieldOf.
func (f *ExpectFlags) ResolveRules(inFile []string, d *metric.Declaration, at []expect.Configuration) error {
	f.at = at
	for i, text := range inFile {
		rule, err := expect.ParseRule(text, d, at)
		if err != nil {
			return olaf.InField(fmt.Sprintf("expect[%d]", i), err)
		}
		f.Rules = append(f.Rules, rule)
	}
	for _, text := range f.Texts {
		rule, err := expect.ParseRule(text, d, at)
		if err != nil {
			return err
		}
		f.Rules = append(f.Rules, rule)
	}
	return nil
}

// JudgeRows prints a line for each missed expectation. rows are in the order of the configurations.
func (f *ExpectFlags) JudgeRows(env *Env, rows []results.Row) error {
	missed := false
	for _, rule := range f.Rules {
		for _, line := range rule.FindMisses(f.at, rows) {
			missed = true
			fmt.Fprintln(env.Stderr, line)
		}
	}
	if missed {
		return &Exit{Kind: olaf.Missed}
	}
	return nil
}

// MetricsFlag is the flag --metrics, for watching a long command with Prometheus.
type MetricsFlag struct{ address string }

func (f *MetricsFlag) Add(cmd *cobra.Command) {
	InGroup(cmd, OutputFlags, func() {
		cmd.Flags().StringVar(&f.address, "metrics", "", "serve Prometheus metrics while it runs, at PORT or HOST:PORT")
	})
}

// StartMonitor serves a monitor until stop is called. Without the flag the monitor is nil, which is valid and does
// nothing.
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
