package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
)

// ConfirmFlag is the flag --yes of commands that change a device that others may be using.
type ConfirmFlag struct{ yes bool }

func (f *ConfirmFlag) Add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.yes, "yes", false, "write without asking for confirmation")
}

// Confirm asks on the terminal whether to continue, and returns an error for any answer other than yes. It does not ask
// if --yes is set or if there is no terminal, as in scripts.
func (f *ConfirmFlag) Confirm(ctx context.Context, env *Env, what string) error {
	if f.yes || !env.Asks {
		return nil
	}
	fmt.Fprintf(env.Stderr, "%s? [y/N] ", what)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(env.Stdin).ReadString('\n') // the end of the input counts as no
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return &Exit{olaf.Interrupted, errors.New("interrupted; nothing was written")}
	case said := <-answer:
		if said == "y" || said == "yes" {
			return nil
		}
		return &Exit{olaf.Failed, errors.New("nothing was written; answer y, or give --yes")}
	}
}
