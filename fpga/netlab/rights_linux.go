package netlab

import (
	"fmt"

	"github.com/olafctl/olaf"
	"golang.org/x/sys/unix"
)

// ErrRights is the kind of a capability that the process has not.
var ErrRights = olaf.NewError(olaf.Device, "a right is missing")

// Right is a capability of Linux and what it is needed for.
type Right struct {
	Name   string // CAP_BPF
	Number int    // as the kernel numbers it
	For    string
}

// What the kernel asks for before namespaces can be made, and frames of one's own making sent.
var (
	NamespaceRights = []Right{
		{"CAP_SYS_ADMIN", unix.CAP_SYS_ADMIN, "make network namespaces"},
		{"CAP_NET_ADMIN", unix.CAP_NET_ADMIN, "make network interfaces"},
	}
	PacketRights = []Right{{"CAP_NET_RAW", unix.CAP_NET_RAW, "send and capture frames"}}
)

// Missing says which of some rights the process lacks, an error each, which matches ErrRights and says what to do; nil when
// it has them all.
func Missing(rights ...Right) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return fmt.Errorf("which rights the process has: %w", err)
	}
	var missing []error
	asked := map[int]bool{}
	for _, r := range rights {
		if asked[r.Number] {
			continue
		}
		asked[r.Number] = true
		if sets[r.Number/32].Effective>>(r.Number%32)&1 == 0 {
			missing = append(missing, fmt.Errorf("%w: %s, to %s; run as root, or give the program what it lacks with the command that 'olafctl testbed doctor' prints", ErrRights, r.Name, r.For))
		}
	}
	return olaf.Listed(missing)
}
