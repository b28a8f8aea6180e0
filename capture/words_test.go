package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture/ages"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/results/metric"
)

// TestFormatOf checks the formats derived from file names in upper and lower case.
func TestFormatOf(t *testing.T) {
	for name, want := range map[string]Format{"a.pcap": PCAP, "a.PCAP": PCAP, "b/a.b.pcap": PCAP, "a.pcapng": PCAPNG,
		"a": PCAPNG, "pcap": PCAPNG, "a.pcap.gz": PCAPNG, "": PCAPNG} {
		if got := FormatOf(name); got != want {
			t.Errorf("%q is %d, want %d", name, got, want)
		}
	}
}

// TestErrorsNameTheFinalFile checks that an error names the file rather than its temporary file.
func TestErrorsNameTheFinalFile(t *testing.T) {
	f := &File{path: "run.pcapng"}
	broken := &fs.PathError{Op: "write", Path: ".run.pcapng123", Err: fs.ErrPermission}
	if err := f.wrapError(broken); !errors.Is(err, fs.ErrPermission) ||
		err.Error() != "write run.pcapng: permission denied" {
		t.Error(err)
	}
	if err := f.wrapError(io.ErrShortWrite); !errors.Is(err, io.ErrShortWrite) ||
		err.Error() != "write run.pcapng: short write" {
		t.Error(err)
	}
	if err := f.wrapError(nil); err != nil {
		t.Error(err)
	}
}

