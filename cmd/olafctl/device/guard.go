package device

import (
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/fpga/pcie"
)

// guardCommand is the name of the hidden command that stops a card's generator if the card's owner is killed.
const guardCommand = "guard"

// CommandGuard returns the command that guards a card on this host.
func CommandGuard(bdf string) *exec.Cmd {
	return &exec.Cmd{
		Path: "/proc/self/exe", // also if the program's file was replaced
		Args: []string{"olafctl", "device", guardCommand, bdf},
		Env:  append(os.Environ(), "OLAFCTL_CONFIG="+os.DevNull),
	}
}

func newGuardCmd(env *cli.Env) *cobra.Command {
	return &cobra.Command{Use: guardCommand, Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return pcie.Guard(env.Bus, args[0], env.Stdin) }}
}
