package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/experiments/testbed/roles"
)

// ReadLab reads a testbed file that describes nodes. path "-" is standard input.
func ReadLab(env *cli.Env, path string) (*lab.File, *lab.Plan, error) {
	f, err := parseFile(env, path)
	if err != nil {
		return nil, nil, err
	}
	p, err := f.Resolve()
	return f, p, err
}

// parseFile reads a testbed file. path "-" is standard input.
func parseFile(env *cli.Env, path string) (*lab.File, error) {
	text, err := readFileOrInput(env, path)
	if err != nil {
		return nil, err
	}
	return lab.Parse(path, text)
}

func readFileOrInput(env *cli.Env, path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(env.Stdin)
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cli.UsageError("testbed file %s does not exist; docs/reference/testbed-file.md has examples", path)
	}
	return text, err
}

func newTestbedPlanCmd(env *cli.Env) *cobra.Command {
	var out cli.Format
	var schema bool
	cmd := &cobra.Command{
		Use:   "plan FILE",
		Short: "Check a testbed file and print what 'up' would create",
		Long: `Check a testbed file and print every namespace, link, route and program that 'olafctl testbed up' would create. If a testbed
of that name is up, the differences are marked with - and +. Nothing is changed, and no rights are needed.`,
		Example: "  olafctl testbed plan lab.yaml\n  olafctl testbed plan --schema > testbed.schema.json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if schema {
				return cli.PrintText(env, lab.JSONSchema)
			}
			if len(args) == 0 {
				return cli.UsageError("name a file: olafctl testbed plan lab.yaml")
			}
			f, err := parseFile(env, args[0])
			if err != nil {
				return err
			}
			return planFile(env, f, out)
		},
	}
	cmd.Flags().BoolVar(&schema, "schema", false, "print the JSON schema of testbed files, for editors")
	cli.AddFormatFlag(cmd, &out, cli.Table, cli.JSON)
	return cmd
}

// planFile prints the plan for a testbed of nodes on this machine, or of roles or nodes on several hosts.
func planFile(env *cli.Env, f *lab.File, out cli.Format) error {
	hosts, err := roles.ResolveHosts(f)
	if err != nil {
		return err
	}
	if hosts != nil {
		return planRoles(env, hosts, out)
	}
	p, err := f.Resolve()
	if err != nil {
		return err
	}
	if out == cli.JSON {
		return cli.WriteJSON(env.Stdout, struct {
			cli.Head
			*lab.Plan
		}{cli.Info("testbed-plan"), p})
	}
	return printPlan(env.Stdout, p)
}

// planRoles prints the plan for a testbed of roles.
func planRoles(env *cli.Env, p *roles.Plan, out cli.Format) error {
	if out == cli.JSON {
		return cli.WriteJSON(env.Stdout, struct {
			cli.Head
			*roles.Plan
		}{cli.Info("testbed-plan"), p})
	}
	_, err := fmt.Fprintf(env.Stdout, "%s: %s\n%s\n", p.Name, olaf.Plural(len(p.Hosts), "host"), strings.Join(p.Lines(), "\n"))
	return err
}

// printPlan prints what 'testbed up' would create. If the testbed is running, it prints only the differences.
func printPlan(w io.Writer, p *lab.Plan) error {
	var up []string
	if s, err := lab.Show(p.Name); err == nil {
		up = s.Lines
	}
	if slices.Equal(up, p.Lines()) {
		_, err := fmt.Fprintf(w, "%s\nit is up and matches the file: nothing to do\n", p.Summary())
		return err
	}
	_, err := fmt.Fprintf(w, "%s\n%s\n", p.Summary(), strings.Join(lab.Difference(up, p.Lines()), "\n"))
	return err
}

// labName returns the name of the testbed to which the argument refers. The argument is a name or a file. Without an
// argument, it is the only testbed that is up.
func labName(env *cli.Env, args []string) (string, error) {
	switch up := lab.ListHeld(); {
	case len(args) > 0 && (strings.HasSuffix(args[0], ".yaml") || strings.HasSuffix(args[0], ".yml")):
		_, p, err := ReadLab(env, args[0])
		if err != nil {
			return "", err
		}
		return p.Name, nil
	case len(args) > 0:
		return args[0], nil
	case len(up) == 1:
		return up[0], nil
	case len(up) == 0:
		return "", fmt.Errorf("%w: none; 'olafctl testbed up FILE' brings one up", lab.ErrAbsent)
	default:
		return "", cli.UsageError("several testbeds are up: %s; name one", strings.Join(up, ", "))
	}
}

// completeLabs returns the names of the testbeds that are up, for shell completion.
func completeLabs(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return lab.ListHeld(), cobra.ShellCompDirectiveDefault
}

// onLab adds to a command an argument that selects a testbed. The command then calls do with the name of the testbed.
func onLab(env *cli.Env, cmd *cobra.Command, do func(name string) error) *cobra.Command {
	cmd.Args, cmd.ValidArgsFunction = cobra.MaximumNArgs(1), completeLabs
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		name, err := labName(env, args)
		if err != nil {
			return err
		}
		return do(name)
	}
	return cmd
}

// orRoles makes a command for testbeds of nodes also accept testbeds of roles, for which it calls do.
func orRoles(env *cli.Env, cmd *cobra.Command, do func(context.Context, *roles.Plan, testbed.Access) error) *cobra.Command {
	nodes := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p, access, err := findRoles(env, args)
		if err != nil {
			return err
		}
		if p != nil {
			return do(cmd.Context(), p, access)
		}
		return nodes(cmd, args)
	}
	return cmd
}