// TestUnusablePathsAreErrors checks that paths that cannot be opened or created give an error and no file.
func TestUnusablePathsAreErrors(t *testing.T) {
	folder := t.TempDir()
	plain := filepath.Join(folder, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := Open(plain); r != nil || !errors.Is(err, ErrFormat) {
		t.Errorf("an empty file: %v, %v", r, err)
	}
	if r, err := Open(filepath.Join(folder, "none")); r != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v, %v", r, err)
	}
	for what, c := range map[string]struct {
		path  string
		force bool
		says  string
	}{
		"below a file":           {filepath.Join(plain, "a.pcap"), false, "not a directory"},
		"below a file, by force": {filepath.Join(plain, "a.pcap"), true, "not a directory"},
		"in no folder":           {filepath.Join(folder, "none", "a.pcap"), true, "none does not exist"},
	} {
		if f, err := Create(c.path, c.force, 0); f != nil || err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v", what, f, err)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	_, err := Create(filepath.Join(plain, "a.pcap"), false, 0)
	if looked := (*fs.PathError)(nil); !errors.As(err, &looked) || looked.Op != "lstat" {
		t.Errorf("what can't be looked at is not there: %v", err)
	}
}

// TestCommentsOfPackets checks that each comment in a pcapng file belongs to its packet.
func TestCommentsOfPackets(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b, PCAPNG, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, comment := range []string{"first", "", "third"} {
		if err := w.WritePacket(&Packet{UnixNS: int64(i), Data: []byte{byte(i)}, Wire: 1, Comment: comment}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewNgReader(&b, pcapgo.NgReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"first", "", "third"} {
		data, _, options, err := r.ReadPacketDataWithOptions()
		if got := strings.Join(options.Comments, "|"); err != nil || data[0] != byte(i) || got != want {
			t.Errorf("packet %d: %q, want %q; %v", i, got, want, err)
		}
	}
}

// TestPartsOfPackets checks that cut packets are counted both in their class and as truncated.
func TestPartsOfPackets(t *testing.T) {
	frame := make([]byte, olaf.MaxFrame)
	n, err := olaf.EncodeUpdate(frame, addresses(0), update(0, 0), nil)
	if err != nil {
		t.Fatal(err)
	}
	var a Account
	for _, kept := range []int{n, n - 1, 100, n} {
		if _, err := a.Packet(&Packet{Data: frame[:kept], Wire: n}); err != nil {
			t.Errorf("%d of %d bytes: %v", kept, n, err)
		}
	}
	if _, err := a.Packet(&Packet{Data: frame[:9], Wire: n}); err == nil {
		t.Error("nine bytes are a frame")
	}
	if l := a.Losses(); l.Truncated != 3 || l.Updates != 4 || l.Packets != 5 || l.Bypassed+l.Malformed != 1 {
		t.Errorf("%+v", l)
	}
}

// TestWorkersHaveSeparateSequences gives the same sequence number to workers whose cluster or number differs in one
// bit, and checks that none is a duplicate of another.
func TestWorkersHaveSeparateSequences(t *testing.T) {
	var a Account
	for bit := range 16 {
		for _, one := range []olaf.Update{{Cluster: 1 << bit}, {Worker: 1 << bit}, {Cluster: 1 << bit, Worker: 1 << bit}} {
			a.Update(&one)
		}
	}
	if l := a.Losses(); l.Updates != 48 || l.Duplicates+l.Misordered+l.Missing != 0 {
		t.Errorf("%+v", l)
	}
}

// TestFaultsAreCountedByReason checks the counts of every fault, each recorded a different number of times, and of an
// error that is not a fault.
func TestFaultsAreCountedByReason(t *testing.T) {
	var a Account
	var want []FaultCount
	malformed, packets := int64(0), int64(1)
	for f := range olaf.FrameFaults {
		n := int64(f) + 1
		for range n {
			a.Fault(fmt.Errorf("in a file: %w", f))
		}
		if packets += n; errors.Is(f, olaf.ErrMalformed) {
			malformed += n
		}
		want = append(want, FaultCount{f, n})
	}
	a.Fault(errors.New("something else"))
	if l := a.Losses(); !slices.Equal(a.Faults(), want) || l.Packets != packets || l.Malformed != malformed ||
		l.Bypassed != packets-malformed || malformed == 0 {
		t.Errorf("%v and %+v, want %v and %d of %d malformed", a.Faults(), l, want, malformed, packets)
	}
}

// TestErrorsInWords checks an error's text with each of its parts.
func TestErrorsInWords(t *testing.T) {
	for want, e := range map[string]*Error{
		"a.pcap: the capture is cut": {"a.pcap", 0, ErrCut, ""}, "a.pcap: the capture is cut: stop it": {"a.pcap", 0,
			ErrCut, "stop it"},
		"a.pcap: packet 1: the capture is cut":          {"a.pcap", 1, ErrCut, ""},
		"a.pcap: packet 2: the capture is cut: stop it": {"a.pcap", 2, ErrCut, "stop it"},
	} {
		if e.Error() != want {
			t.Errorf("%q, want %q", e, want)
		}
	}
}

// TestInterfacesOfFiles checks the interface descriptions in a pcapng file, and that a packet from an unknown interface
// is an error rather than a panic.
func TestInterfacesOfFiles(t *testing.T) {
	var b bytes.Buffer
	w, err := newWriter(&b, PCAPNG, 0, Interface{Name: "a", Comment: "first", Filter: "udp", SnapBytes: 100},
		Interface{Name: "b", SnapBytes: 200})
	if err != nil {
		t.Fatal(err)
	}
	for from, wrong := range []bool{false, false, true, true} {
		if err := w.WritePacket(&Packet{Data: []byte{1}, Wire: 1, Interface: from}); (err != nil) != wrong {
			t.Errorf("a packet of interface %d: %v", from, err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	file := b.Bytes()
	others, err := pcapgo.NewNgReader(&b, pcapgo.NgReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, _, err = others.ReadPacketData()
	}
	for i, want := range []Interface{{"a", "first", "udp", 100, nil}, {"b", "", "", 200, nil}} {
		got, err := others.Interface(i)
		if err != nil || (Interface{got.Name, got.Comment, got.Filter, int(got.SnapLength), nil}) != want ||
			got.TimestampResolution != 9 {
			t.Errorf("interface %d is %+v, want %+v, %v", i, got, want, err)
		}
	}
	r, err := NewReader(bytes.NewReader(file), "a.pcapng")
	if err == nil {
		err = r.Close() // Close must not fail either
	}
	if err != nil {
		t.Error(err)
	}
}

// TestErrorsOfLibraries checks the kinds that bare and wrapped library errors are converted to.
func TestErrorsOfLibraries(t *testing.T) {
	disk := &fs.PathError{Op: "read", Path: "a.pcap", Err: fs.ErrPermission}
	other := errors.New("a length that cannot be")
	for packet, cut := range []string{"it ends in the file's header",
		"it ends inside this packet, or the packet's length is wrong; stop the capture before copying the file"} {
		for _, c := range []struct {
			err, kind error
			advice    string
		}{
			{io.EOF, ErrCut, cut}, {io.ErrUnexpectedEOF, ErrCut, cut}, {disk, disk, ""}, {other, ErrFormat, other.Error()},
		} {
			for _, err := range []error{c.err, fmt.Errorf("%w", c.err)} {
				var got *Error
				if !errors.As((&Reader{name: "a.pcap", number: packet}).wrapError(err), &got) || got.File != "a.pcap" ||
					got.Packet != packet || !errors.Is(got, c.kind) || got.Advice != c.advice {
					t.Errorf("%v of packet %d: %+v", err, packet, got)
				}
			}
		}
	}
}

// TestEqualStampsKeepTheirOrder checks that packets with equal stamps are returned in arrival order.
func TestEqualStampsKeepTheirOrder(t *testing.T) {
	var o Order
	for i, at := range []int64{5, 5, 3, 5, 3, 4, 3} {
		o.Push(&Packet{UnixNS: at, Data: []byte{byte(i)}})
	}
	var got []byte
	for p := (Packet{}); o.Pop(&p, true); {
		got = append(got, p.Data[0])
	}
	if want := []byte{2, 4, 6, 5, 0, 1, 3}; !bytes.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestOrderBounds checks the documented bounds on waiting packets and on the run clock's range in ns.
func TestOrderBounds(t *testing.T) {
	if maxHeld != 65_536 || maxVirtualNS != 9_223_372_036_854_775 || maxPacket != 262_144 {
		t.Errorf("%d packets, %d ns, %d bytes", maxHeld, int64(maxVirtualNS), maxPacket)
	}
}

// frames is a source of frames a microsecond apart.
type frames struct {
	frames [][]byte
	at     int64
}

func (f *frames) Next(p *Packet) error {
	if len(f.frames) == 0 {
		return ErrIdle
	}
	f.at += 1000
	*p = Packet{UnixNS: f.at, Data: f.frames[0], Wire: len(f.frames[0])}
	f.frames = f.frames[1:]
	return nil
}

// TestRecordingMeasuresUpdates checks that only updates have ages, not ACKs and other frames, on the packets' clock.
func TestRecordingMeasuresUpdates(t *testing.T) {
	const began = int64(1_800_000_000_000_000_000)
	source := &frames{at: began}
	var generated []uint64
	for i := range 6 {
		frame := make([]byte, olaf.MaxFrame)
		u := update(i%2, i)
		u.GenNS = uint64(began+int64(1000*(i+1))-400) % olaf.GenModulus
		var n int
		var err error
		if i == 3 {
			n, err = olaf.EncodeAck(frame, addresses(0), u, olaf.QueueStatus{Slots: 8}, nil)
		} else {
			n, err = olaf.EncodeUpdate(frame, addresses(0), u, nil)
			generated = append(generated, u.GenNS)
		}
		if err != nil {
			t.Fatal(err)
		}
		source.frames = append(source.frames, frame[:n])
	}
	source.frames = append(source.frames, make([]byte, 60))
	declared := metric.OfQueue(engine.FlowLedger(), engine.SumsLedger())
	r := Recording{Source: source, Ages: ages.New(declared)}
	if idle, err := r.Take(99); !idle || err != nil {
		t.Fatal(idle, err)
	}
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	want := ages.New(declared)
	want.Start(began+1000, false)
	for k, i := range []int{0, 1, 2, 4, 5} {
		u := update(i%2, i)
		u.GenNS = generated[k]
		at := olaf.Time(1000*i) * olaf.Time(olaf.Nanosecond)
		want.Arrive(at, u)
		want.Deliver(&olaf.Observation{At: at, Queued: -1, Update: *u})
	}
	a, b := r.Ages.Report(), want.Report()
	if a.Clock != ages.WallClock || a.Clock != b.Clock || a.Reason != b.Reason || len(a.Clusters) != len(b.Clusters) ||
		len(a.Clusters) == 0 {
		t.Fatalf("%+v, want %+v", a, b)
	}
	for i := range a.Clusters {
		if a.Clusters[i].Deliveries != b.Clusters[i].Deliveries || a.Clusters[i].AoM != b.Clusters[i].AoM {
			t.Errorf("%+v, want %+v", a.Clusters[i], b.Clusters[i])
		}
	}
	if l := r.Account.Losses(); l.Updates != 5 || l.Acks != 1 || l.Bypassed != 1 {
		t.Errorf("%+v", l)
	}
}

// TestAgesByAnotherClock checks that a recording detects from arrivals whether packets and workers share a clock.
func TestAgesByAnotherClock(t *testing.T) {
	const wall = int64(1_700_000_000_000_000_000)
	r := Recording{Source: &stamped{[]int64{wall, wall + 5}, ErrIdle}, Ages: ages.New(metric.OfQueue(engine.FlowLedger(),
		engine.SumsLedger()))}
	if idle, err := r.Take(9); !idle || err != nil {
		t.Fatal(idle, err)
	}
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	if a := r.Ages.Report(); !strings.Contains(a.Reason,
		"the clock that timed the packets is not the one that the workers stamp by") {
		t.Errorf("%+v", a)
	}
}
