//go:build !linux

package testbed

import (
	"context"
	"net"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
)

func openDatagrams(context.Context, netip.AddrPort) (*net.UDPConn, error) { return nil, cli.ErrLinux }

func openFrames(string) (wireConn, error) { return nil, cli.ErrLinux }

func newSwitchCmd(*cli.Env) *cobra.Command {
	return &cobra.Command{Use: "switch", Short: "Needs Linux", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return cli.ErrLinux }}
}

func newTestbedDemoCmd(*cli.Env) *cobra.Command {
	return &cobra.Command{Use: "demo", Short: "Needs Linux", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return cli.ErrLinux }}
}

func newTestbedDoctorCmd(*cli.Env) *cobra.Command {
	return &cobra.Command{Use: "doctor", Short: "Needs Linux", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return cli.ErrLinux }}
}

func newTestbedHoldCmd(*cli.Env) *cobra.Command {
	return &cobra.Command{Use: "hold", Short: "Needs Linux", Hidden: true,
		RunE: func(*cobra.Command, []string) error { return cli.ErrLinux }}
}

func newTestbedUpCmd(*cli.Env) *cobra.Command {
	return &cobra.Command{Use: "up", Short: "Needs Linux",
		RunE: func(*cobra.Command, []string) error { return cli.ErrLinux }}
}
