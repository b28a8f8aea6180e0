package pcivm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// QEMU's messages to an emulated device: a header of 16 bytes (command, padding, length of the data), then the data.
const (
	syncMemory  = 0 // the guest's memory, as descriptors attached to the message; not answered
	answerKind  = 1
	configWrite = 2
	configRead  = 3
	barWrite    = 4
	barRead     = 5
	setIRQ      = 6 // two event descriptors; not answered
	headBytes   = 16
	mostBytes   = 1 << 12
)

// access is one access of the guest to a function.
type access struct {
	config, write bool
	addr          uint64 // address in the configuration space or on the bus
	value         uint64
	size          int
}

// socketPair returns a connection and the file of its other end, which QEMU inherits or receives.
func socketPair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return conn.(*net.UnixConn), theirs, nil
}

// serveFunction answers QEMU's messages for one function until QEMU closes it, which is not an error. The kernel drops
// file descriptors sent with the bytes, because the card does no DMA and has no interrupts.
func serveFunction(conn *net.UnixConn, answer func(access) uint64) error {
	defer conn.Close()
	buffer := make([]byte, mostBytes)
	for {
		if _, err := io.ReadFull(conn, buffer[:headBytes]); err != nil {
			return ignoreEnd(err)
		}
		kind, n := binary.LittleEndian.Uint32(buffer), binary.LittleEndian.Uint64(buffer[8:])
		if n > mostBytes-headBytes {
			return fmt.Errorf("QEMU sent a message of %d bytes", n)
		}
		data := buffer[headBytes : headBytes+n]
		if _, err := io.ReadFull(conn, data); err != nil {
			return ignoreEnd(err)
		}
		if kind == syncMemory || kind == setIRQ {
			continue
		}
		var value uint64
		if a, ok := parseAccess(kind, data); ok {
			value = answer(a)
		}
		if _, err := conn.Write(appendAnswer(nil, value)); err != nil {
			return ignoreEnd(err)
		}
	}
}

// parseAccess returns false for messages other than accesses, such as a reset of the machine.
func parseAccess(kind uint32, data []byte) (a access, ok bool) {
	switch {
	case (kind == configWrite || kind == configRead) && len(data) >= 12:
		a.addr = uint64(binary.LittleEndian.Uint32(data))
		a.value = uint64(binary.LittleEndian.Uint32(data[4:]))
		a.size = int(binary.LittleEndian.Uint32(data[8:]))
	case (kind == barWrite || kind == barRead) && len(data) >= 20:
		a.addr, a.value = binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint64(data[8:])
		a.size = int(binary.LittleEndian.Uint32(data[16:]))
	default:
		return a, false
	}
	a.config = kind == configWrite || kind == configRead
	a.write = kind == configWrite || kind == barWrite
	return a, true
}

func appendAnswer(b []byte, value uint64) []byte {
	b = binary.LittleEndian.AppendUint32(b, answerKind)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint64(b, 8)
	return binary.LittleEndian.AppendUint64(b, value)
}

// ignoreEnd returns nil for errors of a connection that either side has closed.
func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) {
		return nil
	}
	return err
}
