package device

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/lockstep"
	"github.com/olafctl/olaf/p4ctl"
)

// lockstepFlags are the flags of device conformance.
type lockstepFlags struct {
	a, b  string
	seeds int
	seed  uint64
	ports int
	out   cli.Format
	quiet bool
}

func newDeviceConformanceCmd(env *cli.Env) *cobra.Command {
	var f lockstepFlags
	cmd := &cobra.Command{
		Use:   "conformance",
		Short: "Drive two devices with the same traffic and stop at the first difference",
		Long: `Drive two devices with the same random and adversarial traffic, and compare frames, outcomes, cycles, counters and registers.
The first difference is printed with its cycle and register or packet, and the command exits with code 4. Both devices must
keep the card's clock (docs/reference/semantics.md).`,
		Example: `  olafctl device conformance --a twin: --b rtl: --seeds 200
  olafctl device conformance --ports 1 --seed 7 --seeds 1 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), env) },
	}
	flags, able := cmd.Flags(), env.Devices.With(testbed.KeepsLogicTime|testbed.Records)
	flags.StringVar(&f.a, "a", "twin:", "first device: "+able.Forms())
	flags.StringVar(&f.b, "b", "rtl:", "second device")
	flags.IntVar(&f.seeds, "seeds", 200, "number of streams, one seed each")
	flags.Uint64Var(&f.seed, "seed", 0, "seed of the first stream")
	flags.IntVar(&f.ports, "ports", 2, "read ports of the gradient memory, 1 or 2")
	cli.AddQuiet(flags, &f.quiet)
	cli.Complete(cmd, "a", able.Prefixes)
	cli.Complete(cmd, "b", able.Prefixes)
	cli.AddFormatFlag(cmd, &f.out)
	return cmd
}

func (f *lockstepFlags) run(ctx context.Context, env *cli.Env) error {
	if f.ports < 1 || f.ports > 2 {
		return cli.UsageError("--ports %d: the logic is built with 1 or 2", f.ports)
	}
	if f.seeds < 1 {
		return cli.UsageError("--seeds %d: use 1 or more", f.seeds)
	}
	a, err := f.openDevice(ctx, env, f.a)
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := f.openDevice(ctx, env, f.b)
	if err != nil {
		return err
	}
	defer b.Close()
	d := lockstepDocument{Head: cli.Check("devices"), A: f.a, B: f.b, Ports: f.ports,
		Divergences: []*lockstep.Divergence{}}
	var done atomic.Int64
	progress := cli.StartProgress(env, f.quiet, func() (int, int) { return int(done.Load()), f.seeds })
	for seed := f.seed; err == nil && seed < f.seed+uint64(f.seeds); seed++ {
		var found *lockstep.Divergence
		var seen lockstep.Seen
		if found, seen, err = lockstep.CompareCards(ctx, lockstepSide(a), lockstepSide(b), seed); err == nil {
			d.addStream(found, seen)
			done.Add(1)
		}
	}
	progress.Stop()
	if err := errors.Join(err, d.print(env, f.out)); err != nil {
		return err
	}
	if n := len(d.Divergences); n > 0 {
		return &cli.Exit{Kind: olaf.Missed,
			Err: fmt.Errorf("%s and %s differ in %d of %d streams", f.a, f.b, n, d.Streams)}
	}
	return nil
}

// openDevice opens a device as a testbed and writes the tables that all test streams need.
func (f *lockstepFlags) openDevice(ctx context.Context, env *cli.Env, address string) (*testbed.Testbed, error) {
	access, err := env.Access()
	if err != nil {
		return nil, err
	}
	bed, err := testbed.OpenTestbed(ctx, address,
		testbed.OpenOptions{Access: access, Cards: 1, Wire: true, ReadPorts: f.ports})
	if err != nil {
		return nil, err
	}
	tables := p4ctl.Tables{Servers: []netip.Addr{lockstep.ServerAddress()}}
	for _, w := range lockstep.TableWorkers() {
		tables.Workers = append(tables.Workers, p4ctl.Worker{Address: w.Address, Cluster: w.Cluster, ID: w.ID})
	}
	if _, err := bed.Program(ctx, tables.WithGroups(1)); err != nil {
		return nil, errors.Join(err, bed.Close())
	}
	return bed, nil
}

// lockstepSide returns one side of the comparison: the testbed's first card and its tap, which records the card's
// cycles.
func lockstepSide(bed *testbed.Testbed) lockstep.Side {
	return lockstep.Side{Device: bed.Cards[0].Device, Tap: bed.Cards[0].Tap.(lockstep.Tap)}
}

// lockstepDocument is the JSON document olafctl.check/v1.
type lockstepDocument struct {
	cli.Head
	A         string `json:"a"`
	B         string `json:"b"`
	Ports     int    `json:"ports"`
	Streams   int    `json:"streams"`
	Equal     int    `json:"equal"`
	Cycles    int64  `json:"cycles"`
	Frames    int    `json:"frames"`
	Registers int    `json:"registers"`
	// Divergences lists the first divergence in each stream that has one.
	Divergences []*lockstep.Divergence `json:"divergences"`
}

func (d *lockstepDocument) addStream(found *lockstep.Divergence, seen lockstep.Seen) {
	d.Streams++
	d.Cycles += seen.Cycles
	d.Frames += seen.Frames
	d.Registers += seen.Registers
	if found == nil {
		d.Equal++
	} else {
		d.Divergences = append(d.Divergences, found)
	}
}

func (d *lockstepDocument) print(env *cli.Env, out cli.Format) error {
	if out == cli.JSON {
		return cli.WriteJSON(env.Stdout, d)
	}
	if out == cli.Table {
		fmt.Fprintf(env.Stdout, "%s and %s agree in %d of %d streams, with %d read ports:\n%d frames, %d cycles, %d "+
			"values of registers compared.\n",
			d.A, d.B, d.Equal, d.Streams, d.Ports, d.Frames, d.Cycles, d.Registers)
		if len(d.Divergences) == 0 {
			return nil
		}
		fmt.Fprintln(env.Stdout)
	}
	list := cli.Grid{Header: []string{"SEED", "STREAM", "CYCLE", "WHAT", "A", "B", "AFTER"}}
	for _, v := range d.Divergences {
		list.Add(fmt.Sprint(v.Seed), v.Stream, fmt.Sprint(v.Cycle), v.What, v.A, v.B, v.Step)
	}
	return list.Write(env, out)
}
