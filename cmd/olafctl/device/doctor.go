package device

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/sshlink"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/fpgatest"
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
			if err := x.runChecks(cmd.Context(), env, &device, full); err != nil {
				return err
			}
			if err := x.printChecks(env, out); err != nil {
				return err
			}
			return x.exitError()
		},
	}
	cmd.Flags().BoolVar(&full, "full", false, "also run the conformance suite, which resets the OLAF blocks")
	cli.AddFormatFlag(cmd, &out)
	device.AddAddress(cmd, env)
	return cmd
}

// doctor collects the results of the checks and of the conformance suite.
type doctor struct {
	checks []fpga.Check
	failed bool // a check failed
	missed bool // a case of the suite failed
}

// runChecks runs the checks for a card, then the checks for every device and, with full, the conformance suite.
func (x *doctor) runChecks(ctx context.Context, env *cli.Env, device *cli.DeviceFlags, full bool) error {
	row, name, err := env.Devices.Lookup(device.Address)
	if err != nil {
		return err
	}
	opened := true
	if row.Reach != nil {
		opened, err = x.examineFar(ctx, env, device.Address)
	} else if row.Examine != nil {
		opened, err = x.examine(env, row, name)
	}
	if err != nil || !opened {
		return err
	}
	err = device.WithRegisters(ctx, env, testbed.DeviceOptions{}, func(dev fpga.Device) error {
		x.checkRegisters(dev)
		if full {
			fpgatest.CheckDevice(dev, func(r fpgatest.Result) { x.addResult(dev, r) })
		} else {
			x.addCheck("conformance", fpga.NotRun, "not asked for", "--full runs it; it resets the OLAF blocks")
		}
		return nil
	})
	if err != nil && len(x.checks) == 0 {
		return err
	}
	if err != nil {
		x.addCheck("close", fpga.Failed, cli.OneLine(err), "")
	}
	return nil
}

// examine checks a card in this host. opened reports whether the card could be opened.
func (x *doctor) examine(env *cli.Env, row *testbed.Device, name string) (opened bool, err error) {
	if _, err := env.Access(); err != nil {
		return false, err
	}
	checks, opened, err := row.Examine(name)
	for _, c := range checks {
		x.addCheck(c.Name, c.Outcome, c.Seen, c.Next)
	}
	if !opened {
		x.failed = true
		x.addCheck("registers", fpga.NotRun, "the card was not opened", "")
	}
	return opened, err
}

// examined is an agent's answer to a request to examine a device on its host.
type examined struct {
	Checks []fpga.Check
	Opened bool // device was opened, or there was nothing to check before opening it
}

// examineCall is the name of the request to examine a device.
const examineCall = "examine"

// examineFar asks the agent on a device's host to examine the device.
func (x *doctor) examineFar(ctx context.Context, env *cli.Env, address string) (opened bool, err error) {
	access, err := env.Access()
	if err != nil {
		return false, err
	}
	at, name, err := sshlink.Parse(address)
	if err != nil {
		return false, err
	}
	host, err := testbed.ConnectHost(ctx, at, &access)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	offset, err := host.Offset(ctx)
	if err != nil {
		return false, err
	}
	x.addCheck("host", fpga.Passed, fmt.Sprintf("%s, an agent of this build; its clock differs by %v ± %v", at.Name(),
		time.Duration(offset.OffsetNS), time.Duration(offset.BoundNS)), "")
	var there examined
	if err := host.Call(ctx, examineCall, name, &there); err != nil {
		return false, err
	}
	x.checks = append(x.checks, there.Checks...)
	x.failed = x.failed || !there.Opened
	return there.Opened, nil
}

// answerExamine examines a device in this host on behalf of another host.
func answerExamine(env *cli.Env, body json.RawMessage) (any, error) {
	var address string
	if err := json.Unmarshal(body, &address); err != nil {
		return nil, err
	}
	row, name, err := env.Devices.Lookup(address)
	if err != nil || row.Examine == nil {
		return examined{Opened: true}, err
	}
	x := new(doctor)
	opened, err := x.examine(env, row, name)
	return examined{x.checks, opened}, err
}

func (x *doctor) addCheck(name string, outcome fpga.Outcome, seen, next string) {
	x.checks = append(x.checks, fpga.Check{Name: name, Outcome: outcome, Seen: seen, Next: next})
	x.failed = x.failed || outcome == fpga.Failed
}

// checkRegisters checks the identity, the counters and the generator.
func (x *doctor) checkRegisters(dev fpga.Device) {
	id := dev.Identity()
	x.addCheck("identity", fpga.Passed, fmt.Sprintf("%s, register map %s, build %s, %g MHz", id.Kind, id.MapVersion,
		id.Build, float64(id.ClockHz)/1e6), "")
	if _, err := fpga.Snapshot(dev); err != nil {
		x.addCheck("counters", fpga.Failed, cli.OneLine(err), "")
		return
	}
	x.addCheck("counters", fpga.Passed, "all banks latch and read", "")
	x.checkGenerator(dev)
}

// checkGenerator notes if the generator is still running. Only this session may write, so the session that started the
// generator must be gone.
func (x *doctor) checkGenerator(dev fpga.Device) {
	state, err := pktgen.NewGenerator(dev).State()
	switch {
	case err != nil:
		x.addCheck("generator", fpga.Failed, cli.OneLine(err), "")
	case state.Busy():
		x.addCheck("generator", fpga.Noted, fmt.Sprintf("%v, but the program that started it is gone", state),
			"'olafctl device reg write "+
				"generator.command.abort=1 -d "+dev.Identity().Address+"' stops it; so does a bench")
	default:
		x.addCheck("generator", fpga.Passed, state.String(), "")
	}
}

// addResult adds the result of a case in the conformance suite. If the device disappears during a case, the result
// counts as a failed check rather than as a mismatch.
func (x *doctor) addResult(dev fpga.Device, r fpgatest.Result) {
	name := "conformance " + r.Name
	if len(r.Fails) == 0 {
		x.checks = append(x.checks, fpga.Check{Name: name, Outcome: fpga.Passed})
		return
	}
	if _, err := dev.Read32(regmap.CommonMagic); errors.Is(err, fpga.ErrGone) {
		x.addCheck(name, fpga.Failed, cli.OneLine(err),
			"the device was lost during this case; bring it back, and run the suite again")
		return
	}
	x.missed = true
	x.checks = append(x.checks, fpga.Check{Name: name, Outcome: fpga.Failed, Seen: strings.Join(r.Fails, "; "),
		Next: "the image does not behave as docs/reference/registers.md describes"})
}

func (x *doctor) printChecks(env *cli.Env, out cli.Format) error {
	if out == cli.JSON {
		return cli.WriteJSON(env.Stdout, struct {
			cli.Head
			Healthy bool         `json:"healthy"`
			Checks  []fpga.Check `json:"checks"`
		}{cli.Check("device"), !x.failed && !x.missed, x.checks})
	}
	list := cli.Grid{Header: []string{"CHECK", "RESULT", "SEEN", "NEXT STEP"}}
	for _, c := range x.checks {
		list.Add(c.Name, string(c.Outcome), c.Seen, c.Next)
	}
	return list.Write(env, out)
}

// exitError returns the error that determines the exit code, or nil for a healthy device.
func (x *doctor) exitError() error {
	switch {
	case x.failed:
		return &cli.Exit{Kind: olaf.Device,
			Err: errors.New("the device cannot be used as it is; see the failed check's next step")}
	case x.missed:
		return &cli.Exit{Kind: olaf.Missed, Err: errors.New("the device does not conform")}
	}
	return nil
}
