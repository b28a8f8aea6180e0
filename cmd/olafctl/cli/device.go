package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/playback"
)

// DeviceFlags are the flags that select a device and an experiment to run on it first.
type DeviceFlags struct {
	Address string
	after   string
	system  string // system for that run; empty for the experiment's own
	h       int    // H for that run; 0 for a cluster's number of workers
	record  string
}

// Add adds the flags for commands that inspect a device after a run.
func (f *DeviceFlags) Add(cmd *cobra.Command, env *Env) {
	f.AddAddress(cmd, env)
	cmd.Flags().StringVar(&f.after, "after", "", "first run this experiment once on the device, such as table1")
	Complete(cmd, "after", env.Published.WithBench().Names)
	cmd.Flags().StringVar(&f.system, "system", "", "with --after: run this system instead")
	Complete(cmd, "system", func() []string { return env.Systems.ForBench().Names() })
	AddCount(cmd.Flags(), &f.h, "h", "with --after: updates per sum, for systems whose switches add; "+
		"default a cluster's workers")
}

// AddAddress adds the address flag for commands that need only registers.
func (f *DeviceFlags) AddAddress(cmd *cobra.Command, env *Env) {
	AddAddress(cmd, &f.Address, env.Devices, "device address")
	cmd.Flags().StringVar(&f.record, "record", "", "record every access to this file, for -d playback:FILE")
}

// AddDeviceFlag adds the flag --device for commands that need a device with tables.
func AddDeviceFlag(cmd *cobra.Command, env *Env, address *string) {
	AddAddress(cmd, address, env.Devices.With(testbed.HasTables), "device address")
}

// AddAddress adds the flag for the address of a device. The device must be one of the given devices.
func AddAddress(cmd *cobra.Command, address *string, devices testbed.Devices, what string) {
	InGroup(cmd, RunFlags, func() {
		cmd.Flags().StringVarP(address, "device", "d", devices.Default(), what+": "+devices.Forms())
	})
	Complete(cmd, "device", devices.Prefixes)
}

// checkFlags rejects combinations of flags that contradict each other.
func (f *DeviceFlags) checkFlags() error {
	switch {
	case f.system != "" && f.after == "":
		return UsageError("--system needs --after")
	case f.h != 0 && f.after == "":
		return UsageError("--h needs --after")
	case f.after != "" && f.record != "":
		return UsageError("--record and --after do not go together: an experiment's files are in the store; see " +
			"'olafctl runs'")
	}
	return nil
}

// WithTestbed opens the device, runs the experiment given by --after on it, and calls look.
func (f *DeviceFlags) WithTestbed(ctx context.Context, env *Env, look func(*testbed.Testbed) error) error {
	access, err := env.Access()
	if err != nil {
		return err
	}
	if err := f.checkFlags(); err != nil {
		return err
	}
	bed, err := testbed.OpenTestbed(ctx, f.Address, testbed.OpenOptions{Access: access})
	if err != nil {
		return err
	}
	defer bed.Close()
	if f.after != "" {
		spec, err := env.Published.Spec(f.after)
		if err != nil {
			return UsageError("%v", err)
		}
		if f.system != "" {
			if spec.Queue = f.system; spec.IsLoop() {
				spec.MakeLoop(func(string) bool { return false }, !bed.Can(testbed.VirtualTime))
			}
		}
		if f.h != 0 {
			spec.H = &f.h
		}
		spec.Runs, spec.Versus, spec.OutRates = 1, "", spec.OutRates[:1]
		plan, err := bench.NewPlan(spec)
		if err != nil {
			return err
		}
		if _, err := bench.RunPlan(ctx, plan, bed, bench.NewStream()); err != nil {
			return err
		}
	}
	return look(bed)
}

// HasVirtualTime reports whether the device runs in virtual time. Virtual time stops between calls, so nothing is lost
// between them.
func (f *DeviceFlags) HasVirtualTime(env *Env) bool {
	return env.Devices.Check(f.Address, testbed.VirtualTime) == nil
}

// WithRegisters opens only the device's registers and calls use. If --after is given, it opens the whole testbed and
// runs the experiment first.
func (f *DeviceFlags) WithRegisters(ctx context.Context, env *Env, o testbed.DeviceOptions,
	use func(fpga.Device) error) (err error) {
	if err := f.checkFlags(); err != nil {
		return err
	}
	if f.after != "" {
		return f.WithTestbed(ctx, env, func(bed *testbed.Testbed) error { return use(bed.Cards[0].Device) })
	}
	if o.Access, err = env.Access(); err != nil {
		return err
	}
	dev, err := testbed.OpenDevice(ctx, f.Address, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	if f.record == "" {
		return use(dev)
	}
	return recordSession(dev, f.record, use)
}

// recordSession calls use with a device that writes every access to a file. If use fails, the file is kept because it
// shows why.
func recordSession(dev fpga.Device, path string, use func(fpga.Device) error) (err error) {
	if err := RefuseExisting(path, false); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("record the session: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	recorder, err := playback.NewRecorder(dev, file)
	if err != nil {
		return err
	}
	return errors.Join(use(recorder), recorder.Close()) // also closes the device
}
