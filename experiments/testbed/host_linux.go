package testbed

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// EndWithParent makes the kernel kill a program when the thread that starts it ends, also if this process is killed. The
// caller must start the program on a locked thread, and keep that thread until the program has ended.
func EndWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// sendFrame sends a raw frame through an interface of this host.
func sendFrame(at *net.Interface, frame []byte) (err error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = errors.Join(unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: at.Index}), unix.Close(fd))
	}
	switch {
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("send a frame at interface %s: %w; this takes root or CAP_NET_RAW (for a host of a file: 'sudo: true')", at.Name, err)
	case err != nil:
		return fmt.Errorf("send a frame at interface %s: %w", at.Name, err)
	}
	return nil
}
