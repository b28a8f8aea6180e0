package netlab

import (
	"errors"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMissingRights gives up rights on a thread that ends with the test. It checks that each missing right is listed
// once, with advice.
func TestMissingRights(t *testing.T) {
	told, stays := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread is not reused
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&header, &none[0]); err != nil {
			stays <- err
			return
		}
		told <- CheckRights(append(NamespaceRights, append(PacketRights, NamespaceRights...)...)...)
	}()
	var err error
	select {
	case err = <-told:
	case err := <-stays:
		t.Skip("this process may not give up its capabilities:", err)
	}
	if err == nil {
		t.Fatal("nothing is missing")
	}
	const want = "rights are missing: CAP_SYS_ADMIN (to make network namespaces), CAP_NET_ADMIN (to make network interfaces), " +
		"CAP_NET_RAW (to send and capture frames); run as root, or give the program what it lacks with the command that " +
		"'olafctl testbed doctor' prints"
	if !errors.Is(err, ErrRights) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
