// Package device implements 'olafctl device', 'reg' and 'serve', which find, check, read, write and serve cards and
// twins.
package device

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

func New(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "device",
		Short: "Find, check and control cards: registers, counters, agents",
		Long: `Find, check and control cards. docs/guide/card.md describes a card's first use; docs/reference/safety.md lists what these
commands never do to a card.`,
	}
	cmd.AddCommand(newDeviceListCmd(env), newDeviceInfoCmd(env), newDeviceDoctorCmd(env), newDeviceResetCmd(env),
		newDeviceWatchCmd(env), newDeviceConformanceCmd(env), newGuardCmd(env),
		NewReg(env), NewServe(env))
	return cmd
}

// builtLimits lists the registers that contain a device's build-time limits.
var builtLimits = []string{
	"queue.built_slots", "queue.built_clusters", "queue.built_lanes",
	"generator.built_flows", "generator.built_descriptors", "generator.built_templates",
	"replication.built_groups", "replication.built_members",
	"common.max_packet_bytes",
}

func newDeviceInfoCmd(env *cli.Env) *cobra.Command {
	var (
		out    cli.Format
		device cli.DeviceFlags
	)
	cmd := &cobra.Command{
		Use:     "info",
		Short:   "Print identity, built limits and capabilities",
		Example: "  olafctl device info\n  olafctl device info -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return device.WithRegisters(cmd.Context(), env, testbed.DeviceOptions{ReadOnly: true},
				func(dev fpga.Device) error {
					return printDevice(env, dev, out)
				})
		},
	}
	cli.AddFormatFlag(cmd, &out)
	device.AddAddress(cmd, env)
	return cmd
}

// capabilitiesOf returns a device's capability bits by name and adds them to list.
func capabilitiesOf(dev fpga.Device, list *cli.Grid) (map[string]bool, error) {
	ref, err := regmap.FindRegister("common.capabilities")
	if err != nil {
		return nil, err
	}
	word, err := dev.Read32(ref.Address())
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ref.Name(), err)
	}
	all := map[string]bool{}
	for _, f := range ref.Register.Decode(word) {
		all[f.Field.Name] = f.Value != 0
		list.Add("capability "+f.Field.Name, map[bool]string{true: "yes", false: "no"}[f.Value != 0])
	}
	return all, nil
}

func printDevice(env *cli.Env, dev fpga.Device, out cli.Format) error {
	id := dev.Identity()
	list := cli.Grid{Header: []string{"PROPERTY", "VALUE"}}
	list.Add("address", id.Address)
	list.Add("kind", id.Kind)
	list.Add("register map", id.MapVersion)
	list.Add("build", id.Build)
	list.Add("clock", fmt.Sprintf("%g MHz", float64(id.ClockHz)/1e6))
	limits := map[string]uint32{}
	for _, name := range builtLimits {
		ref, err := regmap.FindRegister(name)
		if err != nil {
			return err
		}
		v, err := dev.Read32(ref.Address())
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		limits[name] = v
		list.Add(name, fmt.Sprint(v))
	}
	capabilities, err := capabilitiesOf(dev, &list)
	if err != nil {
		return err
	}
	if out == cli.JSON {
		return cli.WriteJSON(env.Stdout, struct {
			cli.Head
			fpga.Identity
			Limits       map[string]uint32 `json:"limits"`
			Capabilities map[string]bool   `json:"capabilities"`
		}{cli.Info("device"), id, limits, capabilities})
	}
	return list.Write(env, out)
}
