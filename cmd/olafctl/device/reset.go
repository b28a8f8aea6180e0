package device

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/regmap"
)

// resetter is a device that can reset its parts individually.
type resetter interface {
	Reset(pcie.Target) error
}

func newDeviceResetCmd(env *cli.Env) *cobra.Command {
	var (
		device cli.DeviceFlags
		part   string
		force  bool
		dryRun bool
	)
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Reset one block of a device",
		Long: `Reset one part of a device. Its registers, queue and generator start over; the tables stay.

  olaf      our blocks, by their own command
  box       the whole 250 MHz user box, as after programming
  cmac0 …   one MAC; its link goes down and comes back
  adapter0… one packet adapter; its counters start at 0
  qdma      the host's DMA; needs --force, and no driver may be bound

The shell's system reset is not offered: it would also reset the host's DMA.`,
		Example: `  olafctl device reset -d pci:0000:3b:00.0
  olafctl device reset --part cmac0 -d pci:0000:3b:00.0 --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := testbed.DeviceOptions{Force: force}
			if dryRun {
				o.DryRun = env.Stdout
			}
			return device.WithRegisters(cmd.Context(), env, o, func(dev fpga.Device) error {
				if err := resetPart(dev, pcie.Target(part)); err != nil {
					return err
				}
				if !dryRun {
					fmt.Fprintf(env.Stderr, "reset %s of %s; it must be configured again\n", part,
						dev.Identity().Address)
				}
				return nil
			})
		},
	}
	part = string(pcie.ResetOlaf)
	cli.Choose(cmd, &part, "part", "block to reset", pcie.TargetNames()...)
	cmd.Flags().BoolVar(&force, "force", false, "allow a reset that stops the host's DMA")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the accesses without writing")
	device.AddAddress(cmd, env)
	return cmd
}

func resetPart(dev fpga.Device, part pcie.Target) error {
	if r, ok := dev.(resetter); ok {
		return r.Reset(part)
	}
	if !part.Own() {
		return fmt.Errorf("%w: %s has no part %q; it has %q", fpga.ErrRefused, dev.Identity().Address, part,
			pcie.ResetOlaf)
	}
	return dev.Write32(regmap.CommonCommand, regmap.CommonCommandReset)
}
