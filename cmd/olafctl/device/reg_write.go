package device

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

func newRegWriteCmd(env *cli.Env) *cobra.Command {
	var (
		device cli.DeviceFlags
		raw    bool
		dryRun bool
		ask    cli.ConfirmFlag
	)
	cmd := &cobra.Command{
		Use:   "write NAME[.FIELD]=VALUE…",
		Short: "Write registers or single fields by name",
		Long: `Write registers by name, in the given order. A field keeps the register's other fields. Values are decimal, 0x…, or the
name of an enumerated value. All arguments are checked before the first write. With --raw the names are BAR2 byte offsets in
ranges that are safe to write (docs/reference/safety.md).`,
		Example: `  olafctl device reg write queue.depth=16 queue.mode.discipline=olaf queue.mode.reward_filter=1
  olafctl device reg write queue.command.flush=1 -d pci:0000:3b:00.0
  olafctl device reg write queue.depth=16 --dry-run`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			writes, err := parseWrites(args, raw)
			if err != nil {
				return err
			}
			var o testbed.DeviceOptions
			if dryRun {
				o.DryRun = env.Stdout
			}
			fleeting := !dryRun && env.Devices.Check(device.Address, testbed.Copies) == nil
			return device.WithRegisters(cmd.Context(), env, o, func(dev fpga.Device) error {
				if fleeting { // a twin exists only as long as it is open
					fmt.Fprintf(env.Stderr,
						"%s and all writes to it are gone when this command ends; use 'olafctl device serve' to "+
							"keep one\n", device.Address)
				}
				if !dryRun && !fleeting {
					if err := ask.Confirm(cmd.Context(), env,
						fmt.Sprintf("write %s to %s", strings.Join(args, " "), device.Address)); err != nil {
						return err
					}
				}
				return doAll(dev, writes)
			})
		},
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "arguments are BAR2 byte offsets")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the accesses without writing")
	ask.Add(cmd)
	device.Add(cmd, env)
	return cmd
}

// assignment is a write of the bits in mask to a register. For a whole register, mask is all ones.
type assignment struct {
	name  string
	Addr  uint32
	wide  bool
	mask  uint32
	Value uint64
	merge bool // read the other bits first
}

func (a *assignment) writeTo(dev fpga.Device) error {
	switch {
	case a.wide:
		return regmap.Write64(dev, a.Addr, a.Value)
	case a.merge:
		old, err := dev.Read32(a.Addr)
		if err != nil {
			return fmt.Errorf("read %s: %w", a.name, err)
		}
		return dev.Write32(a.Addr, old&^a.mask|uint32(a.Value))
	}
	return dev.Write32(a.Addr, uint32(a.Value))
}

// doAll performs the writes in order and stops at the first write that fails.
func doAll(dev fpga.Device, writes []assignment) error {
	for i, w := range writes {
		if err := w.writeTo(dev); err != nil {
			return fmt.Errorf("%w (%d of %d writes were done)", err, i, len(writes))
		}
	}
	return nil
}

func parseWrites(args []string, raw bool) ([]assignment, error) {
	if raw {
		return ParseRawAssignments(args)
	}
	return parseAssignments(args)
}

// parseAssignments parses arguments of the form NAME[.FIELD]=VALUE, and merges consecutive fields of one register into
// one write.
func parseAssignments(args []string) ([]assignment, error) {
	var writes []assignment
	for _, arg := range args {
		a, err := parseAssignment(arg)
		if err != nil {
			return nil, err
		}
		if last := len(writes) - 1; last >= 0 && writes[last].Addr == a.Addr && writes[last].mask != ^uint32(0) &&
			writes[last].mask&a.mask == 0 {
			writes[last].mask |= a.mask
			writes[last].Value |= a.Value
			continue
		}
		writes = append(writes, a)
	}
	return writes, nil
}

