package main

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
	"github.com/olafctl/olaf/fpga/regmap"
)

// deviceFlags choose a device and what it has just done.
type deviceFlags struct {
	address string
	after   string
	record  string
}

func (f *deviceFlags) add(cmd *cobra.Command, env *environment) {
	f.addAddress(cmd, env)
	cmd.Flags().StringVar(&f.after, "after", "", "first let the device do one run of this experiment, such as table1")
	complete(cmd, "after", published().Benches().Names)
}

// addAddress adds what commands take that look at registers alone.
func (f *deviceFlags) addAddress(cmd *cobra.Command, env *environment) {
	addAddress(cmd, &f.address, env.devices, "device address")
	cmd.Flags().StringVar(&f.record, "record", "", "write every access to this file, which -d playback:FILE plays back")
}

// addDeviceFlag adds what commands take that need a testbed.
func addDeviceFlag(cmd *cobra.Command, env *environment, address *string) {
	addAddress(cmd, address, env.devices.With(testbed.HasTables), "device address")
}

// addAddress adds the flag for the address of one of some devices.
func addAddress(cmd *cobra.Command, address *string, devices testbed.Devices, what string) {
	cmd.Flags().StringVarP(address, "device", "d", devices.Default(), what+": "+devices.Forms())
	complete(cmd, "device", devices.Prefixes)
}

// with opens the device, lets it do what --after asks for, and hands it to look.
func (f *deviceFlags) with(ctx context.Context, env *environment, look func(*testbed.Testbed) error) error {
	access, err := env.access()
	if err != nil {
		return err
	}
	bed, err := testbed.Open(ctx, f.address, testbed.OpenOptions{Access: access})
	if err != nil {
		return err
	}
	defer bed.Close()
	if f.after != "" {
		spec, err := published().Spec(f.after)
		if err != nil {
			return usageError("%v", err)
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

// registers opens the device for its registers alone, lets it do what --after asks for, and hands it to use.
func (f *deviceFlags) registers(ctx context.Context, env *environment, o testbed.DeviceOptions, use func(fpga.Device) error) (err error) {
	if f.after != "" && f.record != "" {
		return usageError("--record and --after do not go together: an experiment has its own files; see 'olafctl runs'")
	}
	if f.after != "" {
		return f.with(ctx, env, func(bed *testbed.Testbed) error { return use(bed.Cards[0].Device) })
	}
	if o.Access, err = env.access(); err != nil {
		return err
	}
	dev, err := testbed.OpenDevice(ctx, f.address, o)
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
	if err := refuseExisting(path, false); err != nil {
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

func newDeviceCmd(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "device",
		Short: "Find cards, check them, and say what they were built with",
		Long: `Find cards, check them, and say what they were built with. docs/bring-up.md leads through a first use of a card;
docs/safety.md says what these commands never do to one.`,
	}
	cmd.AddCommand(newDeviceListCmd(env), newDeviceInfoCmd(env), newDeviceDoctorCmd(env), newDeviceResetCmd(env), newDeviceWatchCmd(env))
	return cmd
}

// builtLimits are the registers that say what a build holds.
var builtLimits = []string{
	"queue.built_slots", "queue.built_clusters", "queue.built_lanes",
	"generator.built_flows", "generator.built_descriptors", "generator.built_templates",
	"replication.built_groups", "replication.built_members",
	"common.max_packet_bytes",
}

func newDeviceInfoCmd(env *environment) *cobra.Command {
	var (
		out    format
		device deviceFlags
	)
	cmd := &cobra.Command{
		Use:     "info",
		Short:   "Print identity, built limits and capabilities",
		Example: "  olafctl device info\n  olafctl device info -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return device.registers(cmd.Context(), env, testbed.DeviceOptions{ReadOnly: true}, func(dev fpga.Device) error {
				return printDevice(env, dev, out)
			})
		},
	}
	addFormatFlag(cmd, &out)
	device.addAddress(cmd, env)
	return cmd
}

func printDevice(env *environment, dev fpga.Device, out format) error {
	id := dev.Identity()
	list := grid{header: []string{"PROPERTY", "VALUE"}}
	list.add("address", id.Address)
	list.add("kind", id.Kind)
	list.add("register map", id.MapVersion)
	list.add("build", id.Build)
	list.add("clock", fmt.Sprintf("%g MHz", float64(id.ClockHz)/1e6))
	limits := map[string]uint32{}
	for _, name := range builtLimits {
		ref, err := regmap.Lookup(name)
		if err != nil {
			return err
		}
		v, err := dev.Read32(ref.Address())
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		limits[name] = v
		list.add(name, fmt.Sprint(v))
	}
	capabilities := map[string]bool{}
	ref, err := regmap.Lookup("common.capabilities")
	if err != nil {
		return err
	}
	word, err := dev.Read32(ref.Address())
	if err != nil {
		return fmt.Errorf("read %s: %w", ref.Name(), err)
	}
	for _, f := range ref.Register.Decode(word) {
		capabilities[f.Field.Name] = f.Value != 0
		list.add("capability "+f.Field.Name, map[bool]string{true: "yes", false: "no"}[f.Value != 0])
	}
	if out == formatJSON {
		return writeJSON(env.stdout, struct {
			schema
			fpga.Identity
			Limits       map[string]uint32 `json:"limits"`
			Capabilities map[string]bool   `json:"capabilities"`
		}{schema{"olafctl.device/v1"}, id, limits, capabilities})
	}
	return list.write(env.stdout, out)
}
