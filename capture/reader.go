package capture

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// maxPacket is the longest packet that is believed; jumbo frames have 9,036 bytes, tcpdump's limit is the same.
const maxPacket = 262144

// bufferBytes are read or written at once.
const bufferBytes = 1 << 16

// Reader reads a pcap or pcapng file, compressed with gzip or not, packet by packet. It tells the format by the file's
// first bytes.
type Reader struct {
	name    string
	closer  io.Closer
	next    func() ([]byte, gopacket.CaptureInfo, error)
	link    layers.LinkType
	dropped map[int]int64 // by interface, within one section
	earlier int64         // drops of earlier sections
	number  int
	last    int64
	failed  error
}

// Open opens the file at path. Errors are those of os.Open and of NewReader.
func Open(path string) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r, err := NewReader(f, path)
	if err != nil {
		f.Close()
		return nil, err
	}
	r.closer = f
	return r, nil
}

// NewReader reads the header of a capture; name stands for it in errors, which are *Error.
func NewReader(src io.Reader, name string) (*Reader, error) {
	r := &Reader{name: name, dropped: make(map[int]int64)}
	in := bufio.NewReaderSize(src, bufferBytes)
	if magic, _ := in.Peek(2); len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, r.wrap(err)
		}
		in = bufio.NewReaderSize(z, bufferBytes)
	}
	magic, err := in.Peek(4)
	if err != nil && len(magic) == 0 && errors.Is(err, io.EOF) {
		return nil, &Error{name, 0, ErrFormat, "the file is empty"}
	}
	if len(magic) < 4 {
		return nil, r.wrap(io.ErrUnexpectedEOF)
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

func (r *Reader) openClassic(in io.Reader) error {
	p, err := pcapgo.NewReader(in)
	if err != nil {
		return r.wrap(err)
	}
	// The library drops the upper 16 bits, which tell about an FCS.
	if r.link = p.LinkType(); r.link != layers.LinkTypeEthernet {
		return r.wrongLink()
	}
	r.next = p.ZeroCopyReadPacketData
	return nil
}

func (r *Reader) openNg(in io.Reader) error {
	p, err := pcapgo.NewNgReader(in, pcapgo.NgReaderOptions{
		WantMixedLinkType: true,
		StatisticsCallback: func(i int, s pcapgo.NgInterfaceStatistics) {
			if s.PacketsDropped != pcapgo.NgNoValue64 {
				r.dropped[i] = int64(s.PacketsDropped) // a later block replaces an earlier one
			}
		},
		SectionEndCallback: func([]pcapgo.NgInterface, pcapgo.NgSectionInfo) {
			for i, n := range r.dropped {
				r.earlier += n
				delete(r.dropped, i)
			}
		},
	})
	if err != nil {
		return r.wrap(err)
	}
	r.next = func() ([]byte, gopacket.CaptureInfo, error) {
		data, ci, err := p.ZeroCopyReadPacketData()
		if err == nil {
			r.link, _ = ci.AncillaryData[0].(layers.LinkType) // of the packet's interface
		}
		return data, ci, err
	}
	r.link = layers.LinkTypeEthernet
	return nil
}

// Name is what the capture is called in errors.
func (r *Reader) Name() string { return r.name }

// Dropped is how many packets the capture says it lost, as far as it was read.
func (r *Reader) Dropped() int64 {
	n := r.earlier
	for _, d := range r.dropped {
		n += d
	}
	return n
}

// Close closes the file of a Reader that Open made.
func (r *Reader) Close() error {
	if r.closer == nil {
		return nil
	}
	return r.closer.Close()
}

// Next reads the next packet into p. After the last one it returns io.EOF. Other errors are *Error and final.
func (r *Reader) Next(p *Packet) error {
	if r.failed != nil {
		return r.failed
	}
	r.failed = r.read(p)
	return r.failed
}

func (r *Reader) read(p *Packet) error {
	data, ci, err := r.next()
	if err == io.EOF && len(data) == 0 {
		return io.EOF
	}
	r.number++
	if err != nil {
		return r.wrap(err)
	}
	at := ci.Timestamp.UnixNano()
	switch {
	case r.link != layers.LinkTypeEthernet:
		return r.wrongLink()
	case len(data) > maxPacket || ci.Length > maxPacket:
		return &Error{r.name, r.number, ErrFormat, fmt.Sprintf("it claims %d bytes, more than any frame has; the file is damaged", max(len(data), ci.Length))}
	case len(data) > ci.Length:
		return &Error{r.name, r.number, ErrFormat, fmt.Sprintf("%d bytes were kept of a packet of %d; the file is damaged", len(data), ci.Length)}
	case ci.Timestamp.IsZero():
		return &Error{r.name, r.number, ErrTime, "a pcapng simple packet has no time; capture with dumpcap or tcpdump"}
	case ci.Timestamp.Unix() < 0 || ci.Timestamp.Year() > 2261: // 2262 is where ns in 64 bits end
		return &Error{r.name, r.number, ErrTime, "it lies outside the years 1970 to 2261; the file is damaged"}
	case at < r.last:
		return &Error{r.name, r.number, ErrTimeBackwards, fmt.Sprintf("%d ns before its predecessor; sort the file with reordercap", r.last-at)}
	}
	r.last = at
	*p = Packet{Number: r.number, UnixNS: at, Data: data, Wire: ci.Length}
	return nil
}

func (r *Reader) wrongLink() error {
	return &Error{r.name, r.number, ErrLink, fmt.Sprintf("its link type is %v; capture on one Ethernet interface, not on \"any\"", r.link)}
}

// wrap sorts the errors of the libraries into kinds.
func (r *Reader) wrap(err error) error {
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
