package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"
	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
)

// TestUnwrapIsTheNearest checks that unwrapping returns the instant nearest to the arrival with the generation time's
// 48 bits.
func TestUnwrapIsTheNearest(t *testing.T) {
	const wrap = int64(1) << 48
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.Int64Range(0, maxVirtualNS).Draw(t, "at")
		off := rapid.OneOf(rapid.Int64Range(-wrap/2+1, wrap/2-1), rapid.SampledFrom([]int64{0, 1, -1, wrap/2 - 1,
			-wrap/2 + 1, wrap / 4, -wrap / 4, wrap/4 + 1, -wrap/4 - 1})).Draw(t, "off")
		if got := unwrapGeneration(at, uint64(at+off)%olaf.GenModulus); got != at+off {
			t.Fatalf("at %d, made %d later: %d", at, off, got-at)
		}
	})
}

// stamped is a source with one update at each given time, and then an error.
type stamped struct {
	at   []int64
	then error
}

func (s *stamped) Next(p *Packet) error {
	if len(s.at) == 0 {
		return s.then
	}
	frame := make([]byte, olaf.MaxFrame)
	n, err := olaf.EncodeUpdate(frame, addresses(0), update(0, 0), nil)
	*p = Packet{Number: p.Number + 1, UnixNS: s.at[0], Data: frame[:n], Wire: n}
	s.at = s.at[1:]
	return err
}

