package system

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/fpga/program"
)

// programDocument is the JSON description of a switch program. The program has its default number of slots unless
// --slots sets another number.
type programDocument struct {
	Name       string            `json:"name"`
	Profile    string            `json:"profile"`
	Profiles   []string          `json:"profiles"`
	Arithmetic string            `json:"arithmetic"`
	Completes  string            `json:"completes,omitempty"` // the number of contributions that complete a sum
	Slots      int               `json:"slots"`
	Memory     olaf.Size         `json:"memory_bytes"`
	Actions    []string          `json:"actions"`
	Classes    []counterDocument `json:"classes"`
	Sums       []counterDocument `json:"sums"`
	Identities []string          `json:"identities"`
	Tables     []tableShape      `json:"tables,omitempty"` // written by a controller
	On         *stateDocument    `json:"on,omitempty"`     // state on a device
}

// tableShape describes a match-action table of a switch program.
type tableShape struct {
	Name   string   `json:"name"`
	Key    []string `json:"key"`
	Action string   `json:"action"`
	Params []string `json:"params"`
	Doc    string   `json:"doc"`
	Miss   string   `json:"without_entry"`
}

func describeTable(t *program.Table) tableShape {
	names := func(fields []program.Field) []string {
		list := make([]string, len(fields))
		for i, f := range fields {
			list[i] = f.Name
		}
		return list
	}
	return tableShape{t.Name, names(t.Key), t.Action, names(t.Params), t.Doc, t.Without}
}

type counterDocument struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	Doc  string `json:"doc"`
}

func newProgramShowCmd(env *cli.Env) *cobra.Command {
	var out cli.Format
	var build program.Config
	var device string
	cmd := &cobra.Command{
		Use:   "show PROGRAM",
		Short: "Describe a switch program: state, packet outcomes, counters and identities",
		Long: `Describe a switch program: its state, the number of contributions per sum, packet outcomes, counters and accounting
identities. With -d it also prints the device's current H, slots and members. Nothing is written.`,
		Example: `  olafctl system program show iswitch
  olafctl system program show iswitch --slots 4594 --profile isw-x
  olafctl system program show iswitch -d grpc://127.0.0.1:9559`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cli.CompleteArgs(func() []string { return program.ProgramNames(env.Programs) }),
		RunE: func(cmd *cobra.Command, args []string) error {
			of, err := findProgram(env.Programs, args[0])
			if err != nil {
				return err
			}
			d, err := describeProgram(of, build)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("device") {
				if d.On, err = readState(cmd.Context(), env, device, of); err != nil {
					return err
				}
			}
			if out == cli.JSON {
				return cli.WriteJSON(env.Stdout, struct {
					cli.Head
					programDocument
				}{cli.Info("program"), d})
			}
			return d.write(env.Stdout)
		},
	}
	cli.AddCount(cmd.Flags(), &build.Slots, "slots", "size of the table to build; default the program's own")
	cmd.Flags().StringVar(&build.Profile, "profile", "", "program profile to show")
	cli.AddFormatFlag(cmd, &out, cli.Table, cli.JSON)
	cli.AddAddress(cmd, &device, env.Devices, "also show the program on this device")
	return cmd
}

func findProgram(known []program.Description, name string) (*program.Description, error) {
	names := program.ProgramNames(known)
	i := slices.Index(names, name)
	if i < 0 {
		return nil, cli.UsageError("unknown switch program %q; use one of %s", name, strings.Join(names, ", "))
	}
	return &known[i], nil
}

func describeProgram(d *program.Description, build program.Config) (programDocument, error) {
	p, err := d.New(build)
	if err != nil {
		return programDocument{}, err
	}
	doc := programDocument{
		Name: d.Name, Profile: build.Profile, Profiles: d.Profiles, Arithmetic: d.Arithmetic.String(),
		Completes: d.Completes, Slots: p.Slots(), Memory: p.Memory(),
		Actions: slices.Sorted(maps.Keys(d.Actions)), Classes: []counterDocument{}, Sums: []counterDocument{},
		Identities: []string{},
	}
	doc.Profile = cmp.Or(doc.Profile, d.Profiles[0])
	for i, c := range d.Ledger.Counters {
		one := counterDocument{c.Name, c.Unit, c.Doc}
		if i < d.Classes {
			doc.Classes = append(doc.Classes, one)
		} else {
			doc.Sums = append(doc.Sums, one)
		}
	}
	for i := range d.Ledger.Identities {
		doc.Identities = append(doc.Identities, d.Ledger.Identities[i].String())
	}
	for i := range d.Tables {
		doc.Tables = append(doc.Tables, describeTable(&d.Tables[i]))
	}
	return doc, nil
}

func (d *programDocument) write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "program\t%s, profile %s of %s\n", d.Name, d.Profile, strings.Join(d.Profiles, ", "))
	fmt.Fprintf(tw, "lanes\t%s\n", d.Arithmetic)
	if d.Completes != "" {
		fmt.Fprintf(tw, "H\t%s\n", d.Completes)
	}
	fmt.Fprintf(tw, "table\t%d slots, %s\n", d.Slots, d.Memory)
	if len(d.Actions) > 0 {
		fmt.Fprintf(tw, "control\t%s\n", strings.Join(d.Actions, " "))
	}
	for i, c := range d.Classes {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", headFirst(i, "becomes"), c.Name, c.Doc)
	}
	for i, c := range d.Sums {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", headFirst(i, "sums"), c.Name, c.Doc)
	}
	for i, identity := range d.Identities {
		fmt.Fprintf(tw, "%s\t%s\n", headFirst(i, "holds"), identity)
	}
	for i, t := range d.Tables {
		fmt.Fprintf(tw, "%s\t%s\t%s → %s(%s). %s\n", headFirst(i, "told by"), t.Name, strings.Join(t.Key, ", "),
			t.Action, strings.Join(t.Params, ", "), t.Doc)
	}
	if d.On != nil {
		d.On.write(tw, d.Name)
	}
	return tw.Flush()
}

// headFirst returns the heading for the first line of a list and "" for all other lines.
func headFirst(i int, word string) string {
	if i == 0 {
		return word
	}
	return ""
}
