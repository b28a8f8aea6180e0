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

// DeviceFlags choose a device and what it has just done.
type DeviceFlags struct {
	Address string
	after   string
	system  string // of that run; empty for its own
	h       int    // of that run; 0 for as many as a cluster has workers
	record  string
}

// Add adds what commands take that look at a device after a run.
func (f *DeviceFlags) Add(cmd *cobra.Command, env *Env) {
	f.AddAddress(cmd, env)
	cmd.Flags().StringVar(&f.after, "after", "", "first run this experiment once on the device, such as table1")
	Complete(cmd, "after", env.Published.Benches().Names)
	cmd.Flags().StringVar(&f.system, "system", "", "with --after: run this system instead")
	Complete(cmd, "system", func() []string { return env.Systems.Benched().Names() })
	AddCount(cmd.Flags(), &f.h, "h", "with --after: updates that complete a sum, of systems whose switches add up; a cluster's workers if not given")
}

// AddAddress adds what commands take that look at registers alone.
func (f *DeviceFlags) AddAddress(cmd *cobra.Command, env *Env) {
	AddAddress(cmd, &f.Address, env.Devices, "device address")
	cmd.Flags().StringVar(&f.record, "record", "", "record every access to this file, for -d playback:FILE")
}

// AddDeviceFlag adds what commands take that need a testbed.
func AddDeviceFlag(cmd *cobra.Command, env *Env, address *string) {
	AddAddress(cmd, address, env.Devices.With(testbed.HasTables), "device address")
}

// AddAddress adds the flag for the address of one of some devices.
func AddAddress(cmd *cobra.Command, address *string, devices testbed.Devices, what string) {
	InGroup(cmd, RunFlags, func() {
		cmd.Flags().StringVarP(address, "device", "d", devices.Default(), what+": "+devices.Forms())
	})
	Complete(cmd, "device", devices.Prefixes)
}

// check refuses flags that do not go together.
func (f *DeviceFlags) check() error {
	switch {
	case f.system != "" && f.after == "":
		return UsageError("--system is of the run that --after asks for")
	case f.h != 0 && f.after == "":
		return UsageError("--h is of the run that --after asks for")
	case f.after != "" && f.record != "":
		return UsageError("--record and --after do not go together: an experiment has its own files; see 'olafctl runs'")
	}
	return nil
}

// With opens the device, lets it do what --after asks for, and hands it to look.
func (f *DeviceFlags) With(ctx context.Context, env *Env, look func(*testbed.Testbed) error) error {
	access, err := env.Access()
	if err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	bed, err := testbed.Open(ctx, f.Address, testbed.OpenOptions{Access: access})
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
			if spec.Queue = f.system; spec.Loops() {
				spec.Close(func(string) bool { return false }, !bed.Can(testbed.VirtualTime))
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
		if _, err := bench.Run(ctx, plan, bed, bench.NewStream()); err != nil {
			return err
		}
	}
	return look(bed)
}

// Holds says whether the device's time passes only when it is asked to, so that nothing is lost while it stands.
func (f *DeviceFlags) Holds(env *Env) bool {
	return env.Devices.Check(f.Address, testbed.VirtualTime) == nil
}

// Registers opens the device for its registers alone, lets it do what --after asks for, and hands it to use.
func (f *DeviceFlags) Registers(ctx context.Context, env *Env, o testbed.DeviceOptions, use func(fpga.Device) error) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	if f.after != "" {
		return f.With(ctx, env, func(bed *testbed.Testbed) error { return use(bed.Cards[0].Device) })
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
	return record(dev, f.record, use)
}

// record hands a device to use whose every access goes into a file, which stays when use fails: then it is needed most.
func record(dev fpga.Device, path string, use func(fpga.Device) error) (err error) {
	if err := RefuseExisting(path, false); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("record the session: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	recorder, err := playback.Record(dev, file)
	if err != nil {
		return err
	}
	return errors.Join(use(recorder), recorder.Close()) // which closes the device too
}
