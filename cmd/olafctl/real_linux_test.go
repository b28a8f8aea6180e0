package main

import (
	"slices"

	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/xdp"
)

// canReal says whether this process may make namespaces and load programs.
func canReal() bool {
	return netlab.Missing(slices.Concat(netlab.NamespaceRights, netlab.PacketRights, xdp.LoadRights)...) == nil
}
