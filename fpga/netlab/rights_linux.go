package netlab

import (
	"fmt"

	"github.com/olafctl/olaf"
	"golang.org/x/sys/unix"
)

// ErrRights reports that the process lacks a capability.
var ErrRights = olaf.NewError(olaf.Device, "a right is missing")

// Right is a Linux capability and its purpose.
type Right struct {
	Name   string // CAP_BPF
	Number int    // kernel's number
	For    string
}

// Rights for creating namespaces, and for sending raw frames.
var (
	NamespaceRights = []Right{
		{"CAP_SYS_ADMIN", unix.CAP_SYS_ADMIN, "make network namespaces"},
		{"CAP_NET_ADMIN", unix.CAP_NET_ADMIN, "make network interfaces"},
	}
	PacketRights = []Right{{"CAP_NET_RAW", unix.CAP_NET_RAW, "send and capture frames"}}
)

// CheckRights returns an error for each of the rights that the process lacks, which matches ErrRights and includes
// advice. It returns nil if none is missing.
func CheckRights(rights ...Right) error {
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
			missing = append(missing, fmt.Errorf(
				"%w: %s, to %s; run as root, or give the program what it lacks with the command that 'olafctl "+
					"testbed doctor' prints", ErrRights, r.Name, r.For))
		}
	}
	return olaf.ListErrors(missing)
}
