package device

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/program"
)

// slotsDocument is the JSON document olafctl.list/v1 with the slots of a queue.
type slotsDocument struct {
	cli.Head
	Program string         `json:"program"`
	H       int            `json:"h"`
	Built   int            `json:"built_slots"`
	Slots   []slotDocument `json:"slots"`
}

type slotDocument struct {
	Cluster olaf.ClusterID `json:"cluster"`
	Seg     uint64         `json:"seg"`
	Slot    int            `json:"slot"`
	Count   int            `json:"count"`
	Newest  olaf.WorkerID  `json:"newest_worker"`
	GenNS   uint64         `json:"newest_gen_ns"`
	Since   uint64         `json:"since_cycles"`
	Lanes   int            `json:"lanes"`
}

func newRegSlotsCmd(env *cli.Env) *cobra.Command {
	var out cli.Format
	var device cli.DeviceFlags
	cmd := &cobra.Command{
		Use:   "slots",
		Short: "List the partial sums held by the switch program",
		Long: `List the switch program's slots that hold a partial sum: cluster, vector segment, number of contributions, and the newest
contributor. The queue is frozen while its slots are read. A software twin starts fresh with every command; --after runs an
experiment on it first.`,
		Example: `  olafctl device reg slots --after table1 --system iswitch --h 7
  olafctl device reg slots -d grpc:testbed:9559
  olafctl device reg slots -d grpc:testbed:9559 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return device.WithRegisters(cmd.Context(), env, testbed.DeviceOptions{}, func(dev fpga.Device) error {
				read := fpga.ReadSegments
				if device.HasVirtualTime(env) {
					read = fpga.FreezeAndReadSegments
				}
				t, err := read(dev)
				if err != nil {
					return err
				}
				d := documentOfSlots(env.Programs, &t)
				if out == cli.JSON {
					return cli.WriteJSON(env.Stdout, d)
				}
				return d.write(env.Stdout)
			})
		},
	}
	cli.AddFormatFlag(cmd, &out, cli.Table, cli.JSON)
	device.Add(cmd, env)
	return cmd
}

func documentOfSlots(known []program.Description, t *fpga.Segments) *slotsDocument {
	d := &slotsDocument{Head: cli.List("slots"), Program: program.ProgramName(known, t.Program), H: t.H, Built: t.Built,
		Slots: []slotDocument{}}
	for _, s := range t.Held {
		d.Slots = append(d.Slots, slotDocument(s))
	}
	return d
}

func (d *slotsDocument) write(w io.Writer) error {
	fmt.Fprintf(w, "%s: %d of %d slots have a partial sum, H=%d\n", d.Program, len(d.Slots), d.Built, d.H)
	if len(d.Slots) == 0 {
		return nil
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "\nCLUSTER\tSEG\tSLOT\tINSIDE\tNEWEST\tGENERATED\tSINCE CYCLE\tLANES")
	for _, s := range d.Slots {
		fmt.Fprintf(tw, "%d\t%d\t%d\t%d of %d\tw%d\t%d ns\t%d\t%d\n", s.Cluster, s.Seg, s.Slot, s.Count, d.H, s.Newest,
			s.GenNS, s.Since, s.Lanes)
	}
	return tw.Flush()
}
