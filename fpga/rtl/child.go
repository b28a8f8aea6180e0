package rtl

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
)

// protocol is the version of the protocol between this package and the simulation (docs/notes/rtl.md, Protocol).
const protocol = 1

// child is the process that runs the simulation. Any failure ends the process, and all later calls return the same
// failure.
type child struct {
	cmd      *exec.Cmd
	to, from *os.File
	in       *bufio.Reader
	consumed int  // number of bytes of in that were already returned
	stderr   tail // last part of standard error
	patience time.Duration
	listener listener
	failed   error

	cycle  int64 // device time
	clocks int64 // clocks of the logic, including clocks in which no device time passes
}

// listener receives the reports that the simulation makes while time passes.
type listener interface {
	// worker returns the identity of the sender with the given address.
	worker(source netip.Addr) (olaf.ClusterID, olaf.WorkerID, bool)
	// report is called with a record: its kind, and its content, which is valid only during the call.
	report(kind byte, record []byte)
}

// clocksPerSecond is a lower limit for the simulation's speed. Deadlines are calculated from it.
const clocksPerSecond = 20_000

// startChild starts the simulation program and checks the version of its protocol. The error matches fpga.ErrGone.
func startChild(program string, patience time.Duration, listen listener) (*child, error) {
	c := &child{patience: patience, listener: listen}
	ours, theirs, err := makePipes()
	if err != nil {
		return nil, err
	}
	c.cmd = exec.Command(program)
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = theirs[0], theirs[1], &c.stderr
	c.from, c.to = ours[0], ours[1]
	err = c.cmd.Start()
	closeAll(theirs[:])
	if err != nil {
		closeAll(ours[:])
		return nil, fmt.Errorf("rtl: %w: the simulation does not start: %w", fpga.ErrGone, err)
	}
	c.in = bufio.NewReaderSize(c.from, 1<<16)
	answer, err := c.request([]byte{'h'}, 12, 0)
	if err == nil && binary.LittleEndian.Uint32(answer) != protocol {
		err = c.failWith(fmt.Errorf("it speaks version %d of the protocol, not %d", binary.LittleEndian.Uint32(answer),
			protocol))
	}
	if err != nil {
		return nil, err
	}
	c.cycle = int64(binary.LittleEndian.Uint64(answer[4:]))
	return c, nil
}

// makePipes creates two pipes. It returns the parent's and the child's ends, one of each for reading and one for
// writing.
func makePipes() (ours, theirs [2]*os.File, err error) {
	if theirs[0], ours[1], err = os.Pipe(); err != nil {
		return ours, theirs, fmt.Errorf("rtl: %w", err)
	}
	if ours[0], theirs[1], err = os.Pipe(); err != nil {
		closeAll([]*os.File{theirs[0], ours[1]})
		return ours, theirs, fmt.Errorf("rtl: %w", err)
	}
	return ours, theirs, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// tail is a writer that keeps only the end of a program's output.
type tail struct{ bytes.Buffer }

const tailBytes = 4096

func (t *tail) Write(p []byte) (int, error) {
	if t.Len() > tailBytes {
		t.Reset()
	}
	return t.Buffer.Write(p[max(0, len(p)-tailBytes):])
}

// errClosed is the error for accesses to a closed card.
var errClosed = fmt.Errorf("rtl: closed: %w", fpga.ErrGone)

// close ends the child by closing its input.
func (c *child) close() error {
	if c.failed == nil {
		c.failed = errClosed
		c.stop()
	}
	return nil
}

// endTime is the time that the child has to end before it is killed.
const endTime = 2 * time.Second

func (c *child) stop() {
	_ = c.to.Close()
	timer := time.AfterFunc(endTime, func() { _ = c.cmd.Process.Kill() })
	_ = c.cmd.Wait()
	timer.Stop()
	_ = c.from.Close()
}

// failWith ends the child after an error and returns the error for this and all later calls.
func (c *child) failWith(err error) error {
	if c.failed != nil {
		return c.failed
	}
	_ = c.cmd.Process.Kill()
	c.stop()
	what := err.Error()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		what = "it kept silent for too long"
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE):
		what = "it ended: " + c.cmd.ProcessState.String()
	}
	if output := bytes.TrimSpace(c.stderr.Bytes()); len(output) > 0 {
		what += ": " + string(output[bytes.LastIndexByte(output, '\n')+1:])
	}
	c.failed = fmt.Errorf("rtl: %w: the simulation failed: %s", fpga.ErrGone, what)
	return c.failed
}

// sendCommand sends a command to the child. The deadline for the answer is the child's patience plus the time for the
// given number of clock cycles.
func (c *child) sendCommand(command []byte, clocks int64) error {
	if c.failed != nil {
		return c.failed
	}
	c.setDeadline(clocks)
	if _, err := c.to.Write(command); err != nil {
		return c.failWith(err)
	}
	return nil
}