// TestTimesOfTheRunClock checks the range of packet times for every way to set the origin.
func TestTimesOfTheRunClock(t *testing.T) {
	const wall = int64(1_700_000_000_000_000_000)
	for _, c := range []struct {
		origin int64 // 0 takes it from the first packet
		at     []int64
		want   []int64
		same   bool // the capture's clock is the generator's
	}{
		{0, []int64{0, 1, maxVirtualNS}, []int64{0, 1, maxVirtualNS}, true},
		{0, []int64{5, maxVirtualNS + 1}, []int64{5}, true},
		{0, []int64{maxVirtualNS, 7}, []int64{maxVirtualNS, 7}, true},
		{0, []int64{maxVirtualNS + 1, maxVirtualNS + 2}, []int64{0, 1}, false},
		{0, []int64{wall, wall + 9, wall + maxVirtualNS}, []int64{0, 9, maxVirtualNS}, false},
		{0, []int64{wall, wall + maxVirtualNS + 1}, []int64{0}, false},
		{0, []int64{wall, wall - 1}, []int64{0}, false},
		{wall, []int64{wall, wall + 3}, []int64{0, 3}, true},
		{wall, []int64{wall - 1}, nil, true},
		{wall, []int64{wall + maxVirtualNS + 1}, nil, true},
	} {
		d := NewDecoder(&stamped{c.at, io.EOF})
		if c.origin != 0 {
			d.SetOrigin(c.origin)
		}
		var got []int64
		var a Arrival
		err := d.Next(&a)
		for ; err == nil; err = d.Next(&a) {
			got = append(got, a.At.NS())
			if o := a.Observation(); o.At != a.At || o.Queued != -1 || o.Update != a.Update {
				t.Errorf("%+v of %+v", o, a)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) || errors.Is(err, ErrTime) != (len(got) < len(c.at)) {
			t.Errorf("%v from %d: %v, %v; want %v", c.at, c.origin, got, err, c.want)
		}
		if origin, same := d.Origin(); same != c.same || c.origin != 0 && origin != c.origin {
			t.Errorf("%v from %d: origin %d, the generator's %t", c.at, c.origin, origin, same)
		}
	}
}

// TestErrorNamesOtherSystems checks that for a capture without OLAF frames, the error names the systems whose frames it
// contains.
func TestErrorNamesOtherSystems(t *testing.T) {
	frames := func(names ...string) *Decoder {
		i := -1
		d := NewDecoder(&plain{len(names)})
		d.Others = func(frame []byte, wire int) string {
			if i++; len(frame) != 20 || wire != 60 {
				t.Errorf("asked about %d of %d bytes", len(frame), wire)
			}
			return names[i]
		}
		return d
	}
	for want, d := range map[string]*Decoder{
		"4 packets, 2 of atp, 1 of switchml: only": frames("switchml", "atp", "", "atp"),
		"1 packet, 1 of atp: only":                 frames("atp"),
		"2 packets, mostly ":                       frames("", ""), "it is empty": frames(),
		"1 packet, mostly ": NewDecoder(&plain{1}),
	} {
		var a Arrival
		if err := d.Next(&a); !errors.Is(err, ErrNoOLAF) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

// plain is a source of n frames that belong to no system.
type plain struct{ n int }

func (s *plain) Next(p *Packet) error {
	if s.n--; s.n < 0 {
		return io.EOF
	}
	*p = Packet{Data: make([]byte, 20), Wire: 60}
	return nil
}

// TestOrderMemoryStaysConstant checks that the memory of a window does not grow while many packets pass through it.
func TestOrderMemoryStaysConstant(t *testing.T) {
	o := Order{WindowNS: 10}
	var p Packet
	for i := range int64(10_000) {
		o.Push(&Packet{UnixNS: i, Data: []byte{byte(i)}})
		for o.Pop(&p, false) {
			if p.Data[0] != byte(p.UnixNS) || p.UnixNS != i-10 {
				t.Fatalf("after %d came %+v", i, p)
			}
		}
	}
	if cap(o.waiting) > 64 || len(o.free) > 64 {
		t.Errorf("room for %d packets, %d buffers wait, where 11 packets are held", cap(o.waiting), len(o.free))
	}
}

// full is a writer with room for a fixed number of bytes.
type full struct{ room int }

var errFull = errors.New("no room")

func (f *full) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, errFull
	}
	return len(b), nil
}

// TestFullDiskAtAnyByteIsAnError checks that some step fails if the disk fills up at any byte of a capture, whatever
// was buffered.
func TestFullDiskAtAnyByteIsAnError(t *testing.T) {
	for _, format := range []Format{PCAP, PCAPNG} {
		write := func(out io.Writer) error {
			w, err := newWriter(out, format, 0, Interface{Name: "a", SnapBytes: 100}, Interface{Name: "b", SnapBytes: 100})
			if err != nil {
				return err
			}
			status := olaf.QueueStatus{Slots: 3}
			return errors.Join(w.WriteUpdate(4000, addresses(0), update(0, 1), nil), w.WriteAck(5000, addresses(0),
				update(0, 1), status, nil),
				w.WriteFrame(6000, make([]byte, 100)), w.WritePacket(&Packet{UnixNS: 7, Data: []byte{1}, Wire: 1,
					Comment: "c"}), w.Finish())
		}
		var whole bytes.Buffer
		if err := write(&whole); err != nil {
			t.Fatal(err)
		}
		for room := range whole.Len() {
			if err := write(&full{room}); !errors.Is(err, errFull) {
				t.Fatalf("format %d with room for %d of %d bytes: %v", format, room, whole.Len(), err)
			}
		}
		if err := write(&full{whole.Len()}); err != nil {
			t.Errorf("format %d with room for all: %v", format, err)
		}
	}
}

// TestWriterRejectsInvalidFrames checks that the writer rejects invalid frames and writes nothing.
func TestWriterRejectsInvalidFrames(t *testing.T) {
	w, err := NewWriter(io.Discard, PCAPNG, 0)
	if err != nil {
		t.Fatal(err)
	}
	bad := update(0, 0)
	bad.Lanes = uint16(olaf.MaxLanes) + 1
	for what, err := range map[string]error{"update": w.WriteUpdate(0, addresses(0), bad, nil),
		"ACK": w.WriteAck(0, addresses(0), bad, olaf.QueueStatus{}, nil)} {
		if err == nil {
			t.Errorf("an %s of %d lanes is written", what, bad.Lanes)
		}
	}
	if w.Packets() != 0 || w.PacketsOf(0) != 0 {
		t.Errorf("%d packets", w.Packets())
	}
}

// TestWritersRecordDrops checks the written drop count and packet counts with the library and with the decoder.
func TestWritersRecordDrops(t *testing.T) {
	var b bytes.Buffer
	w, err := newWriter(&b, PCAPNG, 0, Interface{Name: "a", SnapBytes: 100}, Interface{Name: "b", SnapBytes: 100})
	if err != nil {
		t.Fatal(err)
	}
	w.SetDropped(7)
	for i, from := range []int{1, 0, 1} {
		if err := w.WritePacket(&Packet{UnixNS: int64(i), Data: []byte{1}, Wire: 1, Interface: from}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(bytes.NewReader(b.Bytes()), "written")
	if err != nil {
		t.Fatal(err)
	}
	d := NewDecoder(r)
	var a Arrival
	if err := d.Next(&a); !errors.Is(err, ErrNoOLAF) || d.Losses().CaptureDropped != 7 || d.Losses().Packets != 3 {
		t.Errorf("%v, %+v", err, d.Losses())
	}
	got := map[int][2]uint64{}
	others, err := pcapgo.NewNgReader(&b, pcapgo.NgReaderOptions{StatisticsCallback: func(i int,
		s pcapgo.NgInterfaceStatistics) {
		got[i] = [2]uint64{s.PacketsReceived, s.PacketsDropped}
	}})
	for err == nil {
		_, _, err = others.ReadPacketData()
	}
	if err != io.EOF || got[0] != [2]uint64{8, 7} || got[1] != [2]uint64{2, 0} {
		t.Errorf("%v, %v", got, err)
	}
	if w.Packets() != 3 || w.PacketsOf(0) != 1 || w.PacketsOf(1) != 2 {
		t.Errorf("%d packets, %d and %d of the interfaces", w.Packets(), w.PacketsOf(0), w.PacketsOf(1))
	}
}

// TestRecordingOfABrokenSource checks that the source's own error is returned and no further packets are recorded.
func TestRecordingOfABrokenSource(t *testing.T) {
	broken := errors.New("the interface is gone")
	r := Recording{Source: &stamped{[]int64{math.MaxInt32, math.MaxInt32 + 5}, broken}}
	for range 2 {
		if idle, err := r.Take(9); idle || !errors.Is(err, broken) || r.Taken != 2 {
			t.Errorf("idle %t, %v after %d", idle, err, r.Taken)
		}
	}
	if r.Unwritten != nil || r.Flush() != nil || r.Account.Losses().Updates != 2 || r.FirstNS != math.MaxInt32 ||
		r.LastNS != math.MaxInt32+5 {
		t.Errorf("%+v from %d to %d, %v", r.Account.Losses(), r.FirstNS, r.LastNS, r.Unwritten)
	}
}

// TestCapturesAreReadableByAll checks the permissions of a complete capture.
func TestCapturesAreReadableByAll(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.pcap")
	f, err := Create(name, false, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode&0o600 != 0o600 || mode&^0o644 != 0 {
		t.Errorf("mode %o", mode)
	}
}

// TestFullOrderReleasesOldestPacket checks that a full order releases its oldest packet, whatever its age, and not
// before it is full.
func TestFullOrderReleasesOldestPacket(t *testing.T) {
	o := Order{WindowNS: 10}
	var p Packet
	push := func(at int64) { o.Push(&Packet{UnixNS: at}) }
	push(0)
	push(1)
	push(10)
	if !o.Pop(&p, false) || p.UnixNS != 0 || o.Pop(&p, false) {
		t.Fatalf("the first is passed on, and nothing else: %+v", p)
	}
	for n := 2; n < maxHeld; n++ {
		if o.Pop(&p, false) {
			t.Fatalf("passed on with %d held", n)
		}
		push(10)
	}
	if !o.Pop(&p, false) || p.UnixNS != 1 || o.Pop(&p, false) {
		t.Errorf("of %d held passed on %+v", maxHeld, p)
	}
}

// TestLateNumbersReduceMissing checks how far behind the newest number a late number still reduces the count of missing
// ones.
func TestLateNumbersReduceMissing(t *testing.T) {
	for behind, missing := range map[uint32]int64{1: 98, 63: 98, 64: 99, 65: 99} {
		var a Account
		for _, seq := range []uint32{100, 200, 200 - behind} {
			u := update(0, 0)
			u.Seq = seq
			a.Update(u)
		}
		if l := a.Losses(); l.Misordered != 1 || l.Missing != missing || l.Duplicates != 0 {
			t.Errorf("%d behind: %+v, want %d missing", behind, l, missing)
		}
	}
}

// idleWith is an idle source that wraps ErrIdle.
type idleWith struct{}

func (idleWith) Next(*Packet) error { return fmt.Errorf("eth7: %w", ErrIdle) }

// TestWrappedErrIdleIsIdle checks that a wrapped ErrIdle counts as idle.
func TestWrappedErrIdleIsIdle(t *testing.T) {
	r := Recording{Source: idleWith{}}
	if idle, err := r.Take(3); !idle || err != nil || r.Taken != 0 {
		t.Errorf("idle %t, %v after %d", idle, err, r.Taken)
	}
}

// TestCloseReportsFullDisk checks the error if the disk fills up while a file that exceeds its buffer writes its
// statistics.
func TestCloseReportsFullDisk(t *testing.T) {
	for size := bufferBytes - 1100; size < bufferBytes+100; size += 4 {
		w, err := newWriter(&full{400}, PCAPNG, 0, Interface{Name: "a", SnapBytes: 9000}, Interface{Name: "b", SnapBytes: 9000})
		if err == nil {
			err = errors.Join(w.WritePacket(&Packet{UnixNS: 1, Data: make([]byte, size), Wire: size}), w.Finish())
		}
		if !errors.Is(err, errFull) {
			t.Fatalf("a packet of %d bytes: %v", size, err)
		}
	}
	if w, err := newWriter(&full{0}, PCAPNG, 0, Interface{Comment: strings.Repeat("c", 9000)}); !errors.Is(err, errFull) {
		t.Errorf("a comment that is longer than a buffer: %v, %v", w, err)
	}
}

// TestLengthOfQueueOutputs checks that a capture of a queue's output describes frames of any length as complete.
func TestLengthOfQueueOutputs(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b, PCAPNG, 0)
	if err := errors.Join(err, w.WriteFrame(0, make([]byte, 100)), w.Finish()); err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewNgReader(&b, pcapgo.NgReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if i, err := r.Interface(0); err != nil || i.SnapLength != uint32(olaf.MaxFrame) || i.Name != "olaf" {
		t.Errorf("%+v, %v", i, err)
	}
}
