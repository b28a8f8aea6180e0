//go:build !vnp4 || !linux

package main

import (
	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/p4ctl/agent"
)

// cardDriver is left out of the common build: loading a shared object makes the program depend on the system's loader and
// C library, and whoever has no card needs neither. Build with -tags vnp4 for a card's host.
type cardDriver struct{}

func (*cardDriver) add(*cobra.Command, *environment) {}

func (*cardDriver) backend(*environment) (func(*experiments.CardTables) (agent.Backend, func() error, error), error) {
	return nil, nil
}