func parseAssignment(arg string) (a assignment, err error) {
	name, text, ok := strings.Cut(arg, "=")
	if !ok {
		return a, cli.UsageError("%q: write NAME=VALUE or NAME.FIELD=VALUE", arg)
	}
	parts := strings.Split(name, ".")
	ref, err := regmap.FindRegister(strings.Join(parts[:min(2, len(parts))], "."))
	if err != nil {
		return a, cli.UsageError("%v", err)
	}
	r := ref.Register
	a = assignment{name: ref.Name(), Addr: ref.Address(), wide: r.Wide, mask: ^uint32(0)}
	if len(parts) == 2 {
		bits := 32
		if r.Wide {
			bits = 64
		}
		if a.Value, err = olaf.ParseWord(text, bits); err != nil {
			return a, cli.UsageError("%s=%q: want a number of %d bits", name, text, bits)
		}
		return a, nil
	}
	for i := range r.Fields {
		if f := &r.Fields[i]; f.Name == strings.Join(parts[2:], ".") {
			value, err := fieldValue(f, text)
			a.mask, a.Value, a.merge = f.Mask(), uint64(value<<f.Lo), r.Access == regmap.ReadWrite
			return a, err
		}
	}
	return a, cli.UsageError("%s has no field %q; see 'olafctl device reg read %s'", ref.Name(),
		strings.Join(parts[2:], "."), ref.Name())
}

// fieldValue parses a number or the name of an enumerated value.
func fieldValue(f *regmap.Field, text string) (uint32, error) {
	for v, name := range f.Values {
		if name == text {
			return uint32(v), nil
		}
	}
	width := int(f.Hi-f.Lo) + 1
	v, err := olaf.ParseWord(text, width)
	if err != nil && len(f.Values) > 0 {
		return 0, cli.UsageError("field %s=%q: want one of %s, or a number of %d bits", f.Name, text,
			strings.Join(f.Values, ", "), width)
	}
	if err != nil {
		return 0, cli.UsageError("field %s=%q: want a number of %d bits", f.Name, text, width)
	}
	return uint32(v), nil
}

// ParseRawAssignments parses arguments of the form OFFSET=VALUE.
func ParseRawAssignments(args []string) ([]assignment, error) {
	writes := make([]assignment, len(args))
	for i, arg := range args {
		name, text, _ := strings.Cut(arg, "=")
		addr, err := parseOffset(name)
		if err != nil {
			return nil, err
		}
		value, err := olaf.ParseWord(text, 32)
		if err != nil {
			return nil, cli.UsageError("%q: write OFFSET=VALUE, both of 32 bits", arg)
		}
		writes[i] = assignment{name: name, Addr: addr, mask: ^uint32(0), Value: value}
	}
	return writes, nil
}

func parseOffset(text string) (uint32, error) {
	addr, err := olaf.ParseWord(text, 32)
	if err != nil || addr%4 != 0 {
		return 0, cli.UsageError("%q is not a BAR2 byte offset; use a multiple of 4, such as 0x8204", text)
	}
	return uint32(addr), nil
}

// readRaw prints the words at the given offsets.
func readRaw(env *cli.Env, dev fpga.Registers, offsets []string, out cli.Format) error {
	addrs := make([]uint32, len(offsets))
	for i, text := range offsets {
		var err error
		if addrs[i], err = parseOffset(text); err != nil {
			return err
		}
	}
	var values []registerValue
	list := cli.Grid{Header: []string{"ADDRESS", "VALUE"}}
	for _, addr := range addrs {
		v, err := dev.Read32(addr)
		if err != nil {
			return err
		}
		values = append(values, registerValue{Address: addr, Value: fmt.Sprintf("%#x", v)})
		list.Add(fmt.Sprintf("%#x", addr), fmt.Sprintf("%#x", v))
	}
	if out == cli.JSON {
		return writeRegisterValues(env.Stdout, values)
	}
	return list.Write(env, out)
}
