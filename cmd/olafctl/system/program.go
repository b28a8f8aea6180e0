package system

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/vector"
)

func NewProgram(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "program",
		Short: "List and show switch programs, play golden vectors on them, and print a dissector for Wireshark",
	}
	cmd.AddCommand(newProgramListCmd(env), newProgramShowCmd(env), newProgramTraceCmd(env), newProgramDissectorCmd(env))
	return cmd
}

// listedProgram is a switch program in the JSON output of the list.
type listedProgram struct {
	Name       string            `json:"name"`
	Profiles   []string          `json:"profiles"`
	Counters   []counterDocument `json:"counters"`
	Identities []string          `json:"identities"`
}

func listProgram(d *program.Description) listedProgram {
	e := listedProgram{Name: d.Name, Profiles: d.Profiles}
	for _, c := range d.Ledger.Counters {
		e.Counters = append(e.Counters, counterDocument{c.Name, c.Unit, c.Doc})
	}
	for i := range d.Ledger.Identities {
		e.Identities = append(e.Identities, d.Ledger.Identities[i].String())
	}
	return e
}

func newProgramListCmd(env *cli.Env) *cobra.Command {
	var out cli.Format
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the switch programs, their profiles and counters",
		Example: "  olafctl system program list",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			entries := []listedProgram{}
			list := cli.Grid{Header: []string{"PROGRAM", "PROFILES", "COUNTS", "OF THEM CLASSES", "IDENTITIES"}}
			for _, d := range env.Programs {
				e := listProgram(&d)
				entries = append(entries, e)
				for i, profile := range d.Profiles {
					if i == 0 {
						list.Add(d.Name, profile, strconv.Itoa(len(e.Counters)), strconv.Itoa(d.Classes),
							strconv.Itoa(len(e.Identities)))
					} else {
						list.Add("", profile, "", "", "")
					}
				}
			}
			if out == cli.JSON {
				return cli.WriteJSON(env.Stdout, struct {
					cli.Head
					Programs []listedProgram `json:"programs"`
				}{cli.List("programs"), entries})
			}
			return list.Write(env, out)
		},
	}
	cli.AddFormatFlag(cmd, &out)
	return cmd
}

func newProgramTraceCmd(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "trace FILE…",
		Short: "Play golden vectors on the switch program they name",
		Long: `Play golden vectors: each packet in a file is given to the switch program named in its first line, and the outcome, output
and slots are compared with the file. The first difference is printed with file and line, and the command exits with code 4.
"-" reads standard input. See docs/reference/vectors.md.`,
		Example: "  olafctl system program trace sum.txt order.txt",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			steps := 0
			for _, name := range args {
				n, err := traceVector(env, name)
				if err != nil {
					return fmt.Errorf("%s: %w", filepath.Base(name), err)
				}
				steps += n
			}
			_, err := fmt.Fprintf(env.Stdout, "%d vectors, %d steps: all as written\n", len(args), steps)
			return err
		},
	}
}

// traceVector replays a file of golden test vectors and returns the number of its steps.
func traceVector(env *cli.Env, name string) (steps int, err error) {
	in := env.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return 0, err
		}
		defer f.Close()
		in = f
	}
	v, err := vector.ParseVector(io.Reader(in))
	if err != nil {
		return 0, err
	}
	subject, err := v.Build(env.Programs)
	if err != nil {
		return 0, err
	}
	return len(v.Steps), vector.PlayVector(v, subject)
}