// setDeadline sets the deadline for the next answer. It allows time for the given number of clock cycles.
func (c *child) setDeadline(clocks int64) {
	until := time.Now().Add(c.patience + time.Duration(clocks)*time.Second/clocksPerSecond)
	_ = c.from.SetReadDeadline(until)
	_ = c.to.SetWriteDeadline(until)
}

// nextBytes returns the next n bytes of the child's output. They are valid until the next call.
func (c *child) nextBytes(n int) ([]byte, error) {
	_, _ = c.in.Discard(c.consumed) // the bytes are buffered, so Discard cannot fail
	c.consumed = 0
	return c.peekMore(n)
}

// peekMore returns the bytes that the last nextBytes returned, extended to n bytes.
func (c *child) peekMore(n int) ([]byte, error) {
	b, err := c.in.Peek(n)
	if err != nil {
		return nil, c.failWith(err)
	}
	c.consumed = n
	return b, nil
}

// request sends a command and returns the answer, which must have n bytes.
func (c *child) request(command []byte, n int, clocks int64) ([]byte, error) {
	if err := c.sendCommand(command, clocks); err != nil {
		return nil, err
	}
	return c.nextBytes(n)
}

func (c *child) read(addr uint32) (response uint8, value uint32, err error) {
	b, err := c.request(binary.LittleEndian.AppendUint32([]byte{'r'}, addr), 5, 0)
	if err != nil {
		return 0, 0, err
	}
	return b[0], binary.LittleEndian.Uint32(b[1:]), nil
}

func (c *child) write(addr, value uint32) (response uint8, err error) {
	command := binary.LittleEndian.AppendUint32([]byte{'w'}, addr)
	b, err := c.request(binary.LittleEndian.AppendUint32(command, value), 1, 1<<22)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

func (c *child) burst(addr uint32, words []uint32) (response uint8, err error) {
	command := make([]byte, 0, 9+4*len(words))
	command = binary.LittleEndian.AppendUint32(append(command, 'b'), addr)
	command = binary.LittleEndian.AppendUint32(command, uint32(len(words)))
	for _, w := range words {
		command = binary.LittleEndian.AppendUint32(command, w)
	}
	b, err := c.request(command, 1, 8*int64(len(words)))
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

// setReports selects the reports that the child makes while time passes, as a bit mask. Frames are always reported.
func (c *child) setReports(what uint32) error {
	return c.sendCommand(binary.LittleEndian.AppendUint32([]byte{'m'}, what), 0)
}

// runCycles simulates a number of cycles and passes the child's reports to the listener. If untilRest is set, it stops
// early when nothing is in flight.
func (c *child) runCycles(cycles int64, untilRest bool) error {
	command := binary.LittleEndian.AppendUint64([]byte{'g'}, uint64(cycles))
	command = append(command, 0)
	if untilRest {
		command[len(command)-1] = 1
	}
	if err := c.sendCommand(command, cycles); err != nil {
		return err
	}
	end, err := c.readRecords('g', 16, cycles)
	if err != nil {
		return err
	}
	c.cycle = int64(binary.LittleEndian.Uint64(end))
	c.clocks = int64(binary.LittleEndian.Uint64(end[8:]))
	return nil
}

// readRecords handles records until the record of kind last, which ends a command and has the given size. It returns
// this record.
func (c *child) readRecords(last byte, size int, clocks int64) ([]byte, error) {
	for {
		kind, err := c.nextBytes(1)
		if err != nil {
			return nil, err
		}
		switch kind := kind[0]; kind {
		case last:
			return c.nextBytes(size)
		case 'a':
			source, err := c.nextBytes(4)
			if err != nil {
				return nil, err
			}
			if err := c.answerWorker([4]byte(source), clocks); err != nil {
				return nil, err
			}
		default:
			if err := c.passRecord(kind); err != nil {
				return nil, err
			}
		}
	}
}

// records contains the length of each kind of record, including the kind itself. The record of a frame ends with the
// number of bytes that follow it.
var records = [256]int{'d': 10, 'l': 18, 'x': 3, 'c': 1, 'f': 30, 'w': 11, 'y': 11}

// passRecord reads a record of the given kind and passes it to the listener.
func (c *child) passRecord(kind byte) error {
	n := records[kind]
	if n == 0 {
		return c.failWith(fmt.Errorf("it sent a record of kind %q", kind))
	}
	record, err := c.peekMore(n)
	if err == nil && (kind == 'f' || kind == 'w' || kind == 'y') {
		record, err = c.peekMore(n + int(binary.LittleEndian.Uint16(record[n-2:])))
	}
	if err == nil {
		c.listener.report(kind, record[1:])
	}
	return err
}

// answerWorker answers the child's request to look up a sender's address.
func (c *child) answerWorker(source [4]byte, clocks int64) error {
	cluster, worker, known := c.listener.worker(netip.AddrFrom4(source))
	command := make([]byte, 1, 5)
	if known {
		command[0] = 1
	}
	command = binary.LittleEndian.AppendUint16(command, uint16(cluster))
	return c.sendCommand(binary.LittleEndian.AppendUint16(command, uint16(worker)), clocks)
}
