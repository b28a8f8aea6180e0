package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/program"
)

// ErrLinux is returned by commands for real packets on operating systems other than Linux.
var ErrLinux = olaf.NewError(olaf.Device, "namespaces and XDP need Linux: run this there")

// TableSystems returns the names of the systems whose switch programs have tables.
func TableSystems(set system.Set) []string {
	return set.Where(func(s *system.System) bool { return s.Program != nil && len(s.Program.Tables) > 0 }).Names()
}

// TablePrograms returns the program whose tables are in the system's pipeline. It returns none for a system whose ports
// are only queues.
func TablePrograms(set system.Set, name string) ([]program.Description, error) {
	if name == "" {
		return nil, nil
	}
	s, err := set.Find(name)
	switch {
	case err != nil:
		return nil, err
	case s.Program == nil:
		return nil, nil
	case len(s.Program.Tables) == 0:
		return nil, UsageError("--system: %s has no tables for a controller; use one of %s", s.Title,
			strings.Join(TableSystems(set), ", "))
	}
	return []program.Description{*s.Program}, nil
}

// WaitsThere reports whether the workers of an open-loop system must wait for answers on this device, because the
// device does not sum their updates.
func WaitsThere(d *testbed.Device, s *system.System) bool {
	return s.Adds() && s.CanLoop() && d.Builds(s.Program) && d.Can(testbed.ClosesLoop) && !d.Can(testbed.AddsUpdates)
}

// AddSystem adds --system, which sets value to one of names. The older flags --queue and others become aliases of it.
// Several of these flags may be given if they agree.
func AddSystem(cmd *cobra.Command, value *string, usage string, names func() []string, others ...string) {
	all := &sharedSystem{value: value}
	cmd.Flags().Var(&systemFlag{all, "system"}, "system", usage)
	Complete(cmd, "system", names)
	for _, alias := range append([]string{"queue"}, others...) {
		cmd.Flags().Var(&systemFlag{all, alias}, alias, "alias of --system")
		cmd.Flags().Lookup(alias).DefValue = "" // only --system shows the default
		Complete(cmd, alias, names)
	}
}

// sharedSystem is a value that several flags can set.
type sharedSystem struct {
	value   *string
	by      string // the flag that set it; empty for the default
	current string // the value of that flag
}

type systemFlag struct {
	*sharedSystem
	name string
}

func (f *systemFlag) String() string {
	if f.sharedSystem == nil { // pflag calls String on zero values
		return ""
	}
	return *f.value
}

func (f *systemFlag) Type() string { return "string" }

func (f *systemFlag) Set(name string) error {
	if f.by != "" && f.by != f.name && f.current != name {
		return fmt.Errorf("--%s %q sets the same value; use one of the two flags", f.by, f.current)
	}
	f.by, f.current, *f.value = f.name, name, name
	return nil
}
