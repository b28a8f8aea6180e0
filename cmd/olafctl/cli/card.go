package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/sshlink"
)

// CardFlags are the flags for measurements on a card. They select the capture at the parameter server and the driver
// for the tables.
type CardFlags struct {
	driver cardDriver
	live   live.Options
	stamps live.Stamps
	port   int
	// generator is the address of the device whose generator sends to the card's queue; empty for its own.
	generator string
	// server is the parameter server's interface on another host, in place of one on this host.
	server string
}

func (f *CardFlags) Add(cmd *cobra.Command) {
	InGroup(cmd, CardFlagsOf, func() { f.addFlags(cmd) })
	Complete(cmd, "generator", func() []string { return []string{"pci:", "twin:", "ssh://"} })
	Complete(cmd, "capture", InterfaceNames)
}

// AddDriver adds only the flags of the driver for the tables.
func (f *CardFlags) AddDriver(cmd *cobra.Command) { f.driver.addFlags(cmd) }

func (f *CardFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.generator, "generator", "",
		"device whose generator sends to the queue of --device over a cable, such as pci:0000:5e:00.0")
	flags.StringVar(&f.live.Interface, "capture", "",
		"the parameter server's network interface on this host, such as enp1s0f0")
	flags.StringVar(&f.server, "server", "",
		"the parameter server's interface on another host, such as ssh://lab@ps/enp1s0f0")
	f.stamps = live.Kernel
	Choose(cmd, &f.stamps, "stamps", "with --capture or --server: source of arrival stamps, kernel|hardware; hardware needs "+
		"synchronised clocks", live.Kernel, live.Hardware)
	flags.IntVar(&f.port, "server-port", 1, "with --capture or --server: the card's port connected to it, 0 or 1")
	f.driver.addFlags(cmd)
}

// AccessCard returns how to reach the device at an address. For a card, this includes the capture and the driver for
// the tables.
func (f *CardFlags) AccessCard(cmd *cobra.Command, env *Env, address string) (testbed.Access, error) {
	a, err := env.Access()
	if err != nil {
		return a, err
	}
	if err := f.checkFlags(cmd, env, address); err != nil {
		return a, err
	}
	a.Card.ServerPort, a.Generator = f.port, f.generator
	if f.server != "" {
		at, name, err := f.parseServer(cmd)
		if err != nil {
			return a, err
		}
		far := a
		a.Card.Capture = func() (testbed.Frames, error) { return f.openFar(cmd.Context(), &far, at, name) }
	}
	if row, _, err := env.Devices.Lookup(address); err == nil && (row.Reach != nil || row.Can(testbed.PassesDriver)) {
		a.SSH.Serve = f.listFlags(cmd)
		return a, nil
	}
	if a.Card.Tables, err = f.driver.openBackend(env); err != nil {
		return a, err
	}
	if f.live.Interface != "" {
		a.Card.Capture = func() (testbed.Frames, error) { return f.openCapture(env) }
	}
	return a, nil
}

// parseServer splits the value of --server into a host and an interface.
func (f *CardFlags) parseServer(cmd *cobra.Command) (at sshlink.Address, name string, err error) {
	at, name, err = sshlink.Parse(f.server)
	switch {
	case err != nil:
		return at, "", UsageError("--server: %v", err)
	case name == "" || strings.ContainsAny(name, ":/ "):
		return at, "", UsageError("--server %s: %q is no network interface; write ssh://HOST/INTERFACE", f.server, name)
	case f.live.Interface != "":
		return at, "", UsageError("--server and --capture both name the parameter server's interface; use one of them")
	}
	return at, name, nil
}

// openFar opens a capture on an interface of another host.
func (f *CardFlags) openFar(ctx context.Context, a *testbed.Access, at sshlink.Address, name string) (testbed.Frames, error) {
	host, err := testbed.ConnectHost(ctx, at, a)
	if err != nil {
		return nil, fmt.Errorf("--server: %w", err)
	}
	o := f.live
	o.Interface, o.Stamps, o.Promiscuous = name, f.stamps, true
	frames, err := host.OpenFrames(ctx, o)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--server: %w", err), host.Close())
	}
	return frames, nil
}

