package live

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// softwareStamps contains the flags that request the arrival time from the kernel.
const softwareStamps = unix.SOF_TIMESTAMPING_RX_SOFTWARE | unix.SOF_TIMESTAMPING_SOFTWARE

// enableStamps enables timestamps. It always enables those of the kernel, and those of the network card if they are
// wanted and available.
func (s *Socket) enableStamps(want Stamps) error {
	s.info.Stamps = Kernel
	flags := softwareStamps
	if want != Kernel {
		err := s.stampInHardware()
		switch {
		case err == nil:
			s.info.Stamps = Hardware
			flags |= unix.SOF_TIMESTAMPING_RX_HARDWARE | unix.SOF_TIMESTAMPING_RAW_HARDWARE
		case want == Hardware:
			return fmt.Errorf("%w: hardware stamps on %s: %w; use --stamps kernel", ErrUnsupported, s.info.Interface, err)
		default:
			s.addNote("the kernel stamps the packets, not the network card: %v", err)
		}
	}
	if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, flags); err != nil {
		return fmt.Errorf("ask for stamps: %w", err)
	}
	awaitStamps()
	return nil
}

// stampInHardware makes the network card add a timestamp to every packet. If this fails, the error gives the reason.
func (s *Socket) stampInHardware() error {
	const need = unix.SOF_TIMESTAMPING_RX_HARDWARE | unix.SOF_TIMESTAMPING_RAW_HARDWARE
	can, err := unix.IoctlGetEthtoolTsInfo(s.fd, s.info.Interface)
	switch {
	case err != nil:
		return fmt.Errorf("the driver does not say what it can stamp (%w)", err)
	case can.So_timestamping&need != need:
		return errors.New("it has no hardware stamps")
	case can.Rx_filters&(1<<unix.HWTSTAMP_FILTER_ALL) == 0:
		return errors.New("it stamps only some packets in hardware")
	}
	now, err := unix.IoctlGetHwTstamp(s.fd, s.info.Interface)
	if err != nil {
		now = &unix.HwTstampConfig{}
	}
	if now.Rx_filter == unix.HWTSTAMP_FILTER_ALL {
		return nil
	}
	before := *now
	now.Rx_filter = unix.HWTSTAMP_FILTER_ALL
	if err := unix.IoctlSetHwTstamp(s.fd, s.info.Interface, now); err != nil {
		return fmt.Errorf("the driver refuses to stamp every packet (%w; it needs CAP_NET_ADMIN)", err)
	}
	s.restore = &before
	return nil
}

// awaitStamps waits up to a tenth of a second until the kernel adds timestamps to arriving packets. The first socket
// that requests timestamps enables them for the whole system, with a delay. awaitStamps detects this by sending
// datagrams to itself. If they do not arrive, for example because there is no loopback interface, it gives up, and
// Stamped counts the packets that arrived too early.
func awaitStamps() {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, softwareStamps) != nil ||
		unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}) != nil {
		return
	}
	self, err := unix.Getsockname(fd)
	if err != nil {
		return
	}
	for range 100 {
		if stamped, err := probeStamp(fd, self); stamped || err != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

var errSilent = errors.New("the datagram did not arrive")

// probeStamp sends a datagram to its own socket and reports whether it arrived with a timestamp.
func probeStamp(fd int, self unix.Sockaddr) (bool, error) {
	if err := unix.Sendto(fd, []byte{0}, 0, self); err != nil {
		return false, err
	}
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if n, err := unix.Poll(poll, 10); n == 0 || err != nil {
		return false, errors.Join(errSilent, err)
	}
	var data [1]byte
	var controls [128]byte
	_, n, _, _, err := unix.Recvmsg(fd, data[:], controls[:], unix.MSG_DONTWAIT)
	if err != nil {
		return false, err
	}
	c, err := parseControl(controls[:n])
	return c.kernelNS != 0, err
}