func newTestbedDownCmd(env *cli.Env) *cobra.Command {
	force := false
	cmd := orRoles(env, onLab(env, &cobra.Command{
		Use:   "down [NAME|FILE]",
		Short: "Take a testbed down",
		Long: `Take down a testbed and wait until all its namespaces, links and programs are gone. The name may be left out if only one is
up.`,
		Example: "  sudo olafctl testbed down lab",
	}, func(name string) error {
		if err := lab.Down(name); err != nil {
			return err
		}
		_, err := fmt.Fprintf(env.Stdout, "%s is down: none of its namespaces, cables or programs are left\n", name)
		return err
	}), func(ctx context.Context, p *roles.Plan, access testbed.Access) error {
		if err := roles.TakeDown(ctx, p, access, force); err != nil {
			return err
		}
		_, err := fmt.Fprintf(env.Stdout, "%s is down: its generators are stopped, its hosts released\n", p.Name)
		return err
	})
	cmd.Flags().BoolVar(&force, "force", false, "for a testbed with roles: also take down one of another user")
	return cmd
}

func newTestbedEpochCmd(env *cli.Env) *cobra.Command {
	var vectors int
	cmd := onLab(env, &cobra.Command{
		Use:    "epoch [NAME|FILE]",
		Hidden: true,
		Short:  "Print the first epoch that the next job may use",
		Long:   `Print the first epoch of the next job on a running testbed, for --epoch of all its workers. Each call reserves new epochs.`,
		Example: `  E=$(sudo olafctl testbed epoch lab --vectors 20)
  sudo nsenter --net=/proc/PID/fd/8 olafctl testbed worker --epoch $E --vectors 20 …`,
	}, func(name string) error {
		first, err := lab.Epoch(name, vectors)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(env.Stdout, first)
		return err
	})
	cmd.Flags().IntVar(&vectors, "vectors", 1000, "largest number of vectors per worker")
	return cmd
}

func newTestbedShowCmd(env *cli.Env) *cobra.Command {
	var out cli.Format
	cmd := orRoles(env, onLab(env, &cobra.Command{
		Use:   "show [NAME|FILE]",
		Short: "Show a running testbed: namespaces, program counters and faults",
		Long: `Show a running testbed: nodes, addresses, namespaces, program counters, and faults such as a missing interface or a detached
program, which exit with code 3. Enter a namespace by its path: nsenter --net=PATH COMMAND.`,
		Example: "  sudo olafctl testbed show\n  sudo olafctl testbed show lab -o json",
	}, func(name string) error {
		s, err := lab.Show(name)
		if err != nil {
			return err
		}
		if err := printLab(env, out, s); err != nil || len(s.Faults) == 0 {
			return err
		}
		return fmt.Errorf("%w: %s; run 'olafctl testbed down %s' and bring it up again", lab.ErrBroken, s.Faults[0],
			s.Name)
	}), func(ctx context.Context, p *roles.Plan, access testbed.Access) error {
		return showRoles(ctx, env, out, p, true, access)
	})
	cli.AddFormatFlag(cmd, &out, cli.Table, cli.JSON)
	return cmd
}

func printLab(env *cli.Env, out cli.Format, s *lab.State) error {
	if out == cli.JSON {
		return cli.WriteJSON(env.Stdout, struct {
			cli.Head
			*lab.State
		}{cli.Info("testbed"), s})
	}
	fmt.Fprintf(env.Stdout, "%s, run by process %d\n\n", s.Name, s.PID)
	list := cli.Grid{Header: []string{"NODE", "ROLE", "ADDRESS", "NAMESPACE", "COUNTED"}}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		list.Add(n.Name, n.Role, n.Address, n.Path, formatCounts(n.Counts))
	}
	if err := list.Write(env, cli.Table); err != nil {
		return err
	}
	for _, f := range s.Faults {
		fmt.Fprintf(env.Stdout, "BROKEN: %s\n", f)
	}
	for _, r := range s.Remarks {
		fmt.Fprintf(env.Stdout, "WRONG: %s\n", r)
	}
	return nil
}

// formatCounts lists the counters with values other than 0.
func formatCounts(counts map[string]uint64) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[name]; n > 0 {
			words = append(words, fmt.Sprintf("%s %d", name, n))
		}
	}
	return strings.Join(words, ", ")
}

func newTestbedInitCmd(env *cli.Env) *cobra.Command {
	like, force := "paper", false
	cmd := &cobra.Command{
		Use:   "init FILE",
		Short: "Write a commented testbed file to start from",
		Long: `Write a commented testbed file. The examples are: paper (generator, queue and server on three machines), local (three roles
on this machine, without hardware), tree and queue (network namespaces of this machine).`,
		Example: "  olafctl testbed init paper.yaml --like paper",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if args[0] == "-" {
				_, err := env.Stdout.Write(lab.Example(like))
				return err
			}
			if err := cli.RefuseExisting(args[0], force); err != nil {
				return err
			}
			if err := os.WriteFile(args[0], lab.Example(like), 0o644); err != nil {
				return err
			}
			_, err := fmt.Fprintf(env.Stdout, "%s: replace hosts and devices, then 'olafctl testbed plan %[1]s'\n", args[0])
			return err
		},
	}
	cli.Choose(cmd, &like, "like", "example to write", lab.Examples()...)
	cli.AddForce(cmd.Flags(), &force, "an existing file")
	return cmd
}

// CheckReserved returns an error if the plan uses an interface of this machine that another user has reserved.
func CheckReserved(env *cli.Env, p *lab.Plan) error {
	access, err := env.Access()
	if err != nil {
		return err
	}
	return access.CheckInterfaces(p.Interfaces()...)
}
