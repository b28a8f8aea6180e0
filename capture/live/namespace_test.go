//go:build linux

package live_test

import (
	"encoding/binary"
	"errors"
	"net"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/olafctl/olaf"
)

// inNamespace moves the test's goroutine, on a thread of its own, into a network namespace that nobody else uses. The
// thread ends with the goroutine, and the namespace with it.
func inNamespace(t testing.TB) {
	t.Helper()
	runtime.LockOSThread() // for good: the thread must not be used again
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		t.Skipf("this needs root and network namespaces; unshare: %v", err)
	}
}

// up and down switch an interface.
func up(t testing.TB, name string)   { t.Helper(); setFlag(t, name, unix.IFF_UP, 0) }
func down(t testing.TB, name string) { t.Helper(); setFlag(t, name, 0, unix.IFF_UP) }

func setFlag(t testing.TB, name string, set, clear uint16) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, request); err != nil {
		t.Fatal(err)
	}
	request.SetUint16(request.Uint16()&^clear | set)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		t.Fatal(err)
	}
}

// attribute is a netlink attribute; its value may be made of others.
func attribute(kind uint16, values ...[]byte) []byte {
	b := make([]byte, unix.SizeofRtAttr)
	for _, v := range values {
		b = append(b, v...)
	}
	binary.NativeEndian.PutUint16(b, uint16(len(b)))
	binary.NativeEndian.PutUint16(b[2:], kind)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// newVeth makes a pair of interfaces that are each other's cable, and switches both on.
func newVeth(t testing.TB, a, b string) {
	t.Helper()
	body := make([]byte, unix.SizeofIfInfomsg)
	peer := attribute(1 /* VETH_INFO_PEER */, body, attribute(unix.IFLA_IFNAME, []byte(b+"\x00")))
	netlink(t, unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL, body, attribute(unix.IFLA_IFNAME, []byte(a+"\x00")),
		attribute(unix.IFLA_LINKINFO, attribute(unix.IFLA_INFO_KIND, []byte("veth")), attribute(unix.IFLA_INFO_DATA, peer)))
	up(t, a)
	up(t, b)
}

// remove deletes an interface.
func remove(t testing.TB, name string) {
	t.Helper()
	body := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(body[4:], uint32(indexOf(t, name)))
	netlink(t, unix.RTM_DELLINK, 0, body)
}

func indexOf(t testing.TB, name string) int {
	t.Helper()
	i, err := net.InterfaceByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return i.Index
}

// netlink sends one request and waits for the kernel's consent.
func netlink(t testing.TB, kind, flags uint16, parts ...[]byte) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	message := make([]byte, unix.NLMSG_HDRLEN)
	for _, p := range parts {
		message = append(message, p...)
	}
	binary.NativeEndian.PutUint32(message, uint32(len(message)))
	binary.NativeEndian.PutUint16(message[4:], kind)
	binary.NativeEndian.PutUint16(message[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK|flags)
	if err := unix.Sendto(fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil || n < unix.NLMSG_HDRLEN+4 {
		t.Fatalf("netlink: %d bytes, %v", n, err)
	}
	if code := -int32(binary.NativeEndian.Uint32(answer[unix.NLMSG_HDRLEN:])); code != 0 {
		if err := unix.Errno(code); errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EPERM) {
			t.Skipf("the kernel makes no such interface: %v", err)
		}
		t.Fatalf("netlink request %d: %v", kind, unix.Errno(code))
	}
}

// transmitter puts frames on an interface as they are.
type transmitter struct {
	fd    int
	to    unix.SockaddrLinklayer
	frame []byte
}

func sender(t testing.TB, name string) *transmitter {
	t.Helper()
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return &transmitter{fd, unix.SockaddrLinklayer{Ifindex: indexOf(t, name)}, make([]byte, olaf.MaxFrame)}
}

func (tx *transmitter) send(t testing.TB, frame []byte) {
	t.Helper()
	if err := unix.Sendto(tx.fd, frame, 0, &tx.to); err != nil {
		t.Fatal(err)
	}
}

var addresses = olaf.Addresses{
	SrcMAC: [6]byte{2, 0, 0, 0, 0, 1}, DstMAC: [6]byte{2, 0, 0, 0, 0, 2},
	SrcIP: [4]byte{10, 0, 0, 1}, DstIP: [4]byte{10, 0, 0, 2}, SrcPort: 20301,
}

// update sends an update of worker 1 and returns it.
func (tx *transmitter) update(t testing.TB, seq uint32) olaf.Update {
	t.Helper()
	u := olaf.Update{Cluster: 3, Worker: 1, Seq: seq, Count: 1, GenNS: 1000 * uint64(seq), Reward: -5, Lanes: 48}
	n, err := olaf.EncodeUpdate(tx.frame, &addresses, &u, nil)
	if err != nil {
		t.Fatal(err)
	}
	tx.send(t, tx.frame[:n])
	return u
}
