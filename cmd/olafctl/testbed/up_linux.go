package testbed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/experiments/testbed/roles"
	"github.com/olafctl/olaf/fpga/netlab"
)

// unnamedLab is the default name of a testbed.
const unnamedLab = "lab"

// standing is the prefix of the line that the process holding a testbed prints when the testbed is up.
const standing = lab.HeldPrefix

// upFlags are the flags of testbed up.
type upFlags struct {
	foreground, replace, quiet bool
	name                       string
	lasts                      olaf.Duration // duration of the reservation, for a testbed of roles
	note                       string
	card                       cli.CardFlags
}

func newTestbedUpCmd(env *cli.Env) *cobra.Command {
	f := &upFlags{lasts: 12 * 3600 * olaf.Second}
	cmd := &cobra.Command{
		Use:   "up FILE",
		Short: "Bring up a testbed from a file: namespaces, links, kernel programs, workers",
		Long: `Bring up a testbed from a file: a background process creates namespaces, links, routes and programs and owns them through
file descriptors, so nothing is left when it ends. A testbed that already matches the file is not changed; one that differs
is refused without --replace. For a testbed with roles, up examines and reserves all hosts, and a process on each holds its
devices open for other commands. It needs root or the rights that 'olafctl testbed doctor' lists.`,
		Example: `  sudo olafctl testbed up lab.yaml
  echo 'tree: {workers: 8, children: 4}' | sudo olafctl testbed up -
  sudo olafctl testbed up lab.yaml --foreground    # run in this terminal until Ctrl-C`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.bringUp(cmd, env, args[0]) },
	}
	cmd.Flags().BoolVar(&f.foreground, "foreground", false, "stay in the foreground until interrupted")
	cmd.Flags().BoolVar(&f.replace, "replace", false, "replace a running testbed of this name that differs")
	cmd.Flags().StringVar(&f.name, "name", "", "name of the testbed, overriding the file")
	cmd.Flags().Var(&f.lasts, "for", "for a testbed with roles: duration of the reservation")
	cmd.Flags().StringVar(&f.note, "note", "", "for a testbed with roles: text shown to others")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "do not show the plan")
	f.card.AddDriver(cmd)
	return cmd
}

// bringUp brings up the testbed in a file. The testbed is held by this process or by another process.
func (f *upFlags) bringUp(cmd *cobra.Command, env *cli.Env, path string) error {
	ctx := cmd.Context()
	text, err := readFileOrInput(env, path)
	if err != nil {
		return err
	}
	file, err := lab.Parse(path, text)
	if err != nil {
		return err
	}
	switch {
	case f.name != "":
		file.Name = f.name
	case file.Name == "" && path == "-":
		file.Name = unnamedLab
	}
	if p, err := roles.ResolveHosts(file); p != nil || err != nil {
		if err != nil {
			return err
		}
		return f.upRoles(cmd, env, p)
	}
	p, err := file.Resolve()
	if err != nil {
		return err
	}
	if !f.quiet {
		if err := printPlan(env.Stderr, p); err != nil {
			return err
		}
	}
	if err := CheckReserved(env, p); err != nil {
		return err
	}
	if there, err := makeRoom(p, f.replace); there || err != nil {
		return err
	}
	if err := netlab.CheckRights(lab.Rights()...); err != nil {
		return err
	}
	if f.foreground {
		return holdLab(ctx, env, p)
	}
	return startHolder(ctx, env, p.Name, text)
}

// upRoles brings up a testbed of roles and shows its hosts.
func (f *upFlags) upRoles(cmd *cobra.Command, env *cli.Env, p *roles.Plan) error {
	access, err := f.card.AccessCard(cmd, env, "testbed:"+p.Name)
	if err != nil {
		return err
	}
	if !f.quiet {
		fmt.Fprintf(env.Stderr, "%s: %s\n%s\n", p.Name, olaf.Plural(len(p.Hosts), "host"), strings.Join(p.Lines(), "\n"))
	}
	lasts := time.Duration(f.lasts / olaf.Nanosecond)
	if lasts <= 0 || lasts > longestReservation {
		return cli.UsageError("--for %v: use more than 0s and at most one week", f.lasts)
	}
	all, links, err := roles.BringUp(cmd.Context(), p, f.note, lasts, access)
	if err != nil {
		return err
	}
	if err := errors.Join(printHosts(env, cli.Table, p, all, nil), printLinks(env, links)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "%s%s, reserved until %s; use it as -d testbed:%[2]s\n", standing, p.Name,
		testbed.FormatNear(env.Now().Add(lasts), env.Now()))
	return err
}

// makeRoom reports whether the planned testbed is already up. If another testbed with its name is up, makeRoom takes it
// down if replace is set, or else returns an error.
func makeRoom(p *lab.Plan, replace bool) (there bool, err error) {
	s, err := lab.Show(p.Name)
	switch {
	case errors.Is(err, lab.ErrAbsent):
		return false, nil
	case err != nil:
		return false, err
	case slices.Equal(s.Lines, p.Lines()) && len(s.Faults) == 0:
		return true, nil
	case replace:
		return false, lab.Down(p.Name)
	case len(s.Faults) > 0:
		return false, fmt.Errorf("%w: %s; use --replace to recreate it", lab.ErrBroken, s.Faults[0])
	}
	return false, fmt.Errorf("%w and differs: %s; --replace takes it down first, or give the file another name",
		lab.ErrExists, p.Name)
}

// holdLab brings up a testbed and keeps it up in this process.
func holdLab(ctx context.Context, env *cli.Env, p *lab.Plan) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	h, err := lab.NewHolder(p, lab.Options{Command: func(args ...string) *exec.Cmd {
		return exec.Command(self,
			args...)
	}})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(env.Stdout, "%s%s, run by process %d\n", standing, p.Name, os.Getpid()); err != nil {
		return errors.Join(err, h.Close())
	}
	return h.Hold(ctx)
}

// startHolder starts this program in a new session to hold the testbed, and waits until the testbed is up.
func startHolder(ctx context.Context, env *cli.Env, name string, text []byte) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	holder := exec.Command(self, "testbed", "up", "--foreground", "--quiet", "--name", name, "-")
	line, err := lab.StartHolder(ctx, holder, text)
	switch {
	case ctx.Err() != nil && err != nil:
		return cli.MarkInterrupted(ctx.Err())
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	}
	_, err = fmt.Fprint(env.Stdout, line)
	return err
}

// newTestbedHoldCmd returns the hidden command that holds one host's part of a testbed. The command up starts it on
// each host.
func newTestbedHoldCmd(env *cli.Env) *cobra.Command {
	card := new(cli.CardFlags)
	hold := &cobra.Command{
		Use: "hold", Hidden: true, Args: cobra.NoArgs,
		Short: "Run this host's part of a testbed, which is described on standard input",
		RunE: func(cmd *cobra.Command, _ []string) error {
			part := new(roles.HostPart)
			if err := json.NewDecoder(env.Stdin).Decode(part); err != nil {
				return cli.UsageError("read the part of a testbed from standard input: %v", err)
			}
			access, err := card.AccessCard(cmd, env, "pci:")
			if err != nil {
				return err
			}
			return roles.HoldPart(cmd.Context(), part, &access, func() error {
				_, err := fmt.Fprintf(env.Stdout, "%s%s on host %s\n", lab.HeldPrefix, part.Testbed, part.Host)
				return err
			})
		},
	}
	card.AddDriver(hold)
	return hold
}
