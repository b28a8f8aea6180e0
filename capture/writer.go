package capture

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/olafctl/olaf"
)

// Format is a capture file format. Both formats use timestamps in nanoseconds.
type Format uint8

// The formats.
const (
	PCAPNG Format = iota
	PCAP
)

// FormatOf returns the format for a file name. It is PCAP for the extension .pcap and PCAPNG for all others.
func FormatOf(path string) Format {
	if strings.EqualFold(filepath.Ext(path), ".pcap") {
		return PCAP
	}
	return PCAPNG
}

// Interface describes in a pcapng file the interface from which the packets were captured.
type Interface struct {
	Name      string
	Comment   string // capture comment; may be empty
	Filter    string // in tcpdump's syntax; may be empty
	SnapBytes int    // packets were cut to this length
	// ClockErrorNS bounds the difference between the stamps' clock and the workers' clock; nil if unknown. A pcapng
	// file stores it in a comment on the interface's first packet.
	ClockErrorNS *int64
}

// queueOutput describes the point between a queue and its receiver, which is not a real interface. It contains no
// operating system or hardware, because the same run must produce the same bytes on every machine.
var queueOutput = Interface{Name: "olaf", SnapBytes: int(olaf.MaxFrame)}

// Writer writes frames to a capture. The same frames always produce the same bytes. It is not safe for concurrent use.
type Writer struct {
	format  Format
	buf     *bufio.Writer
	block   []byte // the last block
	origin  int64
	packets uint64
	written []uint64 // packets per interface
	from    []Interface
	dropped uint64
	last    int64
	frame   []byte
}

// NewWriter writes the header of a capture in the given format. The times passed to the writer are on the run clock.
// originNS is the start of the run clock in ns since 1970. If it is 0, the file contains run clock times.
func NewWriter(w io.Writer, format Format, originNS int64) (*Writer, error) {
	return newWriter(w, format, originNS, queueOutput)
}

// newWriter writes the header of a capture from one or several interfaces. The pcap format supports only one interface.
func newWriter(w io.Writer, format Format, originNS int64, from ...Interface) (*Writer, error) {
	out := &Writer{format: format, buf: bufio.NewWriterSize(w, bufferBytes), origin: originNS,
		frame: make([]byte, olaf.MaxFrame), written: make([]uint64, len(from)), from: from}
	var head []byte
	if format == PCAP {
		head = appendClassicHeader(nil, from[0].SnapBytes)
	} else {
		head = appendSection(nil)
		for i := range from {
			head = appendInterface(head, &from[i])
		}
	}
	_, err := w.Write(head) // at once, so that a full disk is noticed before the first packet
	return out, err
}

// write writes a block and keeps its memory for the next one.
func (w *Writer) write(block []byte) error {
	w.block = block[:0]
	_, err := w.buf.Write(block)
	return err
}

// WriteFrame writes a frame whose last bit was received at the given time.
func (w *Writer) WriteFrame(at olaf.Time, frame []byte) error {
	return w.writePacket(0, w.origin+at.NS(), frame, len(frame), "")
}

// WritePacket writes a captured packet with the packet's own time, which does not depend on the origin.
func (w *Writer) WritePacket(p *Packet) error {
	return w.writePacket(p.Interface, p.UnixNS, p.Data, p.Wire, p.Comment)
}

// SetDropped sets the number of lost packets that a pcapng file reports at its end. The default is 0.
func (w *Writer) SetDropped(n int64) { w.dropped = uint64(n) }

// WriteUpdate encodes and writes an update. If lanes is nil, all lanes are written as zeros.
func (w *Writer) WriteUpdate(at olaf.Time, addr *olaf.Addresses, u *olaf.Update, lanes []int32) error {
	n, err := olaf.EncodeUpdate(w.frame, addr, u, lanes)
	if err != nil {
		return err
	}
	return w.writePacket(0, w.origin+at.NS(), w.frame[:n], n, "")
}

// WriteAck encodes and writes an ACK. If lanes is nil, all lanes are written as zeros.
func (w *Writer) WriteAck(at olaf.Time, addr *olaf.Addresses, u *olaf.Update, status olaf.QueueStatus,
	lanes []int32) error {
	n, err := olaf.EncodeAck(w.frame, addr, u, status, lanes)
	if err != nil {
		return err
	}
	return w.writePacket(0, w.origin+at.NS(), w.frame[:n], n, "")
}

func (w *Writer) writePacket(from int, unixNS int64, captured []byte, wire int, comment string) error {
	switch {
	case len(captured) > wire:
		return fmt.Errorf("%d bytes were kept of a packet of %d", len(captured), wire)
	case w.format == PCAPNG && from >= len(w.from):
		return fmt.Errorf("a packet belongs to interface %d, but the capture describes only %d", from, len(w.from))
	}
	w.packets++
	w.last = unixNS
	var comments []string
	if comment != "" {
		comments = append(comments, comment)
	}
	if from < len(w.written) {
		if e := w.from[from].ClockErrorNS; e != nil && w.written[from] == 0 {
			comments = append(comments, clockClaim{*e, unixNS}.String())
		}
		w.written[from]++
	}
	if w.format == PCAP {
		return w.write(appendClassicPacket(w.block, unixNS, captured, wire))
	}
	return w.write(appendPacket(w.block, from, unixNS, captured, wire, comments))
}

