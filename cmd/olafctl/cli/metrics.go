package cli

import (
	"context"
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/monitor"
)

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
