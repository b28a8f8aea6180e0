package cli

import (
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/program"
)

// ErrLinux is the error of commands for real packets on systems other than Linux.
var ErrLinux = olaf.NewError(olaf.Device, "namespaces and XDP need Linux: run this there")

// TableSystems returns the names of the systems whose switch programs have tables.
func TableSystems(set system.Set) []string {
	var names []string
	for _, s := range set {
		if s.Program != nil && len(s.Program.Tables) > 0 {
			names = append(names, s.Name)
		}
	}
	return names
}

// TablePrograms returns the program whose tables are in a system's pipeline, or none for a system whose ports only
// queue.
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

// WaitsThere reports whether the workers of an open system must wait for answers on this device, because nothing there
// sums their updates.
func WaitsThere(d *testbed.Device, s *system.System) bool {
	return s.Adds() && s.CanLoop() && d.Builds(s.Program) && d.Can(testbed.ClosesLoop) && !d.Can(testbed.AddsUpdates)
}
