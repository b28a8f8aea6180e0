//go:build linux

// Package livetest provides tests with real network interfaces and sends frames on them. The interfaces are in a
// network namespace that ends with the test. Tests are skipped if the kernel does not permit this, for example without
// root.
package livetest

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/olafctl/olaf"
)

// EnterNamespace moves the test's goroutine to a thread with a new network namespace. The thread and the namespace end
// with the goroutine.
func EnterNamespace(t testing.TB) {
	t.Helper()
	runtime.LockOSThread() // never unlocked: no other goroutine may use the thread
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		t.Skipf("this needs root and network namespaces; unshare: %v", err)
	}
	// Keep interfaces silent until a test sends: no neighbour discovery. A kernel without IPv6 has no such file.
	_ = os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
}

// SetUp enables an interface.
func SetUp(t testing.TB, name string) { t.Helper(); setFlag(t, name, unix.IFF_UP, 0) }

// SetDown disables an interface.
func SetDown(t testing.TB, name string) { t.Helper(); setFlag(t, name, 0, unix.IFF_UP) }

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

// newAttribute returns a netlink attribute, which may contain nested attributes.
func newAttribute(kind uint16, values ...[]byte) []byte {
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

// AddVeth creates a pair of connected interfaces and enables both.
func AddVeth(t testing.TB, a, b string) {
	t.Helper()
	body := make([]byte, unix.SizeofIfInfomsg)
	peer := newAttribute(1 /* VETH_INFO_PEER */, body, newAttribute(unix.IFLA_IFNAME, []byte(b+"\x00")))
	sendNetlink(t, unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL, body, newAttribute(unix.IFLA_IFNAME,
		[]byte(a+"\x00")),
		newAttribute(unix.IFLA_LINKINFO, newAttribute(unix.IFLA_INFO_KIND, []byte("veth")),
			newAttribute(unix.IFLA_INFO_DATA, peer)))
	SetUp(t, a)
	SetUp(t, b)
}

// RemoveLink deletes an interface.
func RemoveLink(t testing.TB, name string) {
	t.Helper()
	body := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(body[4:], uint32(indexOf(t, name)))
	sendNetlink(t, unix.RTM_DELLINK, 0, body)
}

func indexOf(t testing.TB, name string) int {
	t.Helper()
	i, err := net.InterfaceByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return i.Index
}

// sendNetlink sends one request and waits for the acknowledgement.
func sendNetlink(t testing.TB, kind, flags uint16, parts ...[]byte) {
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

// Transmitter sends raw frames on an interface.
type Transmitter struct {
	fd    int
	to    unix.SockaddrLinklayer
	frame []byte
}

// NewSender returns a transmitter for the interface. It stays open until the test ends and can be used from any thread.
func NewSender(t testing.TB, name string) *Transmitter {
	t.Helper()
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	// A new interface's queue drops packets until the kernel has set it up.
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1); err != nil {
		t.Fatal(err)
	}
	return &Transmitter{fd, unix.SockaddrLinklayer{Ifindex: indexOf(t, name)}, make([]byte, olaf.MaxFrame)}
}

// Send sends one Ethernet frame.
func (tx *Transmitter) Send(t testing.TB, frame []byte) {
	t.Helper()
	if err := unix.Sendto(tx.fd, frame, 0, &tx.to); err != nil {
		t.Fatal(err)
	}
}

// Addresses contains the addresses in all frames that Update sends.
var Addresses = olaf.Addresses{
	SrcMAC: [6]byte{2, 0, 0, 0, 0, 1}, DstMAC: [6]byte{2, 0, 0, 0, 0, 2},
	SrcIP: [4]byte{10, 0, 0, 1}, DstIP: [4]byte{10, 0, 0, 2}, SrcPort: 20301,
}

// Update sends an update with 48 lanes and returns it.
func (tx *Transmitter) Update(t testing.TB, worker olaf.WorkerID, seq uint32) olaf.Update {
	t.Helper()
	u := olaf.Update{Cluster: 3, Worker: worker, Seq: seq, Count: 1, GenNS: 1000 * uint64(seq), Reward: -5, Lanes: 48}
	n, err := olaf.EncodeUpdate(tx.frame, &Addresses, &u, nil)
	if err != nil {
		t.Fatal(err)
	}
	tx.Send(t, tx.frame[:n])
	return u
}
