package live

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// errControl is returned if the kernel passed an invalid list of control messages.
var errControl = errors.New("malformed control messages beside a packet")

// control contains the metadata that the kernel passes with a packet.
type control struct {
	kernelNS   int64 // 0 if there is no stamp
	hardwareNS int64
	wire       int // the packet's length before it was cut, without a VLAN tag; 0 if unknown
	status     uint32
	tci, tpid  uint16
}

// parseControl parses the control messages of one packet and skips unknown ones.
func parseControl(b []byte) (control, error) {
	var c control
	for len(b) > 0 {
		if len(b) < unix.CmsgLen(0) {
			return control{}, errControl
		}
		header, data, rest, err := unix.ParseOneSocketControlMessage(b)
		if err != nil {
			return control{}, errControl
		}
		b = rest
		switch {
		case header.Level == unix.SOL_SOCKET && header.Type == unix.SCM_TIMESTAMPING:
			err = c.parseStamps(data)
		case header.Level == unix.SOL_PACKET && header.Type == unix.PACKET_AUXDATA:
			err = c.parseAuxData(data)
		}
		if err != nil {
			return control{}, err
		}
	}
	return c, nil
}

// parseStamps parses three times in seconds and nanoseconds: the kernel's timestamp, an unused one, and the network
// card's.
func (c *control) parseStamps(b []byte) error {
	var err error
	if c.kernelNS, err = stampNS(b, 0); err != nil {
		return err
	}
	c.hardwareNS, err = stampNS(b, 2)
	return err
}

// stampNS returns the i-th of the three times in b, in ns. The words in b have the machine's word size.
func stampNS(b []byte, i int) (int64, error) {
	var sec, nsec int64
	switch len(b) {
	case 3 * 16:
		sec, nsec = int64(binary.NativeEndian.Uint64(b[16*i:])), int64(binary.NativeEndian.Uint64(b[16*i+8:]))
	case 3 * 8:
		sec, nsec = int64(int32(binary.NativeEndian.Uint32(b[8*i:]))), int64(int32(binary.NativeEndian.Uint32(b[8*i+4:])))
	default:
		return 0, errControl
	}
	const second, lastSecond = 1_000_000_000, 9_223_372_035 // the last second whose ns fit in 64 bits
	if sec < 0 || sec > lastSecond || nsec < 0 || nsec >= second {
		return 0, errControl
	}
	return sec*second + nsec, nil
}

// parseAuxData parses a struct tpacket_auxdata, which contains the status, the length, the captured length, two
// offsets, the VLAN TCI and the TPID.
func (c *control) parseAuxData(b []byte) error {
	if len(b) < 20 {
		return errControl
	}
	length := binary.NativeEndian.Uint32(b[4:])
	if length > maxWire {
		return errControl
	}
	c.status, c.wire = binary.NativeEndian.Uint32(b), int(length)
	if c.status&unix.TP_STATUS_VLAN_VALID != 0 {
		c.tci, c.tpid = binary.NativeEndian.Uint16(b[16:]), unix.ETH_P_8021Q
	}
	if c.tpid != 0 && c.status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
		c.tpid = binary.NativeEndian.Uint16(b[18:])
	}
	return nil
}

// maxWire is a length in bytes that no packet exceeds. The kernel joins TCP segments into packets of up to half a MiB.
const maxWire = 1 << 24
