package cli

import (
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/experiments/testbed"
)

// CardFlags are what measuring on a card needs beside the card: who captures at the parameter server, and the driver of
// the tables.
type CardFlags struct {
	driver cardDriver
	live   live.Options
	stamps live.Stamps
	port   int
	// generator is the address of the device whose generator sends to the card's queue; empty for its own.
	generator string
}

// Add adds the flags to a command.
func (f *CardFlags) Add(cmd *cobra.Command) {
	InGroup(cmd, CardFlagsOf, func() { f.add(cmd) })
	Complete(cmd, "generator", func() []string { return []string{"pci:", "twin:"} })
	Complete(cmd, "capture", InterfaceNames)
}

func (f *CardFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.generator, "generator", "", "device whose generator sends to the queue of --device by a cable, such as pci:0000:5e:00.0")
	flags.StringVar(&f.live.Interface, "capture", "", "the parameter server's network interface on this host, such as enp1s0f0")
	f.stamps = live.Kernel
	Choose(cmd, &f.stamps, "stamps", "with --capture: source of arrival stamps, kernel|hardware; hardware needs synchronised clocks", live.Kernel, live.Hardware)
	flags.IntVar(&f.port, "server-port", 1, "with --capture: the card's port connected to it, 0 or 1")
	f.driver.add(cmd)
}

// Access is how the device at an address is reached, with what a card needs.
func (f *CardFlags) Access(cmd *cobra.Command, env *Env, address string) (testbed.Access, error) {
	a, err := env.Access()
	if err != nil {
		return a, err
	}
	if err := f.check(cmd, env, address); err != nil {
		return a, err
	}
	if a.Card.Tables, err = f.driver.backend(env); err != nil {
		return a, err
	}
	a.Card.ServerPort, a.Generator = f.port, f.generator
	if f.live.Interface != "" {
		a.Card.Capture = func() (testbed.Frames, error) { return f.capture(env) }
	}
	return a, nil
}

// check refuses flags that would do nothing, or not what they seem to.
func (f *CardFlags) check(cmd *cobra.Command, env *Env, address string) error {
	flags := cmd.Flags()
	row, _, err := env.Devices.Of(address)
	if err != nil {
		return err
	}
	for _, name := range []string{"capture", "stamps", "server-port", "vnp4-1", "vnp4-2"} {
		if flag := flags.Lookup(name); flag == nil || !flag.Changed {
			continue
		}
		if row.NotCard != "" {
			return UsageError("--%s is for a card: %s", name, row.NotCard)
		}
		if f.live.Interface == "" && (name == "stamps" || name == "server-port") {
			return UsageError("--%s says how to capture: add --capture INTERFACE", name)
		}
	}
	if f.generator != "" && f.generator == address && !row.Can(testbed.VirtualTime) {
		return UsageError("--generator %s is the device itself; leave it out for its own generator", address)
	}
	if f.port < 0 || f.port > 1 {
		return UsageError("--server-port %d: a card has the ports 0 and 1", f.port)
	}
	return nil
}

// capture opens the interface and says what it gives less than it was asked for.
func (f *CardFlags) capture(env *Env) (testbed.Frames, error) {
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

// openLive captures from an interface of this host.
func openLive(o live.Options) (testbed.Frames, error) {
	s, err := live.Open(o)
	if err != nil {
		return nil, err // not a Frames that holds nothing
	}
	return s, nil
}

// InterfaceNames are those that a frame can arrive at.
func InterfaceNames() []string {
	all, _ := net.Interfaces() // only for the shell's completion
	var names []string
	for _, i := range all {
		if i.Flags&net.FlagUp != 0 {
			names = append(names, i.Name)
		}
	}
	return names
}
