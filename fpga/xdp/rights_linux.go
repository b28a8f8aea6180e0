package xdp

import (
	"errors"
	"fmt"

	"github.com/olafctl/olaf"
	"golang.org/x/sys/unix"
)

// ErrRights is the kind of a capability that the process has not.
var ErrRights = olaf.NewError(olaf.Device, "a right is missing")

// Right is a capability of Linux and what it is needed for.
type Right struct {
	Name   string // CAP_BPF
	number int
	For    string
}

// What the kernel asks for before it lets programs of ours run.
var (
	LoadRights = []Right{
		{"CAP_BPF", unix.CAP_BPF, "load programs and make maps"},
		{"CAP_NET_ADMIN", unix.CAP_NET_ADMIN, "load programs for network interfaces, and attach them"},
		{"CAP_PERFMON", unix.CAP_PERFMON, "let the verifier accept arithmetic on pointers"},
	}
	NamespaceRights = []Right{{"CAP_SYS_ADMIN", unix.CAP_SYS_ADMIN, "make network namespaces"}}
	PacketRights    = []Right{{"CAP_NET_RAW", unix.CAP_NET_RAW, "send and capture frames"}}
)

// Missing says which of some rights the process lacks, an error each, which matches ErrRights and says what to do; nil when
// it has them all.
func Missing(rights ...Right) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return fmt.Errorf("xdp: which rights the process has: %w", err)
	}
	var missing []error
	for _, r := range rights {
		if sets[r.number/32].Effective>>(r.number%32)&1 == 0 {
			missing = append(missing, fmt.Errorf("%w: %s, to %s; run as root, or give it to the program with setcap", ErrRights, r.Name, r.For))
		}
	}
	return errors.Join(missing...)
}
