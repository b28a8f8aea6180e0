package testbed

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/roles"
)

// reserveFlags are the flags of testbed reserve.
type reserveFlags struct {
	lasts olaf.Duration
	note  string
	wait  bool
}

// longestReservation is the maximum duration of a reservation. A forgotten testbed becomes available after one week.
const longestReservation = 7 * 24 * time.Hour

func newTestbedReserveCmd(env *cli.Env) *cobra.Command {
	f := &reserveFlags{lasts: 2 * 3600 * olaf.Second}
	cmd := &cobra.Command{
		Use:   "reserve FILE",
		Short: "Reserve all hosts of a testbed, or none, for a time",
		Long: `Reserve the devices and interfaces of a testbed on all its hosts, or on none. Until it ends, or until 'olafctl testbed
release', other people's olafctl commands that would write to them are refused with your name and the end time. Each host's
boot clock measures the time. The files are in /run/lock/olafctl; root can remove them, and other programs ignore them.`,
		Example: `  olafctl testbed reserve paper.yaml --for 2h --note "table 1 runs"
  olafctl testbed reserve paper.yaml --wait`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.reserve(cmd.Context(), env, args[0]) },
	}
	cmd.Flags().Var(&f.lasts, "for", "duration of the reservation")
	cmd.Flags().StringVar(&f.note, "note", "", "text shown to others, such as the purpose")
	cmd.Flags().BoolVar(&f.wait, "wait", false, "wait until all hosts are free")
	return cmd
}

func newTestbedReleaseCmd(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "release FILE",
		Short:   "End your reservation of a testbed",
		Long:    `End your reservation of a testbed on all its hosts.`,
		Example: "  olafctl testbed release paper.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, access, err := readRoles(env, args[0])
			if err != nil {
				return err
			}
			found, err := roles.ReleaseHosts(cmd.Context(), p, access)
			switch {
			case err != nil:
				return err
			case !found:
				return cli.UsageError("you have no reservation of testbed %s", p.Name)
			}
			_, err = fmt.Fprintf(env.Stdout, "%s is released\n", p.Name)
			return err
		},
	}
}

// readRoles reads a testbed file that describes roles.
func readRoles(env *cli.Env, path string) (*roles.Plan, testbed.Access, error) {
	access, err := env.Access()
	if err != nil {
		return nil, access, err
	}
	f, err := parseFile(env, path)
	if err != nil {
		return nil, access, err
	}
	p, err := roles.ResolveHosts(f)
	if p == nil && err == nil {
		_, err = roles.ResolveRoles(f) // returns an error that the file has no roles
	}
	return p, access, err
}

// betweenTries is the interval between attempts to reserve a testbed with --wait.
const betweenTries = time.Second

// waiter returns a function that prints the first conflict and waits until the next attempt. It returns nil if --wait
// is not given.
func (f *reserveFlags) waiter(ctx context.Context, env *cli.Env) func(conflict error) error {
	if !f.wait {
		return nil
	}
	printed := false
	return func(conflict error) error {
		if !printed {
			fmt.Fprintf(env.Stderr, "waiting: %v\n", conflict)
		}
		printed = true
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(betweenTries):
			return nil
		}
	}
}

// reserve reserves a testbed. With --wait, it waits until the testbed is available.
func (f *reserveFlags) reserve(ctx context.Context, env *cli.Env, path string) error {
	lasts := time.Duration(f.lasts / olaf.Nanosecond)
	if lasts <= 0 || lasts > longestReservation {
		return cli.UsageError("--for %v: use more than 0s and at most one week", f.lasts)
	}
	p, access, err := readRoles(env, path)
	if err != nil {
		return err
	}
	if err := roles.ReserveHosts(ctx, p, f.note, lasts, access, f.waiter(ctx, env)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "%s is reserved until %s on %s; other people's olafctl respects this, but root "+
		"can override it\n", p.Name,
		testbed.FormatNear(env.Now().Add(lasts), env.Now()), olaf.Plural(len(p.Hosts), "host"))
	return err
}
