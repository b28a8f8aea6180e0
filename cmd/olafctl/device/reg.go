package device

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

func NewReg(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reg",
		Short: "Read and write registers by name",
		Long: "Read and write registers by name, with their fields decoded. docs/reference/registers.md describes " +
			"every one.",
	}
	cmd.AddCommand(newRegListCmd(env), newRegDumpCmd(env), newRegSlotsCmd(env), newRegFlowsCmd(env), newRegReadCmd(env),
		newRegWriteCmd(env), newRegSnapshotCmd(env), newRegDiffCmd(env))
	return cmd
}

func newRegListCmd(env *cli.Env) *cobra.Command {
	var out cli.Format
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List every register of the map",
		Example: "  olafctl device reg list -o csv",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			type entry struct {
				Name    string `json:"name"`
				Address uint32 `json:"address"`
				Bits    int    `json:"bits"`
				Access  string `json:"access"`
				Unit    string `json:"unit,omitempty"`
				Doc     string `json:"doc"`
			}
			var entries []entry
			list := cli.Grid{Header: []string{"NAME", "ADDRESS", "BITS", "ACCESS", "UNIT", "MEANING"}}
			for _, ref := range selectRegisters(regmap.AllBlocks(), "") {
				e := entry{ref.Name(), ref.Address(), 8 * int(ref.Register.Bytes()), ref.Register.Access.String(),
					ref.Register.Unit, ref.Register.Doc}
				entries = append(entries, e)
				list.Add(e.Name, fmt.Sprintf("%#x", e.Address), fmt.Sprint(e.Bits), e.Access, e.Unit, e.Doc)
			}
			if out == cli.JSON {
				return cli.WriteJSON(env.Stdout, struct {
					cli.Head
					Registers []entry `json:"registers"`
				}{cli.List("registers"), entries})
			}
			return list.Write(env, out)
		},
	}
	cli.AddFormatFlag(cmd, &out)
	return cmd
}

func blockNames() []string {
	var names []string
	for _, b := range regmap.AllBlocks() {
		names = append(names, b.Name)
	}
	return names
}