// cardFlagNames lists the card flags that are also accepted by the agent on the card's host.
var cardFlagNames = []string{"capture", "stamps", "server-port", "vnp4-1", "vnp4-2"}

// listFlags returns the card flags as arguments for the agent on the card's host.
func (f *CardFlags) listFlags(cmd *cobra.Command) (args []string) {
	for _, name := range cardFlagNames {
		if flag := cmd.Flags().Lookup(name); flag != nil && flag.Changed && (f.server == "" || strings.HasPrefix(name, "vnp4")) {
			args = append(args, "--"+name, flag.Value.String())
		}
	}
	return args
}

// checkFlags rejects flags that do not apply to the device or that have no effect without other flags.
func (f *CardFlags) checkFlags(cmd *cobra.Command, env *Env, address string) error {
	flags := cmd.Flags()
	row, _, err := env.Devices.Lookup(address)
	if err != nil {
		return err
	}
	for _, name := range append([]string{"server"}, cardFlagNames...) {
		if flag := flags.Lookup(name); flag == nil || !flag.Changed {
			continue
		}
		ofServer := name == "server" || f.server != "" && (name == "stamps" || name == "server-port")
		ofDriver := strings.HasPrefix(name, "vnp4") && row.Can(testbed.PassesDriver)
		if row.NotCard != "" && !ofDriver && !(ofServer && row.Can(testbed.Dialled)) {
			return UsageError("--%s is for a card: %s", name, row.NotCard)
		}
		if f.live.Interface == "" && f.server == "" && (name == "stamps" || name == "server-port") {
			return UsageError("--%s needs --capture INTERFACE", name)
		}
	}
	if f.generator != "" && f.generator == address && !hasCopies(env, row, address) {
		return UsageError("--generator %s is the device itself; leave it out for its own generator", address)
	}
	if f.port < 0 || f.port > 1 {
		return UsageError("--server-port %d: a card has the ports 0 and 1", f.port)
	}
	return nil
}

// hasCopies reports whether the device at an address, possibly on another host, can be opened twice.
func hasCopies(env *Env, row *testbed.Device, address string) bool {
	if row.Reach == nil {
		return row.Can(testbed.Copies)
	}
	_, there, err := sshlink.Parse(address)
	if err != nil {
		return false
	}
	row, _, err = env.Devices.Lookup(there)
	return err == nil && row.Can(testbed.Copies)
}

// openCapture opens the interface and prints the requested features that the capture does not support.
func (f *CardFlags) openCapture(env *Env) (testbed.Frames, error) {
	o := f.live
	o.Stamps, o.Promiscuous = f.stamps, true
	frames, err := env.OpenCapture(o)
	if err != nil {
		return nil, fmt.Errorf("--capture %s: %w", o.Interface, err)
	}
	for _, note := range frames.Info().Notes {
		fmt.Fprintf(env.Stderr, "olafctl: %s: %s\n", o.Interface, note)
	}
	return frames, nil
}

// openLive captures from an interface on this host.
func openLive(o live.Options) (testbed.Frames, error) {
	s, err := live.Open(o)
	if err != nil {
		return nil, err // not a non-nil Frames with a nil pointer
	}
	return s, nil
}

// InterfaceNames returns the names of the interfaces that are up.
func InterfaceNames() []string {
	all, _ := net.Interfaces() // used only for shell completion
	var names []string
	for _, i := range all {
		if i.Flags&net.FlagUp != 0 {
			names = append(names, i.Name)
		}
	}
	return names
}

// Build returns the build of this program, by which agents on other hosts recognise it.
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

// sshOptions returns the options with which this process starts agents on other hosts.
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
