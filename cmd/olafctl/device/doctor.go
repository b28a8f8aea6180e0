package device

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/fpgatest"
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/pktgen"
)

func newDeviceDoctorCmd(env *cli.Env) *cobra.Command {
	var (
		out    cli.Format
		device cli.DeviceFlags
		full   bool
	)
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check a device step by step and print a remedy for each fault",
		Long: `Check a device step by step and print what was found and what to do next. Checks that depend on a failed one are skipped.
--full also runs the conformance suite, which resets the OLAF blocks before every case. Exit code 3: a check failed; 4: only
the suite found a difference.`,
		Example: `  olafctl device doctor -d pci:0000:3b:00.0
  olafctl device doctor --full
  olafctl device doctor --full -d pci:0000:3b:00.0 --record card.session`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			x := &doctor{}
			if err := x.examine(cmd.Context(), env, &device, full); err != nil {
				return err
			}
			if err := x.print(env, out); err != nil {
				return err
			}
			return x.verdict()
		},
	}
	cmd.Flags().BoolVar(&full, "full", false, "also run the conformance suite, which resets the OLAF blocks")
	cli.AddFormatFlag(cmd, &out)
	device.AddAddress(cmd, env)
	return cmd
}

// doctor collects checks and the suite's results.
type doctor struct {
	checks []pcie.Check
	failed bool // a check
	missed bool // a case of the suite
}

// examine goes through what a card must show, and then what every device must.
func (x *doctor) examine(ctx context.Context, env *cli.Env, device *cli.DeviceFlags, full bool) error {
	row, name, err := env.Devices.Of(device.Address)
	if err != nil {
		return err
	}
	if row.Examine != nil {
		access, err := env.Access()
		if err != nil {
			return err
		}
		d, checks, err := row.Examine(name, access)
		x.checks = checks
		x.failed = err != nil
		if err != nil {
			x.add("registers", pcie.NotRun, "the card was not opened", "")
			return nil
		}
		x.ports(d)
		if err := d.Close(); err != nil {
			return err
		}
	}
	err = device.Registers(ctx, env, testbed.DeviceOptions{}, func(dev fpga.Device) error {
		x.registers(dev)
		if full {
			fpgatest.CheckDevice(dev, func(r fpgatest.Result) { x.result(dev, r) })
		} else {
			x.add("conformance", pcie.NotRun, "not asked for", "--full runs it; it resets the OLAF blocks")
		}
		return nil
	})
	if err != nil && len(x.checks) == 0 {
		return err
	}
	if err != nil {
		x.add("close", pcie.Failed, cli.OneLine(err), "")
	}
	return nil
}

func (x *doctor) add(name string, outcome pcie.Outcome, seen, next string) {
	x.checks = append(x.checks, pcie.Check{Name: name, Outcome: outcome, Seen: seen, Next: next})
	x.failed = x.failed || outcome == pcie.Failed
}

// ports looks at the MACs. A link that is down is no fault of the card's registers.
func (x *doctor) ports(d *pcie.Device) {
	for i := range d.Ports() {
		name := fmt.Sprintf("port %d", i)
		link, err := d.Link(i)
		switch {
		case err != nil:
			x.add(name, pcie.Failed, cli.OneLine(err), "")
		case link.Up:
			x.add(name, pcie.Passed, fmt.Sprintf("up, RS-FEC %t", link.FEC), "")
		default:
			x.add(name, pcie.Noted, link.Why, fmt.Sprintf("RS-FEC is %t here and must be the same at the far end; check cable and optic", link.FEC))
		}
	}
}

// registers looks at what every device of our map has.
func (x *doctor) registers(dev fpga.Device) {
	id := dev.Identity()
	x.add("identity", pcie.Passed, fmt.Sprintf("%s, register map %s, build %s, %g MHz", id.Kind, id.MapVersion, id.Build, float64(id.ClockHz)/1e6), "")
	if _, err := fpga.Snapshot(dev); err != nil {
		x.add("counters", pcie.Failed, cli.OneLine(err), "")
		return
	}
	x.add("counters", pcie.Passed, "all banks latch and read", "")
	x.generator(dev)
}

// generator looks for one that somebody left running. Nobody is at it now, as this session writes the device alone.
func (x *doctor) generator(dev fpga.Device) {
	state, err := pktgen.NewGenerator(dev).State()
	switch {
	case err != nil:
		x.add("generator", pcie.Failed, cli.OneLine(err), "")
	case state.Busy():
		x.add("generator", pcie.Noted, fmt.Sprintf("%v, and whoever started it is gone", state),
			"'olafctl device reg write generator.command.abort=1 -d "+dev.Identity().Address+"' stops it; a bench does so by itself")
	default:
		x.add("generator", pcie.Passed, state.String(), "")
	}
}

// result adds a case of the suite. A device that was lost during the case does not contradict the register map.
func (x *doctor) result(dev fpga.Device, r fpgatest.Result) {
	name := "conformance " + r.Name
	if len(r.Fails) == 0 {
		x.checks = append(x.checks, pcie.Check{Name: name, Outcome: pcie.Passed})
		return
	}
	if _, err := dev.Read32(regmap.CommonMagic); errors.Is(err, fpga.ErrGone) {
		x.add(name, pcie.Failed, cli.OneLine(err), "the device was lost during this case; bring it back, and run the suite again")
		return
	}
	x.missed = true
	x.checks = append(x.checks, pcie.Check{Name: name, Outcome: pcie.Failed, Seen: strings.Join(r.Fails, "; "),
		Next: "the image does not do what docs/reference/registers.md says"})
}

func (x *doctor) print(env *cli.Env, out cli.Format) error {
	if out == cli.JSON {
		return cli.WriteJSON(env.Stdout, struct {
			cli.Head
			Healthy bool         `json:"healthy"`
			Checks  []pcie.Check `json:"checks"`
		}{cli.Check("device"), !x.failed && !x.missed, x.checks})
	}
	list := cli.Grid{Header: []string{"CHECK", "RESULT", "SEEN", "NEXT STEP"}}
	for _, c := range x.checks {
		list.Add(c.Name, string(c.Outcome), c.Seen, c.Next)
	}
	return list.Write(env, out)
}

// verdict is the exit code.
func (x *doctor) verdict() error {
	switch {
	case x.failed:
		return &cli.Exit{Kind: olaf.Device, Err: errors.New("the device cannot be used as it is; the failed check says what to do")}
	case x.missed:
		return &cli.Exit{Kind: olaf.Missed, Err: errors.New("the device does not conform")}
	}
	return nil
}