func newRegDumpCmd(env *cli.Env) *cobra.Command {
	var (
		out     cli.Format
		device  cli.DeviceFlags
		noLatch bool
	)
	cmd := &cobra.Command{
		Use:   "dump [BLOCK]",
		Short: "Print all registers that can be read without side effects",
		Long: `Print every register that can be read without side effects, with its fields decoded. Counters are latched first. A software
twin starts fresh with every command; --after runs an experiment on it first.`,
		Example: `  olafctl device reg dump queue
  olafctl device reg dump queue --after table1 -o json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cli.CompleteArgs(blockNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			block := strings.Join(args, "")
			if len(selectRegisters(regmap.AllBlocks(), block)) == 0 {
				return cli.UsageError("no block is named %q; see 'olafctl device reg list'", block)
			}
			return device.WithRegisters(cmd.Context(), env, testbed.DeviceOptions{ReadOnly: noLatch},
				func(dev fpga.Device) error {
					if !noLatch {
						if _, err := fpga.Snapshot(dev); err != nil {
							return err
						}
					}
					refs, err := builtRegisters(dev, block)
					if err != nil {
						return err
					}
					return printRegisters(env, dev, refs, out)
				})
		},
	}
	cmd.Flags().BoolVar(&noLatch, "no-latch", false, "do not write, not even to latch the counters")
	cli.AddFormatFlag(cmd, &out)
	device.Add(cmd, env)
	return cmd
}

func newRegReadCmd(env *cli.Env) *cobra.Command {
	var (
		out    cli.Format
		device cli.DeviceFlags
		raw    bool
	)
	cmd := &cobra.Command{
		Use:   "read NAME…",
		Short: "Read registers by name",
		Example: `  olafctl device reg read queue.mode queue.depth
  olafctl device reg read --raw 0x8204 -d pci:0000:3b:00.0       # receiver status of the first MAC`,
		Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: cli.CompleteArgs(func() []string {
			var names []string
			for _, ref := range selectRegisters(regmap.AllBlocks(), "") {
				names = append(names, ref.Name())
			}
			return names
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			if raw {
				return device.WithRegisters(cmd.Context(), env, testbed.DeviceOptions{ReadOnly: true},
					func(dev fpga.Device) error {
						return readRaw(env, dev, args, out)
					})
			}
			var refs []regmap.Ref
			for _, name := range args {
				ref, err := regmap.FindRegister(name)
				if err != nil {
					return cli.UsageError("%v", err)
				}
				refs = append(refs, ref)
			}
			return device.WithRegisters(cmd.Context(), env, testbed.DeviceOptions{ReadOnly: true},
				func(dev fpga.Device) error {
					return printRegisters(env, dev, refs, out)
				})
		},
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "arguments are BAR2 byte offsets; only safe ranges are read")
	cli.AddFormatFlag(cmd, &out)
	device.Add(cmd, env)
	return cmd
}

// builtRegisters returns the registers in one block of a device, or in all blocks if block is empty. It omits blocks
// with which the device was not built.
func builtRegisters(dev fpga.Registers, block string) ([]regmap.Ref, error) {
	capabilities, err := dev.Read32(regmap.CommonCapabilities)
	if err != nil {
		return nil, err
	}
	refs := selectRegisters(regmap.BuiltBlocks(capabilities), block)
	if len(refs) == 0 {
		return nil, fmt.Errorf("%w: this device is built without the block %s", fpga.ErrAddress, block)
	}
	return refs, nil
}

// selectRegisters returns the registers of the named block, or of all blocks if the name is empty.
func selectRegisters(blocks []regmap.Block, block string) []regmap.Ref {
	var refs []regmap.Ref
	for i := range blocks {
		if block != "" && blocks[i].Name != block {
			continue
		}
		for j := range blocks[i].Registers {
			refs = append(refs, regmap.Ref{Block: &blocks[i], Register: &blocks[i].Registers[j]})
		}
	}
	return refs
}

// registerValue is a register with the value that was read from it.
type registerValue struct {
	Name    string            `json:"name,omitempty"` // empty for a raw address
	Address uint32            `json:"address"`
	Value   string            `json:"value"` // hexadecimal, because 64-bit values do not fit a JSON number
	Unit    string            `json:"unit,omitempty"`
	Fields  map[string]string `json:"fields,omitempty"`
}

// isQuiet reports whether a register can be read without side effects.
func isQuiet(ref regmap.Ref) bool {
	return ref.Register.Access != regmap.Command && ref.Address() != regmap.GeneratorMemData &&
		ref.Address() != regmap.ReplicationMemberData
}

func printRegisters(env *cli.Env, dev fpga.Registers, refs []regmap.Ref, out cli.Format) error {
	var values []registerValue
	counts := map[uint32]*olaf.Counter{}
	if slices.ContainsFunc(refs, func(r regmap.Ref) bool { return r.Address() == regmap.AggregatorCount0 }) {
		var err error
		if counts, err = fpga.ProgramCounters(dev, env.Programs); err != nil {
			return err
		}
	}
	list := cli.Grid{Header: []string{"NAME", "ADDRESS", "VALUE", "DECODED"}}
	for _, ref := range refs {
		if !isQuiet(ref) && len(refs) > 1 {
			continue
		}
		v, decoded, err := readRegister(dev, ref)
		if err != nil {
			return fmt.Errorf("read %s: %w", ref.Name(), err)
		}
		if c := counts[v.Address]; c != nil {
			decoded += fmt.Sprintf(" %s: %s", c.Unit, c.Name)
		}
		values = append(values, v)
		list.Add(v.Name, fmt.Sprintf("%#x", v.Address), v.Value, decoded)
	}
	if out == cli.JSON {
		return writeRegisterValues(env.Stdout, values)
	}
	return list.Write(env, out)
}

func readRegister(dev fpga.Registers, ref regmap.Ref) (registerValue, string, error) {
	r := ref.Register
	v := registerValue{Name: ref.Name(), Address: ref.Address(), Unit: r.Unit}
	if r.Wide {
		value, err := regmap.Read64(dev, ref.Address())
		v.Value = fmt.Sprintf("%#x", value)
		return v, r.Text(value), err
	}
	value, err := dev.Read32(ref.Address())
	if err != nil {
		return v, "", err
	}
	v.Value = fmt.Sprintf("%#x", value)
	if len(r.Fields) == 0 {
		return v, r.Text(uint64(value)), nil
	}
	v.Fields = map[string]string{}
	var words []string
	for _, f := range r.Decode(value) {
		v.Fields[f.Field.Name] = f.Text
		words = append(words, f.Field.Name+"="+f.Text)
	}
	return v, strings.Join(words, " "), nil
}
