package live

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Offsets in an untagged Ethernet frame with an IPv4 header of 20 bytes.
const (
	macBytes       = 6
	offEtherType   = 12
	offIP          = 14
	offFragment    = 20
	offProtocol    = 23
	offUDP         = 34
	offUDPLength   = 38
	offUDPChecksum = 40

	ipv4OneHeader   = 0x45
	fragmentOffsets = 0x1fff
)

// buildFilter returns the BPF program that the kernel runs on every packet. The program returns the number of bytes to
// keep. VLAN tags have already been removed at this point, so tagged OLAF frames pass the filter and are counted as
// tagged.
func buildFilter(o Options) []unix.SockFilter {
	keep := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: uint32(o.SnapBytes)}
	if o.All {
		return []unix.SockFilter{keep}
	}
	const load, is = unix.BPF_LD | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	return []unix.SockFilter{
		{Code: load | unix.BPF_H, K: offEtherType},
		{Code: is, Jf: 8, K: unix.ETH_P_IP},
		{Code: load | unix.BPF_B, K: offProtocol},
		{Code: is, Jf: 6, K: unix.IPPROTO_UDP},
		{Code: load | unix.BPF_H, K: offFragment},
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jt: 4, K: fragmentOffsets},
		{Code: unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH, K: offIP}, // length of the IPv4 header
		{Code: unix.BPF_LD | unix.BPF_IND | unix.BPF_H, K: offIP + 2},
		{Code: is, Jf: 1, K: uint32(o.Port)},
		keep,
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
}

// finishChecksum completes the UDP checksum of a frame sent by a program on this host. The operating system leaves this
// to the network card, and until then the field contains only the sum of the pseudo header. Frames other than plain UDP
// are not changed.
func finishChecksum(b []byte) {
	if len(b) < offUDP+8 || binary.BigEndian.Uint16(b[offEtherType:]) != unix.ETH_P_IP || b[offIP] != ipv4OneHeader ||
		b[offProtocol] != unix.IPPROTO_UDP {
		return
	}
	end := offUDP + int(binary.BigEndian.Uint16(b[offUDPLength:]))
	if end > len(b) {
		return
	}
	sum := uint32(0)
	for i := offUDP; i < end-1; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	if (end-offUDP)%2 != 0 {
		sum += uint32(b[end-1]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	if sum = ^sum & 0xffff; sum == 0 {
		sum = 0xffff // 0 would mean that there is no checksum
	}
	binary.BigEndian.PutUint16(b[offUDPChecksum:], uint16(sum))
}

// restoreTag inserts the VLAN tag that the kernel removed. b has vlanBytes of free space before the frame. The returned
// frame occupies all of b.
func restoreTag(b []byte, tpid, tci uint16) []byte {
	copy(b, b[vlanBytes:vlanBytes+2*macBytes])
	binary.BigEndian.PutUint16(b[2*macBytes:], tpid)
	binary.BigEndian.PutUint16(b[2*macBytes+2:], tci)
	return b
}