// Packets returns the number of packets written.
func (w *Writer) Packets() uint64 { return w.packets }

// PacketsOf returns the number of packets written for the interface with the given index.
func (w *Writer) PacketsOf(from int) uint64 { return w.written[from] }

// Finish writes the end of the capture and flushes the buffer. In a pcapng file, the end contains the number of dropped
// packets and the number of packets received at each interface.
func (w *Writer) Finish() error {
	for i, n := range w.written {
		if w.format == PCAP {
			break // the format has no place for counts
		}
		dropped := uint64(0)
		if i == 0 {
			dropped = w.dropped
		}
		if err := w.write(appendStatistics(w.block, i, w.last, n+dropped, dropped)); err != nil {
			return err
		}
	}
	return w.buf.Flush()
}

// File is a Writer that writes to a file. The file appears under its name only when it is complete.
type File struct {
	*Writer
	pending *renameio.PendingFile
	path    string
	force   bool
}

// Create prepares the file at path, in the format that its name selects. It does not change an existing file. If there
// is one and force is not set, Create returns an error that matches ErrExists.
func Create(path string, force bool, originNS int64) (*File, error) {
	return createFile(path, force, originNS, queueOutput)
}

// CreateFrom is like Create for packets that were captured from one interface or, for a pcapng file, from several
// interfaces.
func CreateFrom(path string, force bool, from ...Interface) (*File, error) {
	return createFile(path, force, 0, from...)
}

func createFile(path string, force bool, originNS int64, from ...Interface) (*File, error) {
	if err := checkAbsent(path, force); err != nil {
		return nil, err
	}
	folder := filepath.Dir(path)
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s can't be written: the folder %s does not exist: %w", path, folder, fs.ErrNotExist)
	}
	// An agent's folder is removed with all of its files, even if the agent was killed.
	pending, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o644), renameio.WithTempDir(folder))
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", path, dropPath(err))
	}
	w, err := newWriter(pending, FormatOf(path), originNS, from...)
	if err != nil {
		return nil, errors.Join(err, pending.Cleanup())
	}
	return &File{w, pending, path, force}, nil
}

// WritePacket writes a packet. Errors include the name of the file.
func (f *File) WritePacket(p *Packet) error { return f.wrapError(f.Writer.WritePacket(p)) }

// WriteUpdate writes an update. Errors include the name of the file.
func (f *File) WriteUpdate(at olaf.Time, addr *olaf.Addresses, u *olaf.Update, lanes []int32) error {
	return f.wrapError(f.Writer.WriteUpdate(at, addr, u, lanes))
}

// wrapError adds the name of the file to an error.
func (f *File) wrapError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write %s: %w", f.path, dropPath(err))
}

// dropPath removes the temporary file's name from an error.
func dropPath(err error) error {
	var (
		at    *fs.PathError
		moved *os.LinkError
	)
	switch {
	case errors.As(err, &at):
		return at.Err
	case errors.As(err, &moved):
		return moved.Err
	}
	return err
}

// Commit completes the file and moves it to its path. If another file has appeared there, Commit stores this file next
// to it and returns an error that matches ErrExists and contains the new path. It leaves no temporary file behind, even
// if it fails.
func (f *File) Commit() error { return errors.Join(f.place(), f.pending.Cleanup()) }

func (f *File) place() error {
	if err := f.Finish(); err != nil {
		return f.wrapError(err)
	}
	if f.force {
		return f.wrapError(f.pending.CloseAtomicallyReplace())
	}
	if err := f.pending.Sync(); err != nil {
		return f.wrapError(err)
	}
	switch err := os.Link(f.pending.Name(), f.path); { // unlike a rename, a link never replaces a file
	case err == nil:
		return nil
	case checkAbsent(f.path, false) == nil: // the file system does not support hard links
		return f.wrapError(f.pending.CloseAtomicallyReplace())
	}
	err := fmt.Errorf("%s %w since a moment ago", f.path, ErrExists)
	other, linked := f.linkBeside()
	if linked == nil {
		err = fmt.Errorf("%w; this one is now %s", err, other)
	}
	return errors.Join(err, linked)
}

// linkBeside links the file to an unused name in the same folder as its path and returns that name.
func (f *File) linkBeside() (path string, err error) {
	ending := filepath.Ext(f.path)
	for n := 2; n < 100; n++ {
		path = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(f.path, ending), n, ending)
		if err = os.Link(f.pending.Name(), path); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return path, err
}

// Abandon removes the unfinished file. An existing file at its path is not changed. After Commit, Abandon does nothing.
func (f *File) Abandon() error { return f.pending.Cleanup() }

func checkAbsent(path string, force bool) error {
	if force {
		return nil
	}
	_, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%s %w; add --force to replace it, or choose another name", path, ErrExists)
}
