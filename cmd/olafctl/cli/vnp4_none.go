//go:build !vnp4 || !linux

package cli

import (
	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/p4ctl/agent"
)

// cardDriver is empty in the common build, because loading a shared object would make the program depend on the
// system's loader and C library. Build with -tags vnp4 for a card's host.
type cardDriver struct{ blocks [2]string }

// addFlags adds the driver flags of the other build, which this build rejects with an explanation.
func (c *cardDriver) addFlags(cmd *cobra.Command) {
	for i, name := range []string{"vnp4-1", "vnp4-2"} {
		cmd.Flags().StringVar(&c.blocks[i], name, "", "driver of a table block; needs a build with -tags vnp4")
		if err := cmd.Flags().MarkHidden(name); err != nil {
			panic(err) // the flag was added above
		}
	}
}

// AddDriverCommand does nothing in this build.
func AddDriverCommand(*cobra.Command) {}

func (c *cardDriver) openBackend(*Env) (func(testbed.CardTables) (agent.Backend, func() error, error), error) {
	if c.blocks != [2]string{} {
		return nil, UsageError("--vnp4-1, --vnp4-2: this olafctl was built without the tables' driver; on Linux, go " +
			"build -tags vnp4 ./cmd/olafctl")
	}
	return nil, nil
}
