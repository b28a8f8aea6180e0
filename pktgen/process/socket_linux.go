package process

import (
	"cmp"
	"encoding/binary"
	"net"
	"unsafe"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// joinedControl is the length of the control message that describes joined packets.
var joinedControl = unix.CmsgSpace(4)

// addChecksums makes the kernel add checksums to packets. receiveJoined makes it deliver joined packets as one message.
func addChecksums(conn *net.UDPConn) error {
	return setOption(conn, unix.SOL_SOCKET, unix.SO_NO_CHECK, 0)
}
func receiveJoined(conn *net.UDPConn) error { return setOption(conn, unix.SOL_UDP, unix.UDP_GRO, 1) }

// setOption sets an option of the socket.
func setOption(conn *net.UDPConn, level, option, value int) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), level, option, value) })
	return cmp.Or(err, set)
}

// segments returns a control message that sets the length of a segment.
func segments(size int) []byte {
	b := make([]byte, unix.CmsgSpace(2))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	h.Level, h.Type = unix.SOL_UDP, unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(b[unix.CmsgLen(0):], uint16(size))
	return b
}

// joinedSize returns the length of each of the datagrams in a message except the last, or the length of the only
// datagram.
func joinedSize(m *ipv4.Message) int {
	if m.NN >= unix.CmsgLen(4) {
		h, data, _, err := unix.ParseOneSocketControlMessage(m.OOB[:m.NN])
		if size := int(binary.NativeEndian.Uint32(data)); err == nil && h.Level == unix.SOL_UDP && h.Type == unix.UDP_GRO && size > 0 {
			return size
		}
	}
	return max(m.N, 1)
}
