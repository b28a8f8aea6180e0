package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/monitor"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/store"
)

// ToSecond truncates a time to seconds for tables. JSON documents contain the full time.
func ToSecond(started string) string {
	t, err := time.Parse(time.RFC3339, started)
	if err != nil {
		return started
	}
	return t.Format(time.RFC3339)
}

// ShowHead prints the run's ID, origin, note and command line.
func ShowHead(env *Env, f *store.Folder) {
	by := &f.Manifest.Provenance
	where := ""
	if by.Device != "" {
		where = " on " + by.Device
	}
	fmt.Fprintf(env.Stdout, "%s, %s%s, started %s\n", f.ID(), f.Manifest.Experiment, where, ToSecond(by.Started))
	if f.Note != "" {
		fmt.Fprintf(env.Stdout, "note: %s\n", f.Note)
	}
	fmt.Fprintf(env.Stdout, "command: %s\n\n", strings.Join(by.Command, " "))
}

// ShowDocument prints a stored report that has its own document format.
func ShowDocument(env *Env, f *store.Folder, out Format) error {
	d, err := archive.LoadDocument(f)
	if err != nil {
		return err
	}
	if out == JSON {
		_, err := env.Stdout.Write(d.JSON)
		return err
	}
	ShowHead(env, f)
	_, err = env.Stdout.Write(d.Printed)
	return err
}

// ToolVersion returns the version and revision of this build, for outputs that only the same build can reproduce.
func ToolVersion() string {
	b := ThisBuild()
	return strings.TrimSpace(b.Version + " " + b.Revision)
}

// AddSystemOptions adds the flags for system options. It is meant for commands that run the system's hosts.
func AddSystemOptions(cmd *cobra.Command, o *system.Options) {
	flags := cmd.Flags()
	AddCount(flags, &o.H, system.OptionH, "iswitch: vectors per sum, in mode sync one from each child; "+
		"default the number of children")
	flags.IntVar(&o.Bound, system.OptionBound, system.DefaultBound,
		"iswitch async: staleness S above which gradients are discarded")
	flags.StringVar(&o.Profile, system.OptionProfile, "",
		"program variant: isw-1|isw-x for iswitch sync, p4ml|paper for atp")
	flags.StringVar(&o.Recovery, system.OptionRecovery, "",
		"loss recovery: help|fbcast|none for iswitch sync, resend|none for atp")
	flags.Var(&o.Timeout, system.OptionTimeout,
		"retransmission timeout: 1ms for iswitch sync, switchml and p4inc, 200us for atp")
	flags.Var(&o.Packet, system.OptionPacket, "payload of a switchml packet: 256B|1024B")
	AddCount(flags, &o.Window, system.OptionWindow,
		"packets in flight per worker; default 100 for atp, the job's segment for p4inc")
	flags.BoolVar(&o.Congestion, system.OptionCongestion, false, "atp: adapt windows to congestion marks")
	Complete(cmd, system.OptionProfile, func() []string { return []string{"isw-1", "isw-x", "p4ml", "paper"} })
	Complete(cmd, system.OptionRecovery, func() []string {
		return []string{string(endpoint.RecoverHelp), string(endpoint.RecoverForce), system.RecoverResend,
			string(endpoint.RecoverNone)}
	})
}

// GivenOptions returns the system options that are set on the command line.
func GivenOptions(cmd *cobra.Command) []string {
	return slices.DeleteFunc(slices.Clone(waitOptions), func(o string) bool { return !cmd.Flags().Changed(o) })
}

// PlayJobs calls play and shows a progress bar that counts the finished runs.
func PlayJobs[R any](ctx context.Context, env *Env, quiet bool, m *monitor.Monitor, runs int,
	play func(context.Context, func()) (R, error)) (R, error) {
	var done atomic.Int64
	look := func() (int, int) { return int(done.Load()), runs }
	m.AddWork(SimulateName, look)
	bar := StartProgress(env, quiet, look)
	report, err := play(ctx, func() { done.Add(1) })
	bar.Stop()
	return report, err
}
