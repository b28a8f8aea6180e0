package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

// deviceFlags choose a device and what it has just done.
type deviceFlags struct {
	address string
	after   string
}

func (f *deviceFlags) add(cmd *cobra.Command) {
	addDeviceFlag(cmd, &f.address)
	cmd.Flags().StringVar(&f.after, "after", "", "first let the device do one run of this experiment, such as table1")
	complete(cmd, "after", benchNames)
}

func addDeviceFlag(cmd *cobra.Command, address *string) {
	cmd.Flags().StringVarP(address, "device", "d", "twin:", "device address: "+experiments.Addresses)
	complete(cmd, "device", func() []string { return []string{"twin:"} })
}

// benchNames are the experiments that run on a single-queue testbed.
func benchNames() []string {
	var names []string
	for _, p := range experiments.Presets() {
		names = append(names, p.Experiment)
	}
	return names
}

// with opens the device, lets it do what --after asks for, and hands it to look.
func (f *deviceFlags) with(ctx context.Context, env *environment, look func(*experiments.Testbed) error) error {
	bed, err := experiments.Open(ctx, f.address, experiments.OpenOptions{})
	if err != nil {
		return err
	}
	defer bed.Close()
	if f.after != "" {
		spec, err := experiments.Preset(f.after)
		if err != nil {
			return usageError("%v", err)
		}
		spec.Runs, spec.Versus, spec.OutRates = 1, "", spec.OutRates[:1]
		plan, err := experiments.NewPlan(spec)
		if err != nil {
			return err
		}
		if _, err := experiments.Run(ctx, plan, bed, experiments.NewStream()); err != nil {
			return err
		}
	}
	return look(bed)
}

func newDeviceCmd(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "device",
		Short: "Say what a device is and what it was built with",
	}
	cmd.AddCommand(newDeviceInfoCmd(env))
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
			return device.with(cmd.Context(), env, func(bed *experiments.Testbed) error {
				return printDevice(env, bed.Lanes[0].Device, out)
			})
		},
	}
	addFormatFlag(cmd, &out)
	addDeviceFlag(cmd, &device.address)
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
