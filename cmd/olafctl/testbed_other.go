//go:build !linux

package main

import (
	"context"
	"net"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
)

var errLinux = olaf.NewError(olaf.Device, "namespaces and XDP are Linux's: run this there")

func datagrams(context.Context, netip.AddrPort) (*net.UDPConn, error) { return nil, errLinux }

func newTestbedDemoCmd(*cli.Env) *cobra.Command {
	return &cobra.Command{Use: "demo", Short: "Needs Linux", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return errLinux }}
}

func newTestbedDoctorCmd(*cli.Env) *cobra.Command {
	return &cobra.Command{Use: "doctor", Short: "Needs Linux", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return errLinux }}
}

func newTestbedUpCmd(*cli.Env) *cobra.Command {
	return &cobra.Command{Use: "up", Short: "Needs Linux", RunE: func(*cobra.Command, []string) error { return errLinux }}
}
