package xdp

import (
	"github.com/olafctl/olaf/fpga/netlab"
	"golang.org/x/sys/unix"
)

// LoadRights lists the capabilities needed to load our programs. The kernel requires them in the initial user
// namespace.
var LoadRights = []netlab.Right{
	{Name: "CAP_BPF", Number: unix.CAP_BPF, For: "load programs and create maps", Global: true},
	{Name: "CAP_NET_ADMIN", Number: unix.CAP_NET_ADMIN, For: "load and attach programs for network interfaces",
		Global: true},
	{Name: "CAP_PERFMON", Number: unix.CAP_PERFMON, For: "let the verifier accept arithmetic on pointers", Global: true},
}
