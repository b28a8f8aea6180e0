package cli

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf/experiments/testbed/sshlink"
)

// Build identifies this program for agents on other hosts.
func (e *Env) Build() (sshlink.Build, error) {
	path, err := e.Executable()
	if err != nil {
		return sshlink.Build{}, err
	}
	b := ThisBuild()
	version := b.Version + " " + OrDash(b.Revision)
	if b.Dirty {
		version += " changed"
	}
	return sshlink.ReadBuild(path, version)
}

// sshOptions returns how this process starts agents on other hosts.
func (e *Env) sshOptions() sshlink.Options {
	o := sshlink.Options{Program: e.Getenv("OLAFCTL_SSH"), Identify: e.Build, Executable: e.Executable,
		Note: func(text string) { fmt.Fprintf(e.Stderr, "olafctl: %s\n", text) }}
	if e.Push {
		o.MayCopy = func(context.Context, string) error { return nil }
	} else if e.Asks {
		o.MayCopy = func(ctx context.Context, question string) error { return new(ConfirmFlag).Confirm(ctx, e, question) }
	}
	return o
}
