package netlab

import (
	"fmt"
	"strings"

	"github.com/olafctl/olaf"
	"golang.org/x/sys/unix"
)

// ErrRights is the error for a missing capability of the process.
var ErrRights = olaf.NewError(olaf.Device, "rights are missing")

// Right is a Linux capability and the purpose for which it is needed.
type Right struct {
	Name   string // such as CAP_BPF
	Number int    // number in the kernel
	For    string
	// Global marks a right that the kernel grants only in the first user namespace.
	Global bool
}

// Rights for creating namespaces and for sending raw frames.
var (
	NamespaceRights = []Right{
		{Name: "CAP_SYS_ADMIN", Number: unix.CAP_SYS_ADMIN, For: "make network namespaces"},
		{Name: "CAP_NET_ADMIN", Number: unix.CAP_NET_ADMIN, For: "make network interfaces"},
	}
	PacketRights = []Right{{Name: "CAP_NET_RAW", Number: unix.CAP_NET_RAW, For: "send and capture frames"}}
)

// CheckRights returns an error that lists the rights that the process lacks, in one line with advice, or nil if it has
// all of them. The error matches ErrRights.
func CheckRights(rights ...Right) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return fmt.Errorf("which rights the process has: %w", err)
	}
	var missing []string
	listed := map[int]bool{}
	advice := "run as root, or give the program what it lacks with the command that 'olafctl testbed doctor' prints"
	for _, r := range rights {
		has := sets[r.Number/32].Effective>>(r.Number%32)&1 != 0
		switch {
		case listed[r.Number] || has && !(r.Global && InUserNamespace()):
			continue
		case has:
			advice = UserNamespaceAdvice
		}
		listed[r.Number] = true
		missing = append(missing, fmt.Sprintf("%s (to %s)", r.Name, r.For))
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s; %s", ErrRights, strings.Join(missing, ", "), advice)
}

// UserNamespaceAdvice is the advice printed for a right that a user namespace does not grant.
const UserNamespaceAdvice = "the kernel does not grant it in a user namespace; run as root outside of one"

// firstUserNamespace is the inode number of the initial user namespace (PROC_USER_INIT_INO in Linux's
// include/linux/proc_ns.h).
const firstUserNamespace = 0xEFFFFFFD

// InUserNamespace reports whether the process is in a user namespace other than the initial one, as in a rootless
// container.
func InUserNamespace() bool {
	var s unix.Stat_t
	return unix.Stat("/proc/self/ns/user", &s) == nil && s.Ino != firstUserNamespace
}
