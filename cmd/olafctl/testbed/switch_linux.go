package testbed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/bench/wired"
	"github.com/olafctl/olaf/fpga/netlab"
)

// openFrames opens a packet socket on an interface in this network namespace.
func openFrames(name string) (wireConn, error) {
	at, err := netlab.FindInterface(name)
	if err != nil {
		return nil, fmt.Errorf("%w; 'ip link' lists the interfaces, and 'olafctl testbed switch' prints namespaces", err)
	}
	return at.Frames()
}

// switchFlags are the flags of testbed switch.
type switchFlags struct {
	system  string
	workers int
	values  int
	wire    wireFlags
}

func newSwitchCmd(env *cli.Env) *cobra.Command {
	f := &switchFlags{}
	cmd := &cobra.Command{
		Use:   "switch",
		Short: "Run a system's switch in user space, for workers that you start by hand",
		Long: `Run the switch program of a system in this process until Ctrl-C, then print its counts. Start 'testbed worker' for every
worker, and 'testbed ps' if the system has a server. Each has a namespace with the interface uplink, or is connected to an
interface of this machine (--interfaces). The command prints the commands to start. Links have 10 Gbps.`,
		Example: `  sudo olafctl testbed switch --system switchml --workers 2
  sudo olafctl testbed switch --system atp --workers 2 --interfaces eth1,eth2,eth3`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, env) },
	}
	flags := cmd.Flags()
	cli.Choose(cmd, &f.system, "system", "system whose switch to run", wireSystems(env)...)
	flags.IntVar(&f.workers, "workers", 4, "workers of the job")
	flags.IntVar(&f.values, "values", 1<<16, "values of the longest vector")
	flags.StringVar(&f.wire.interfaces, "interfaces", "", "interfaces to the workers in the order of their numbers, then to "+
		"the server, separated by commas; default namespaces")
	f.wire.addOptions(cmd)
	return cmd
}

func (f *switchFlags) run(cmd *cobra.Command, env *cli.Env) (err error) {
	if f.system == "" {
		return cli.UsageError("--system is missing; use one of %s", strings.Join(wireSystems(env), ", "))
	}
	w, err := f.wire.build(env, f.system, f.workers, f.values, 0)
	if err != nil {
		return err
	}
	var interfaces []string
	if f.wire.interfaces != "" {
		interfaces = strings.Split(f.wire.interfaces, ",")
	}
	stand, err := w.OpenSwitch(interfaces, func(format string, args ...any) {
		fmt.Fprintf(env.Stderr, format+"\n", args...)
	})
	if err != nil {
		return err
	}
	f.printCommands(cmd, env, stand)
	select {
	case <-cmd.Context().Done():
	case <-stand.Done():
	}
	counts, err := stand.Close()
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(env.Stdout, "%s %d\n", name, counts[name])
	}
	if cause := context.Cause(cmd.Context()); err == nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return err
}

// printCommands prints a command for each host.
func (f *switchFlags) printCommands(cmd *cobra.Command, env *cli.Env, s *wired.Stand) {
	common := fmt.Sprintf("--system %s --workers %d", f.system, f.workers)
	for _, name := range []string{"values", "mode", "slots", "program-profile"} {
		if at := cmd.Flags().Lookup(name); at.Changed {
			common += fmt.Sprintf(" --%s %s", name, at.Value)
		}
	}
	self := os.Args[0]
	if path, err := filepath.Abs(self); err == nil && strings.ContainsRune(self, filepath.Separator) {
		self = path // it may not be in PATH
	}
	for i, name := range s.Names {
		enter, at := "", "INTERFACE"
		if len(s.Paths) > 0 {
			enter, at = "nsenter --net="+s.Paths[i]+" ", wired.HostInterface
		}
		role, own := "worker", fmt.Sprintf(" --worker %d --attach unix:/tmp/w%d.sock", i, i)
		if i == f.workers {
			if role, own = "ps", ""; f.wire.mode == "async" {
				own = " --attach unix:/tmp/ps.sock"
			}
		}
		fmt.Fprintf(env.Stdout, "%s: %s%s testbed %s %s --interface %s%s\n", name, enter, self, role, common, at, own)
	}
	fmt.Fprintf(env.Stderr, "switching frames of %s (Ctrl-C ends it)\n", olaf.Plural(len(s.Names), "host"))
}
