//go:build vnp4 && linux

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/p4ctl/vnp4"
	"github.com/olafctl/olaf/p4ctl/vnp4/driver"
)

// driverCommand is the name of the hidden command that runs in the child process.
const driverCommand = "vnp4-driver"

// cardDriver selects the vendor's driver for each table block, in the form LIBRARY:SYMBOL.
type cardDriver struct{ blocks [2]string }

func (c *cardDriver) addFlags(cmd *cobra.Command) {
	for i := range c.blocks {
		cmd.Flags().StringVar(&c.blocks[i], fmt.Sprintf("vnp4-%d", i+1), "",
			fmt.Sprintf("driver of block VNP4-%d as LIBRARY:SYMBOL: the shared object built with the bitstream, and "+
				"its configuration", i+1))
	}
}

// AddDriverCommand adds the hidden driver command below 'serve'. Every command that needs the driver starts it.
func AddDriverCommand(serve *cobra.Command) {
	serve.AddCommand(&cobra.Command{Use: driverCommand, Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return driver.Main() }})
}

// openBackend returns a function that starts the driver in a child process. It returns nil if the driver flags are not
// given.
func (c *cardDriver) openBackend(env *Env) (func(testbed.CardTables) (agent.Backend, func() error, error), error) {
	switch {
	case c.blocks == [2]string{}:
		return nil, nil
	case c.blocks[0] == "" || c.blocks[1] == "":
		return nil, UsageError("--vnp4-1 and --vnp4-2 go together")
	}
	program, err := env.Executable()
	if err != nil {
		return nil, err
	}
	o := vnp4.Options{Command: func() *exec.Cmd { return exec.Command(program, "serve", driverCommand) }}
	for i, text := range c.blocks {
		library, symbol, ok := strings.Cut(text, ":")
		if !ok {
			return nil, UsageError("--vnp4-%d: %q is not LIBRARY:SYMBOL", i+1, text)
		}
		// A name without a slash is looked up by the system's loader.
		if _, err := os.Stat(library); strings.Contains(library, "/") && err != nil {
			return nil, UsageError("--vnp4-%d: %v", i+1, err)
		}
		o.Instances = append(o.Instances, vnp4.Instance{Block: fmt.Sprintf("vnp4_%d", i+1), Library: library,
			Config: symbol,
			Base:   pcie.TablesBase + uint32(i)*pcie.TablesBytes/2, Size: pcie.TablesBytes / 2})
	}
	return func(card testbed.CardTables) (agent.Backend, func() error, error) {
		o.Registers, o.Replication = card, card
		b, err := vnp4.New(o)
		if err != nil {
			return nil, nil, &Exit{olaf.Device, err}
		}
		return b, b.Close, nil
	}, nil
}
