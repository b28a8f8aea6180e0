package capture

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/olafctl/olaf"
)

// maxPacket is the length in bytes of the longest packet that is accepted. It is the same as tcpdump's limit. For
// comparison, a jumbo frame is up to 9,036 bytes long.
const maxPacket = 262144

// bufferBytes is the size of read and write buffers in bytes.
const bufferBytes = 1 << 16

// Reader reads a pcap or pcapng file packet by packet. The file may be compressed with gzip. The reader detects the
// format from the first bytes.
type Reader struct {
	name   string
	closer io.Closer
	next   func() (rawPacket, error)
	ng     *ngReader // nil for the classic format
	grain  olaf.Duration
	number int
	last   int64
	failed error
}

// rawPacket is a packet as it is described in a file. Its time is a number of ticks of the given resolution.
type rawPacket struct {
	data     []byte
	wire     int
	link     linkType
	fcsBytes int // length of the FCS at the end of data, unless cut
	stamps   resolution
	ticks    uint64
	offset   int64 // seconds to add to every stamp
	untimed  bool
	clock    *clockState // of the packet's interface; may be nil
	claim    *clockClaim // may be nil
}

// Open opens the file at path, or standard input if path is "-". It returns the same errors as os.Open and NewReader.
func Open(path string) (*Reader, error) {
	f, name := os.Stdin, "standard input"
	if path != "-" {
		var err error
		if f, err = os.Open(path); err != nil {
			return nil, err
		}
		name = path
	}
	r, err := NewReader(f, name)
	if err != nil {
		f.Close()
		return nil, err
	}
	r.closer = f
	return r, nil
}

// NewReader reads the header of a capture. name is the capture's name in errors, which have type *Error.
func NewReader(src io.Reader, name string) (*Reader, error) {
	r := &Reader{name: name}
	in := bufio.NewReaderSize(src, bufferBytes)
	if magic, _ := in.Peek(2); len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, r.wrapError(err)
		}
		in = bufio.NewReaderSize(z, bufferBytes)
	}
	if err := r.refuseCompressed(in); err != nil {
		return nil, err
	}
	magic, err := in.Peek(4)
	if err != nil && len(magic) == 0 && errors.Is(err, io.EOF) {
		return nil, &Error{name, 0, ErrFormat, "the file is empty"}
	}
	if len(magic) < 4 {
		return nil, r.wrapError(io.ErrUnexpectedEOF)
	}
	if binary.BigEndian.Uint32(magic) == 0x0a0d0d0a {
		err = r.openNg(in)
	} else {
		err = r.openClassic(in)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// compressors lists the first bytes of compressed files that users may pass by mistake, with the commands that
// decompress them.
var compressors = []struct{ magic, command string }{
	{"\xfd7zXZ", "xz -dc"}, {"\x28\xb5\x2f\xfd", "zstd -dc"}, {"\x04\x22\x4d\x18", "lz4 -dc"}, {"BZh", "bzip2 -dc"},
}

// refuseCompressed returns an error that names the program for decompressing the file, or nil if the file is not
// compressed.
func (r *Reader) refuseCompressed(in *bufio.Reader) error {
	head, _ := in.Peek(4)
	for _, c := range compressors {
		if strings.HasPrefix(string(head), c.magic[:min(len(c.magic), len(head))]) && len(head) >= 3 {
			advice := fmt.Sprintf("it is compressed; run '%s %s | olafctl replay -'", c.command, r.name)
			return &Error{r.name, 0, ErrFormat, advice}
		}
	}
	return nil
}

func (r *Reader) openClassic(in io.Reader) error {
	classic, err := newClassicReader(in)
	if err != nil {
		return r.wrapError(err)
	}
	if classic.form.link != linkEthernet {
		return r.wrongLink(classic.form.link)
	}
	r.next = classic.nextPacket
	return nil
}

func (r *Reader) openNg(in io.Reader) error {
	ng, err := newNgReader(in)
	if err != nil {
		return r.wrapError(err)
	}
	r.ng, r.next = ng, ng.nextPacket
	return nil
}

// Name returns the name of the capture for use in errors.
func (r *Reader) Name() string { return r.name }

// DroppedPackets returns the number of packets that the part of the capture read so far reports as lost, either in
// statistics blocks or in packet options.
func (r *Reader) DroppedPackets() int64 {
	if r.ng == nil {
		return 0
	}
	return r.ng.countDropped()
}

// LinkErrors returns the number of packets read so far that are marked as damaged on the wire.
func (r *Reader) LinkErrors() int64 {
	if r.ng == nil {
		return 0
	}
	return r.ng.faulty
}

// Grain returns the resolution of the timestamps, which is the coarsest among the interfaces with packets so far.
// Events closer together than this have no known order.
func (r *Reader) Grain() olaf.Duration { return r.grain }

// Close closes the file if Open opened it.
func (r *Reader) Close() error {
	if r.closer == nil {
		return nil
	}
	return r.closer.Close()
}

// Next reads the next packet into p. After the last packet, it returns io.EOF. Other errors have type *Error and are
// final.
func (r *Reader) Next(p *Packet) error {
	if r.failed != nil {
		return r.failed
	}
	r.failed = r.readPacket(p)
	return r.failed
}

func (r *Reader) readPacket(p *Packet) error {
	raw, err := r.next()
	if err == io.EOF {
		return io.EOF
	}
	r.number++
	if err != nil {
		return r.wrapError(err)
	}
	refuse := func(kind error, format string, args ...any) error {
		return &Error{r.name, r.number, kind, fmt.Sprintf(format, args...)}
	}
	switch {
	case raw.link != linkEthernet:
		return r.wrongLink(raw.link)
	case len(raw.data) > maxPacket || raw.wire > maxPacket:
		return refuse(ErrFormat, "it claims %d bytes, more than any frame has; the file is damaged",
			max(len(raw.data), raw.wire))
	case len(raw.data) > raw.wire:
		return refuse(ErrFormat, "%d bytes were kept of a packet of %d; the file is damaged", len(raw.data), raw.wire)
	case raw.untimed:
		return refuse(ErrTime, "a pcapng simple packet has no time; capture with dumpcap or tcpdump")
	}
	at, err := raw.unixNS()
	switch {
	case err != nil:
		return refuse(ErrTime, "%v", err)
	case at < r.last:
		return refuse(ErrTimeBackwards, "%d ns before its predecessor; sort the file with reordercap", r.last-at)
	}
	r.last, r.grain = at, max(r.grain, raw.stamps.span())
	if raw.clock != nil {
		raw.clock.note(raw.claim, at)
	}
	raw.removeFCS()
	*p = Packet{Number: r.number, UnixNS: at, Data: raw.data, Wire: raw.wire}
	return nil
}

// maxSeconds is the number of seconds from 1970 to the end of 2261. In 2262, the number of nanoseconds since 1970
// exceeds 64 bits.
var maxSeconds = time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC).Unix() - 1

