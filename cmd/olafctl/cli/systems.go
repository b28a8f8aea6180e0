package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/program"
)

// ErrLinux is the error of commands for real packets on other systems.
var ErrLinux = olaf.NewError(olaf.Device, "namespaces and XDP need Linux: run this there")

// ToldSystems are those whose switches are told about jobs by tables.
func ToldSystems(set system.Set) []string {
	var names []string
	for _, s := range set {
		if s.Program != nil && len(s.Program.Tables) > 0 {
			names = append(names, s.Name)
		}
	}
	return names
}

// ToldOf is the program whose tables a system's pipeline has; none of a system whose ports only queue.
func ToldOf(set system.Set, name string) ([]program.Description, error) {
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
		return nil, UsageError("--system: %s has no tables that a controller writes; those of %s have", s.Title, strings.Join(ToldSystems(set), ", "))
	}
	return []program.Description{*s.Program}, nil
}

// WaitsThere says that workers of a system wait on a device although elsewhere they need not: nothing there adds up what they would send.
func WaitsThere(d *testbed.Device, s *system.System) bool {
	return s.Adds() && s.Looped() && d.Builds(s.Program) && d.Can(testbed.ClosesLoop) && !d.Can(testbed.AddsUpdates)
}

// Ended makes an interruption one.
func Ended(err error) error {
	if errors.Is(err, context.Canceled) {
		return Interrupted(err)
	}
	return err
}
