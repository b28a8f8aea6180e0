package capture

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/test/peer"
)

func addresses(worker int) *olaf.Addresses {
	return &olaf.Addresses{
		SrcMAC: [6]byte{2, 0, 10, 1, 0, byte(worker)}, DstMAC: [6]byte{2, 0, 10, 0, 0, 1},
		SrcIP: [4]byte{10, 1, 0, byte(worker)}, DstIP: [4]byte{10, 0, 0, 1}, SrcPort: 49152,
	}
}

func update(worker, seq int) *olaf.Update {
	return &olaf.Update{
		GenNS: uint64(1000 * seq), Seq: uint32(seq), Reward: -256, Count: 1, Lanes: 48,
		Cluster: olaf.ClusterID(worker / 3), Worker: olaf.WorkerID(worker),
	}
}

// sample returns a capture with n updates from three workers in turn, one every 1,003 ns beginning at 4 ns, and an ACK
// at the end.
func sample(t testing.TB, format Format, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, format, 0)
	if err != nil {
		t.Fatal(err)
	}
	at := func(i int) olaf.Time { return olaf.Time(4+1003*i) * olaf.Time(olaf.Nanosecond) }
	for i := range n {
		if err := w.WriteUpdate(at(i), addresses(i%3), update(i%3, i/3), nil); err != nil {
			t.Fatal(err)
		}
	}
	if n > 0 {
		if err := w.WriteAck(at(n), addresses(0), update(0, 0), olaf.QueueStatus{Slots: 8}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// decodeAll decodes a capture to its end.
func decodeAll(b []byte) ([]olaf.Observation, Losses, error) {
	r, err := NewReader(bytes.NewReader(b), "in.pcap")
	if err != nil {
		return nil, Losses{}, err
	}
	d := NewDecoder(r)
	var out []olaf.Observation
	for {
		var a Arrival
		if err := d.Next(&a); err == io.EOF {
			return out, d.Losses(), nil
		} else if err != nil {
			return out, d.Losses(), err
		}
		if a.Frame.Kind() == olaf.KindUpdate {
			out = append(out, a.Observation())
		}
	}
}

func decodeFile(path string) ([]olaf.Observation, Losses, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, Losses{}, err
	}
	return decodeAll(b)
}

func zip(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestWriteAndDecode(t *testing.T) {
	for name, b := range map[string][]byte{
		"pcapng": sample(t, PCAPNG, 9), "pcap": sample(t, PCAP, 9), "gzip": zip(t, sample(t, PCAP, 9)),
	} {
		got, losses, err := decodeAll(b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var want []olaf.Observation
		for i := range 9 {
			want = append(want, olaf.Observation{At: olaf.Time(4000 + 1003000*i), Queued: -1, Update: *update(i%3, i/3)})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if want := (Losses{Packets: 10, Updates: 9, Acks: 1}); losses != want {
			t.Errorf("%s: %+v, want %+v", name, losses, want)
		}
	}
}

func TestRandomCaptures(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		format := rapid.SampledFrom([]Format{PCAP, PCAPNG}).Draw(t, "format")
		var b bytes.Buffer
		w, err := NewWriter(&b, format, 0)
		if err != nil {
			t.Fatal(err)
		}
		n := rapid.IntRange(1, 30).Draw(t, "packets")
		var want []olaf.Observation
		at := olaf.Time(0)
		for range n {
			at += olaf.Time(rapid.Int64Range(0, 1e10).Draw(t, "gap") * 1000)
			u := update(rapid.IntRange(0, 5).Draw(t, "worker"), rapid.IntRange(0, 1e6).Draw(t, "seq"))
			u.Lanes = rapid.Uint16Range(0, uint16(olaf.MaxLanes)).Draw(t, "lanes")
			if err := w.WriteUpdate(at, addresses(1), u, nil); err != nil {
				t.Fatal(err)
			}
			want = append(want, olaf.Observation{At: at, Queued: -1, Update: *u})
		}
		if err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		got, _, err := decodeAll(b.Bytes())
		if err != nil || !cmp.Equal(got, want) {
			t.Fatalf("%v: %s", err, cmp.Diff(want, got))
		}
	})
}

// TestTshark checks that tshark reads files written by this package with the same times to the nanosecond and no
// malformed frame, and that files from editcap can be read.
func TestTshark(t *testing.T) {
	tshark := peer.NeedProgram(t, "tshark")
	for _, name := range []string{"out.pcap", "out.pcapng"} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, sample(t, FormatOf(name), 4), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(tshark, "-n", "-r", path, "-o", "ip.check_checksum:TRUE", "-T", "fields",
			"-e", "frame.time_epoch", "-e", "frame.len", "-e", "frame.cap_len", "-e", "ip.src", "-e", "ip.checksum.status",
			"-e", "udp.dstport", "-e", "udp.length", "-e", "_ws.malformed").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var rows []string // tshark warns about running as root on some machines
		for _, line := range strings.Split(string(out), "\n") {
			if strings.Contains(line, "\t") {
				rows = append(rows, strings.TrimRight(line, "\t"))
			}
		}
		// Versions of tshark print the epoch with or without a space: compare numbers, not text.
		want := []string{
			"0.000000004 256 256 10.1.0.0 1 20300 222",
			"0.000001007 256 256 10.1.0.1 1 20300 222",
			"0.000002010 256 256 10.1.0.2 1 20300 222",
			"0.000003013 256 256 10.1.0.0 1 20300 222",
			"0.000004016 264 264 10.1.0.0 1 20300 230",
		}
		var got []string
		for _, r := range rows {
			got = append(got, strings.Join(strings.Fields(r), " "))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		editcap, err := exec.LookPath("editcap")
		if err != nil {
			continue
		}
		cut := filepath.Join(t.TempDir(), "cut.pcapng")
		if out, err := exec.Command(editcap, "-s", "96", path, cut).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		b, err := os.ReadFile(cut)
		if err != nil {
			t.Fatal(err)
		}
		observed, losses, err := decodeAll(b)
		if want := (Losses{Packets: 5, Updates: 4, Acks: 1, Truncated: 5}); err != nil || len(observed) != 4 ||
			losses != want {
			t.Errorf("after editcap: %d observations, %+v, %v", len(observed), losses, err)
		}
	}
}

// record returns one packet for a classic pcap file, built by hand so that it can be invalid.
func record(sec, nsec, kept, wire uint32, data []byte) []byte {
	b := make([]byte, 16)
	for i, v := range []uint32{sec, nsec, kept, wire} {
		binary.LittleEndian.PutUint32(b[4*i:], v)
	}
	return append(b, data...)
}

// block returns one pcapng block, built by hand so that it can be invalid.
func block(kind uint32, body ...uint32) []byte {
	b := binary.LittleEndian.AppendUint32(nil, kind)
	length := uint32(12 + 4*len(body))
	b = binary.LittleEndian.AppendUint32(b, length)
	for _, v := range body {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return binary.LittleEndian.AppendUint32(b, length)
}

func TestBadFiles(t *testing.T) {
	pcap, ng := sample(t, PCAP, 3), sample(t, PCAPNG, 3)
	header := pcap[:24]
	frame := pcap[24+16 : 24+16+256]
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	linux := bytes.Clone(pcap)
	linux[20] = 113
	foreign := bytes.Clone(frame)
	foreign[36] = 0 // another UDP port
	broken := bytes.Clone(frame)
	broken[24]++ // IPv4 checksum
	section := block(0x0a0d0d0a, 0x1a2b3c4d, 1, 0xffffffff, 0xffffffff)
	ethernet, cooked := block(1, 1, 0), block(1, 113, 0)         // interfaces with stamps in µs
	early := block(1, 1, 0, 8<<16|14, 0xffffffff, 0xffffffff, 0) // and with an offset of -1 s
	enhanced := func(high, low, kept, wire uint32) []byte { return block(6, 0, high, low, kept, wire, 0) }
	tests := []struct {
		name string
		file []byte
		want error
		say  string
	}{
		{"empty", nil, ErrFormat, "in.pcap: not a readable capture: the file is empty"},
		{"two bytes", pcap[:2], ErrCut, "file's header"},
		{"half a header", pcap[:20], ErrCut, "file's header"},
		{"text", []byte("time,worker,reward\n1,2,3\n4,5,6\n"), ErrFormat, "unknown magic"},
		{"cut in a packet header", pcap[:24+272+8], ErrCut, "packet 2"},
		{"cut in a packet", pcap[:24+272*2+100], ErrCut, "packet 3"},
		{"cut pcapng", ng[:len(ng)-130], ErrCut, "packet 4"},
		{"cut gzip", zip(t, pcap)[:60], ErrCut, ""},
		{"giant length", join(header, record(0, 0, 1<<31, 1<<31, frame)), ErrFormat, "packet 1"},
		{"giant wire length", join(header, record(0, 0, 256, 1<<31, frame)), ErrFormat, "more than any frame"},
		{"kept more than there was", join(header, record(0, 0, 256, 255, frame)), ErrFormat, "packet 1"},
		{"backwards", join(header, record(1, 5, 256, 256, frame), record(1, 4, 256, 256, frame)), ErrTimeBackwards,
			"packet 2: the capture goes backwards in time: 1 ns"},
		{"over 106 days", join(header, record(1, 0, 256, 256, frame), record(1e7, 0, 256, 256, frame)), ErrTime, "106 days"},
		{"not Ethernet", linux, ErrLink, "link type"},
		{"pcapng, no section", section[:20], ErrCut, "file's header"},
		{"pcapng, not Ethernet", join(section, cooked, enhanced(0, 0, 4, 4)), ErrLink, "packet 1"},
		{"pcapng, no interface", join(section, enhanced(0, 0, 4, 4)), ErrFormat, "packet 1"},
		{"pcapng, kept more than there was", join(section, ethernet, enhanced(0, 0, 4, 3)), ErrFormat,
			"4 bytes were kept of a packet of 3"},
		{"pcapng, kept more than any has", join(section, ethernet,
			block(6, slices.Concat([]uint32{0, 0, 0, maxPacket + 1, 3}, make([]uint32, maxPacket/4+1))...)), ErrFormat,
			"it claims 262145 bytes"},
		{"pcapng, a second before 1970", join(section, early, block(6, 0, 0, 0, 4, 4, 0)), ErrTime,
			"outside the years 1970 to 2261"},
		{"pcapng, giant length", join(section, ethernet, enhanced(0, 0, 1<<31, 1<<31)), ErrFormat, "more than its block has"},
		{"pcapng, far future", join(section, ethernet, enhanced(1<<30, 0, 4, 4)), ErrTime, "2261"},
		{"pcapng, no time", join(section, ethernet, block(3, 4, 0)), ErrTime, "simple packet"},
		{"pcapng, after its first packet", join(section, ethernet, enhanced(0, 1, 4, 4), []byte{6, 0}), ErrCut, "packet 2"},
		{"no packets", header, ErrNoOLAF, "empty"},
		{"foreign", join(header, record(0, 0, 256, 256, foreign)), ErrNoOLAF,
			"1 packet, mostly not an OLAF frame: UDP destination port"},
		{"all malformed", join(header, record(0, 0, 256, 256, broken), record(0, 0, 256, 256, broken)), ErrNoOLAF,
			"2 packets, mostly malformed OLAF frame: wrong IPv4"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := decodeAll(tt.file)
			var typed *Error
			if !errors.Is(err, tt.want) || !errors.As(err, &typed) || !strings.Contains(err.Error(), tt.say) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %v with %q", err, tt.want, tt.say)
			}
			if typed != nil && (typed.File != "in.pcap" || typed.Packet < 0 ||
				(typed.Packet > 0) != strings.Contains(err.Error(), fmt.Sprintf("in.pcap: packet %d: ", typed.Packet))) {
				t.Errorf("%v is of packet %d of %s", err, typed.Packet, typed.File)
			}
		})
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// TestTruncatedFileDeliversEarlierPackets checks that packets before the damage are delivered.
func TestTruncatedFileDeliversEarlierPackets(t *testing.T) {
	whole := sample(t, PCAP, 5)
	got, losses, err := decodeAll(whole[:24+272*4+20])
	if !errors.Is(err, ErrCut) || len(got) != 4 || losses.Updates != 4 {
		t.Errorf("%d observations, %+v, %v", len(got), losses, err)
	}
}

func TestMixedTraffic(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b, PCAP, 0)
	if err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, 256)
	n, err := olaf.EncodeUpdate(frame, addresses(0), update(0, 0), nil)
	if err != nil {
		t.Fatal(err)
	}
	spoil := func(at int, v byte) []byte {
		b := bytes.Clone(frame[:n])
		b[at] = v
		return b
	}
	for i, f := range [][]byte{frame, spoil(12, 0x86), spoil(24, 0xff), spoil(36, 1), {1, 2, 3}, frame} {
		if err := w.WriteFrame(olaf.Time(i*1000), f); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	_, losses, err := decodeAll(b.Bytes())
	if want := (Losses{Packets: 6, Updates: 2, Bypassed: 3, Malformed: 1, Duplicates: 1}); err != nil || losses != want {
		t.Errorf("%+v, %v; want %+v", losses, err, want)
	}
}

func TestSequences(t *testing.T) {
	tests := []struct {
		name                            string
		seqs                            []uint32
		missing, misordered, duplicates int64
	}{
		{"in order", []uint32{0, 1, 2, 3}, 0, 0, 0},
		{"joins late", []uint32{7, 8}, 0, 0, 0},
		{"gap", []uint32{0, 3, 4}, 2, 0, 0},
		{"gap filled late", []uint32{0, 3, 1, 4}, 1, 1, 0},
		{"duplicate", []uint32{0, 1, 1, 0}, 0, 0, 2},
		{"before the first", []uint32{5, 9, 3, 3}, 4, 1, 1},
		{"wraps", []uint32{0xfffffffe, 0xffffffff, 0, 2}, 1, 0, 0},
		{"far behind", []uint32{0, 1000, 1}, 999, 1, 0},
		{"exactly 64 ahead", []uint32{0, 64, 0}, 63, 1, 0},
		{"63 ahead", []uint32{0, 63, 0}, 62, 0, 1},
	}
	for _, tt := range tests {
		var a Account
		for _, s := range tt.seqs {
			a.Update(&olaf.Update{Seq: s})
		}
		l := a.Losses()
		if l.Missing != tt.missing || l.Misordered != tt.misordered || l.Duplicates != tt.duplicates {
			t.Errorf("%s: %+v", tt.name, l)
		}
	}
	// In any order within the window, no number is missing or duplicate.
	rapid.Check(t, func(t *rapid.T) {
		seqs := make([]uint32, 60)
		for i := range seqs {
			seqs[i] = uint32(i) + 0xffffffe0
		}
		var a Account
		for _, s := range rapid.Permutation(seqs).Draw(t, "order") {
			a.Update(&olaf.Update{Seq: s})
		}
		if l := a.Losses(); l.Missing != 0 || l.Duplicates != 0 {
			t.Fatalf("%+v", l)
		}
	})
}

// TestWallClock checks that arrivals count from the first packet, unless the time at which the generator was armed is
// known.
func TestWallClock(t *testing.T) {
	const armed = 1_700_000_000_123_456_789
	var b bytes.Buffer
	w, err := NewWriter(&b, PCAPNG, armed)
	if err != nil {
		t.Fatal(err)
	}
	day := olaf.Time(24 * olaf.Hour)
	for i := range 5 { // 48 bits of ns are 3.26 days: the stamps wrap on the way
		u := update(0, i)
		u.GenNS = uint64((olaf.Time(i) * day).NS()) + 500
		if err := w.WriteUpdate(olaf.Time(i)*day+1_000_000, addresses(0), u, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	for _, known := range []bool{false, true} {
		r, err := NewReader(bytes.NewReader(b.Bytes()), "in")
		if err != nil {
			t.Fatal(err)
		}
		d := NewDecoder(r)
		if known {
			d.SetOrigin(armed)
		}
		for i := range 5 {
			var a Arrival
			if err := d.Next(&a); err != nil {
				t.Fatal(err)
			}
			from := olaf.Time(0)
			if known {
				from = 1_000_000
			}
			if want := olaf.Time(i)*day + from; a.At != want {
				t.Errorf("known %v: arrival at %v, want %v", known, a.At, want)
			}
			if age := a.At.NS() - a.GeneratedNS; known && age != 500 {
				t.Errorf("day %d: age %d ns, want 500", i, age)
			}
		}
		origin, same := d.Origin()
		if want := int64(armed); same != known || known && origin != want {
			t.Errorf("known %v: origin %d, same clock %v", known, origin, same)
		}
	}
	r, _ := NewReader(bytes.NewReader(b.Bytes()), "in")
	d := NewDecoder(r)
	d.SetOrigin(armed + 2_000)
	if err := d.Next(new(Arrival)); !errors.Is(err, ErrTime) {
		t.Errorf("a packet before the origin: %v", err)
	}
}

// TestClosingStatistics checks that a finished pcapng file records its number of packets and that no packet was
// dropped.
func TestClosingStatistics(t *testing.T) {
	var got []pcapgo.NgInterfaceStatistics
	r, err := pcapgo.NewNgReader(bytes.NewReader(sample(t, PCAPNG, 3)), pcapgo.NgReaderOptions{
		StatisticsCallback: func(_ int, s pcapgo.NgInterfaceStatistics) { got = append(got, s) },
	})
	for err == nil {
		_, _, err = r.ReadPacketData()
	}
	if err != io.EOF || len(got) != 1 || got[0].PacketsReceived != 4 || got[0].PacketsDropped != 0 ||
		got[0].LastUpdate.UnixNano() != 3013 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestFCSBits checks that link types whose upper bits describe an FCS are accepted as Ethernet.
func TestFCSBits(t *testing.T) {
	b := sample(t, PCAP, 1)
	b[23] = 0x14 // 4 bytes of FCS, and the flag for it
	if _, _, err := decodeAll(b); err != nil {
		t.Error(err)
	}
}

// TestInterfaceStatistics checks that drops reported by the capturing program are counted, over several interfaces and
// sections.
func TestInterfaceStatistics(t *testing.T) {
	section := func(drops ...uint64) []byte {
		var b bytes.Buffer
		w, err := pcapgo.NewNgWriter(&b, layers.LinkTypeEthernet)
		if err != nil {
			t.Fatal(err)
		}
		frame := make([]byte, 256)
		if _, err := olaf.EncodeUpdate(frame, addresses(0), update(0, 0), nil); err != nil {
			t.Fatal(err)
		}
		if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(1, 0), CaptureLength: 256, Length: 256},
			frame); err != nil {
			t.Fatal(err)
		}
		for i, d := range drops {
			if i > 0 {
				if _, err := w.AddInterface(pcapgo.NgInterface{LinkType: layers.LinkTypeEthernet}); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.WriteInterfaceStats(i, pcapgo.NgInterfaceStatistics{PacketsReceived: 1, PacketsDropped: d}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	_, losses, err := decodeAll(append(section(3, 4), section(10)...))
	if err != nil || losses.CaptureDropped != 17 {
		t.Errorf("%+v, %v", losses, err)
	}
}

func TestCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.pcapng")
	write := func(force bool) error {
		f, err := Create(path, force, 0)
		if err != nil {
			return err
		}
		if err := f.WriteUpdate(0, addresses(0), update(0, 0), nil); err != nil {
			return err
		}
		if _, err := os.Stat(path); err == nil && !force {
			return errors.New("the file is there before it is complete")
		}
		return f.Commit()
	}
	if err := write(false); err != nil {
		t.Fatal(err)
	}
	if err := write(false); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), "--force") {
		t.Fatalf("a second time: %v", err)
	}
	if err := write(true); err != nil {
		t.Fatal(err)
	}
	f, err := Create(path, true, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Abandon(); err != nil {
		t.Fatal(err)
	}
	r, err := Open(path)
	if err != nil {
		t.Fatalf("abandoning touched the old file: %v", err)
	}
	defer r.Close()
	if err := NewDecoder(r).Next(new(Arrival)); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := Create(filepath.Join(dir, strings.Repeat("n", 255)+".pcap"), false, 0); err == nil ||
		strings.Contains(err.Error(), "/.n") {
		t.Errorf("a name that cannot be: %v", err)
	}
	path = filepath.Join(dir, "run.pcapng")
	late, err := Create(path, false, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"run.pcapng", "run-2.pcapng"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	beside := filepath.Join(dir, "run-3.pcapng")
	if err := late.Commit(); !errors.Is(err, ErrExists) || !strings.HasSuffix(err.Error(), "this one is now "+beside) {
		t.Errorf("somebody else was quicker: %v", err)
	}
	kept, err := Open(beside)
	if err != nil {
		t.Fatal(err)
	}
	kept.Close()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 3 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// FuzzReader checks, for any bytes, that there is no panic, that errors are typed, accounts balance and times are in
// order.
func FuzzReader(f *testing.F) {
	f.Add(sample(f, PCAP, 3))
	f.Add(sample(f, PCAPNG, 3))
	f.Add(zip(f, sample(f, PCAPNG, 1)))
	f.Add(sample(f, PCAP, 0))
	big := bytes.Clone(sample(f, PCAP, 1))
	for i := 0; i < 24; i += 4 { // big-endian header
		big[i], big[i+1], big[i+2], big[i+3] = big[i+3], big[i+2], big[i+1], big[i]
	}
	f.Add(big)
	f.Fuzz(func(t *testing.T, b []byte) {
		got, l, err := decodeAll(b)
		var typed *Error
		if err != nil && !errors.As(err, &typed) {
			t.Fatalf("untyped error %v", err)
		}
		if l.Packets != l.Updates+l.Acks+l.Bypassed+l.Malformed {
			t.Fatalf("unbalanced %+v", l)
		}
		for i := 1; i < len(got); i++ {
			if got[i].At < got[i-1].At {
				t.Fatalf("observation %d goes back", i)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	for _, format := range []Format{PCAP, PCAPNG} {
		b.Run(fmt.Sprintf("format=%d", format), func(b *testing.B) {
			const packets = 10_000
			file := sample(b, format, packets)
			b.ReportAllocs()
			for b.Loop() {
				r, err := NewReader(bytes.NewReader(file), "in")
				if err != nil {
					b.Fatal(err)
				}
				d := NewDecoder(r)
				var a Arrival
				for err == nil {
					err = d.Next(&a)
				}
				if err != io.EOF {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/packets, "ns/packet")
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	for _, format := range []Format{PCAP, PCAPNG} {
		b.Run(fmt.Sprintf("format=%d", format), func(b *testing.B) {
			w, err := NewWriter(io.Discard, format, 0)
			if err != nil {
				b.Fatal(err)
			}
			addr, u := addresses(0), update(0, 0)
			b.ReportAllocs()
			for b.Loop() {
				if err := w.WriteUpdate(4000, addr, u, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