// unixNS returns the packet's time in ns since 1970.
func (p *rawPacket) unixNS() (int64, error) {
	seconds, ns, ok := p.stamps.split(p.ticks)
	if !ok {
		return 0, fmt.Errorf("its stamps have a resolution of %v, which no clock has; the file is damaged", p.stamps)
	}
	low, high := max(0, -p.offset), maxSeconds-p.offset
	if p.offset > maxSeconds || p.offset < -maxSeconds || seconds > math.MaxInt64 || int64(seconds) < low ||
		int64(seconds) > high {
		return 0, errors.New("it lies outside the years 1970 to 2261; the file is damaged")
	}
	return (int64(seconds)+p.offset)*nsPerSecond + ns, nil
}

// removeFCS removes the frame check sequence, of which a truncated packet may contain only a part. Frames that a host
// itself sends have no frame check sequence, whatever the file states. They can be recognised because their IPv4 packet
// fills the frame.
func (p *rawPacket) removeFCS() {
	if length, ok := ipv4End(p.data); ok && length+p.fcsBytes > p.wire {
		return
	}
	p.wire = max(0, p.wire-p.fcsBytes)
	p.data = p.data[:min(len(p.data), p.wire)]
}

func (r *Reader) wrongLink(link linkType) error {
	return &Error{r.name, r.number, ErrLink,
		fmt.Sprintf("its link type is %v; capture on one Ethernet interface, not on \"any\"", link)}
}

// wrapError converts errors from libraries into errors of this package's kinds.
func (r *Reader) wrapError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		advice := "it ends in the file's header"
		if r.number > 0 {
			advice = "it ends inside this packet, or the packet's length is wrong; stop the capture before copying the file"
		}
		return &Error{r.name, r.number, ErrCut, advice}
	}
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		return &Error{r.name, r.number, err, ""}
	}
	return &Error{r.name, r.number, ErrFormat, err.Error()}
}
