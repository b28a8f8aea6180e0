package device

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

const registerValuesSchema = "olafctl.register-values/v1"

// registerDocument is the JSON document olafctl.register-values/v1.
type registerDocument struct {
	cli.Head
	Device    *fpga.Identity  `json:"device,omitempty"`
	Registers []registerValue `json:"registers"`
}

func writeRegisterValues(w io.Writer, values []registerValue) error {
	return cli.WriteJSON(w, registerDocument{cli.Head{Schema: registerValuesSchema}, nil, values})
}

func newRegSnapshotCmd(env *cli.Env) *cobra.Command {
	var (
		device cli.DeviceFlags
		path   string
		force  bool
	)
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Save all registers to a file, for 'reg diff'",
		Long: "Read every register that can be read without changing anything, after latching the counters, " +
			"and save the values as JSON.",
		Example: `  olafctl device reg snapshot -w before.json -d pci:0000:3b:00.0
  olafctl device reg diff before.json -d pci:0000:3b:00.0`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.RefuseExisting(path, force); err != nil {
				return err
			}
			return device.WithRegisters(cmd.Context(), env, testbed.DeviceOptions{}, func(dev fpga.Device) error {
				document, err := takeSnapshot(dev)
				if err != nil {
					return err
				}
				if path == "" {
					return cli.WriteJSON(env.Stdout, document)
				}
				text, err := json.MarshalIndent(document, "", "  ")
				if err != nil {
					return err
				}
				return cli.WriteWhole(env, path, append(text, '\n'))
			})
		},
	}
	cli.AddWrite(cmd.Flags(), &path, "write to this file")
	cli.AddForce(cmd.Flags(), &force, "the file")
	device.Add(cmd, env)
	return cmd
}

// takeSnapshot latches the counters and reads all registers that can be read without side effects.
func takeSnapshot(dev fpga.Device) (registerDocument, error) {
	id := dev.Identity()
	document := registerDocument{cli.Head{Schema: registerValuesSchema}, &id, nil}
	if _, err := fpga.Snapshot(dev); err != nil {
		return document, err
	}
	refs, err := builtRegisters(dev, "")
	if err != nil {
		return document, err
	}
	for _, ref := range refs {
		if !isQuiet(ref) {
			continue
		}
		v, _, err := readRegister(dev, ref)
		if err != nil {
			return document, fmt.Errorf("read %s: %w", ref.Name(), err)
		}
		document.Registers = append(document.Registers, v)
	}
	return document, nil
}

func newRegDiffCmd(env *cli.Env) *cobra.Command {
	var (
		out    cli.Format
		device cli.DeviceFlags
		code   bool
	)
	cmd := &cobra.Command{
		Use:   "diff BEFORE.json [AFTER.json]",
		Short: "Compare a register file with another one or with the device",
		Example: `  olafctl device reg diff before.json after.json
  olafctl device reg diff before.json --after table1 -o csv`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			changes, err := changesOf(cmd.Context(), env, &device, args)
			if err != nil {
				return err
			}
			if err := printChanges(env, changes, out); err != nil {
				return err
			}
			if code && len(changes) > 0 {
				return &cli.Exit{Kind: olaf.Missed}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&code, "exit-code", false, "exit with code 4 if anything differs")
	cli.AddFormatFlag(cmd, &out)
	device.Add(cmd, env)
	return cmd
}

// changesOf compares the snapshot in the first file with that in the second file or, if there is no second file, with
// the device.
func changesOf(ctx context.Context, env *cli.Env, device *cli.DeviceFlags, files []string) (changes []registerChange,
	err error) {
	before, err := loadSnapshot(files[0])
	if err != nil {
		return nil, err
	}
	if len(files) == 2 {
		after, err := loadSnapshot(files[1])
		if err != nil {
			return nil, err
		}
		return compareSnapshots(before, after), nil
	}
	err = device.WithRegisters(ctx, env, testbed.DeviceOptions{}, func(dev fpga.Device) error {
		after, err := takeSnapshot(dev)
		changes = compareSnapshots(before, &after)
		return err
	})
	return changes, err
}

func loadSnapshot(path string) (*registerDocument, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, cli.UsageError("%v", err)
	}
	return parseSnapshot(path, text)
}

// parseSnapshot parses a file written by 'reg snapshot'. path is used in error messages.
func parseSnapshot(path string, text []byte) (*registerDocument, error) {
	document := new(registerDocument)
	if err := json.Unmarshal(text, document); err != nil || document.Schema != registerValuesSchema {
		return nil, cli.UsageError("%s is no %s document; 'olafctl device reg snapshot -w FILE' makes one", path,
			registerValuesSchema)
	}
	return document, nil
}

// registerChange is a register whose value changed, with both values.
type registerChange struct {
	Name   string `json:"name"`
	Before string `json:"before"` // empty if the register is missing on this side
	After  string `json:"after"`
}

// compareSnapshots lists the registers that changed, in the order of after, followed by the registers that only before
// contains. It omits clock registers, which always differ.
func compareSnapshots(before, after *registerDocument) []registerChange {
	old := map[string]string{}
	for _, v := range before.Registers {
		old[v.Name] = v.Value
	}
	changes := []registerChange{}
	for _, v := range after.Registers {
		was := old[v.Name]
		delete(old, v.Name)
		if was != v.Value && !clockRegisters[v.Name] {
			changes = append(changes, registerChange{v.Name, was, v.Value})
		}
	}
	for _, v := range before.Registers {
		if was, left := old[v.Name]; left {
			changes = append(changes, registerChange{v.Name, was, ""})
		}
	}
	return changes
}

// clockRegisters lists the registers that count time.
var clockRegisters = map[string]bool{"common.cycles": true, "queue.snapshot_cycle": true, "queue.covered_cycles": true}

func printChanges(env *cli.Env, changes []registerChange, out cli.Format) error {
	if out == cli.JSON {
		return cli.WriteJSON(env.Stdout, struct {
			cli.Head
			Changes []registerChange `json:"changes"`
		}{cli.List("register-changes"), changes})
	}
	list := cli.Grid{Header: []string{"NAME", "BEFORE", "AFTER", "DECODED"}}
	for _, c := range changes {
		list.Add(c.Name, cli.OrDash(c.Before), cli.OrDash(c.After), decodeFields(c.Name, c.After))
	}
	return list.Write(env, out)
}

// decodeFields returns the fields of a register value as text.
func decodeFields(name, value string) string {
	ref, err := regmap.FindRegister(name)
	var v uint32
	if _, scanErr := fmt.Sscan(value, &v); err != nil || scanErr != nil || ref.Register.Wide {
		return ""
	}
	var text string
	for _, f := range ref.Register.Decode(v) {
		text += f.Field.Name + "=" + f.Text + " "
	}
	return text
}
