package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture/capturetest"
)

// checkForms decodes every form of a valid capture and checks that updates and losses are the same and no stamp is off
// by more than the form's grain.
func checkForms(t testing.TB, file []byte) {
	t.Helper()
	want, losses, err := decodeAll(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range capturetest.Copies(t, file) {
		got, l, err := decodeAll(c.Data)
		if err != nil || len(got) != len(want) || l != losses {
			t.Errorf("%s: %d of %d updates, %+v, want %+v: %v", c.Name, len(got), len(want), l, losses, err)
			continue
		}
		for i := range got {
			if early := want[i].At.NS() - got[i].At.NS(); early < 0 || early > c.GrainNS || got[i].Update != want[i].Update {
				t.Errorf("%s: update %d arrives %d ns early, at most %d are its grain", c.Name, i, early, c.GrainNS)
			}
		}
	}
}

func TestEveryCaptureVariant(t *testing.T) {
	for _, format := range []Format{PCAP, PCAPNG} {
		checkForms(t, sample(t, format, 9))
	}
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		w, err := NewWriter(&b, PCAPNG, rapid.Int64Range(0, 4e18).Draw(t, "origin")/1000*1000)
		if err != nil {
			t.Fatal(err)
		}
		at := olaf.Time(0)
		for i := range rapid.IntRange(1, 9).Draw(t, "packets") {
			if err := w.WriteUpdate(at, addresses(1), update(i%3, i/3), nil); err != nil {
				t.Fatal(err)
			}
			at += olaf.Time(rapid.Int64Range(0, 3e9).Draw(t, "gap")) * olaf.Time(olaf.Nanosecond)
		}
		if err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		checkNS(t, b.Bytes())
	})
}

// checkNS compares the stamps of packets with the original's, which may exceed the run clock's range.
func checkNS(t *rapid.T, file []byte) {
	want := stamps(t, file)
	for _, c := range capturetest.Copies(t, file) {
		if strings.Contains(c.Name, "pcap,") && want[len(want)-1] >= 1<<32*1e9 {
			continue // seconds of the classic format have 32 bits
		}
		if strings.Contains(c.Name, "^-40") && want[len(want)-1] >= 1<<24*1e9 || strings.Contains(c.Name, "-12") &&
			want[len(want)-1] >= 18e15 {
			continue // the ticks of these forms overflow earlier
		}
		for i, got := range stamps(t, c.Data) {
			if early := want[i] - got; early < 0 || early > c.GrainNS {
				t.Fatalf("%s: packet %d at %d ns, want %d", c.Name, i, got, want[i])
			}
		}
	}
}

func stamps(t *rapid.T, file []byte) []int64 {
	r, err := NewReader(bytes.NewReader(file), "in")
	if err != nil {
		t.Fatal(err)
	}
	var out []int64
	var p Packet
	for r.Next(&p) == nil {
		out = append(out, p.UnixNS)
	}
	return out
}

// TestTicksAreConvertedExactly checks every resolution against math/big.
func TestTicksAreConvertedExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := resolution(rapid.Uint8().Draw(t, "resolution"))
		ticks := rapid.Uint64().Draw(t, "ticks")
		seconds, ns, ok := r.split(ticks)
		if r.perSecond() == 0 {
			if ok {
				t.Fatalf("%v: a resolution that no 64 bits hold is converted", r)
			}
			return
		}
		perSecond := new(big.Int).SetUint64(r.perSecond())
		want := new(big.Int).Mul(new(big.Int).SetUint64(ticks), big.NewInt(nsPerSecond))
		want.Add(want, new(big.Int).Rsh(perSecond, 1)).Div(want, perSecond)
		got := new(big.Int).Mul(new(big.Int).SetUint64(seconds), big.NewInt(nsPerSecond))
		if got.Add(got, big.NewInt(ns)); got.Cmp(want) != 0 || ns < 0 || ns >= nsPerSecond {
			t.Fatalf("%d ticks of %v are %v ns, want %v", ticks, r, got, want)
		}
	})
}

func TestFileGrain(t *testing.T) {
	file := sample(t, PCAPNG, 2)
	want := map[string]olaf.Duration{"µs": olaf.Microsecond, "10^-6": olaf.Microsecond, "10^-7": 100 * olaf.Nanosecond,
		"2^-20": 953675, "2^-0": olaf.Second}
	copies := append(capturetest.Copies(t, file), capturetest.Copy{Name: "2^-0", Data: seconds(0x80)},
		capturetest.Copy{Name: "2^-0", Data: seconds(0)})
	for _, c := range copies {
		r, err := NewReader(bytes.NewReader(c.Data), "in")
		if err != nil {
			t.Fatal(err)
		}
		d := NewDecoder(r)
		for err == nil {
			err = d.Next(new(Arrival))
		}
		grain := olaf.Nanosecond
		for part, g := range want {
			if strings.HasSuffix(strings.TrimSuffix(c.Name, ", big-endian"), part) {
				grain = g
			}
		}
		if d.Grain() != grain {
			t.Errorf("%s: grain %v, want %v", c.Name, d.Grain(), grain)
		}
	}
}

// frameBytes returns an update in wire format.
func frameBytes(t testing.TB) []byte {
	b := make([]byte, 256)
	n, err := olaf.EncodeUpdate(b, addresses(0), update(0, 0), nil)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

// seconds returns a capture with a packet at 3 s and a resolution of a whole second.
func seconds(resolution byte) []byte {
	le := binary.LittleEndian
	return bytes.Join([][]byte{capturetest.SectionHeader(le), capturetest.InterfaceBlock(le,
		capturetest.BlockOption(le, 9, []byte{resolution})),
		capturetest.PacketBlock(le, 3, []byte{1}, 1)}, nil)
}

func TestWholeSeconds(t *testing.T) {
	for _, resolution := range []byte{0, 0x80} {
		r, err := NewReader(bytes.NewReader(seconds(resolution)), "in")
		if err != nil {
			t.Fatal(err)
		}
		var p Packet
		if err := r.Next(&p); err != nil || p.UnixNS != 3e9 {
			t.Errorf("resolution %#x: packet at %d ns, want 3 s: %v", resolution, p.UnixNS, err)
		}
	}
}

// TestLossReportsInPcapng checks every place in which a pcapng file can report a loss.
func TestLossReportsInPcapng(t *testing.T) {
	le, frame := binary.LittleEndian, frameBytes(t)
	u64 := func(n uint64) []byte { return le.AppendUint64(nil, n) }
	flags := func(n uint32) []byte { return capturetest.BlockOption(le, 2, le.AppendUint32(nil, n)) }
	statistics := func(options ...[]byte) []byte {
		return capturetest.NewBlock(le, 5, bytes.Join(append([][]byte{make([]byte, 12)}, options...), nil))
	}
	drops := capturetest.PacketBlock(le, 1, frame, len(frame), capturetest.BlockOption(le, 4, u64(3)))
	old := append(le.AppendUint16(le.AppendUint16(nil, 0), 2), make([]byte, 8)...)
	old = append(le.AppendUint32(le.AppendUint32(old, uint32(len(frame))), uint32(len(frame))), frame...)
	for _, tt := range []struct {
		name          string
		blocks        []byte
		lost, damaged int64
	}{
		{"none", capturetest.PacketBlock(le, 1, frame, len(frame), flags(1)), 0, 0},
		{"epb_dropcount", drops, 3, 0},
		{"twice", append(bytes.Clone(drops), drops...), 6, 0},
		{"link error", capturetest.PacketBlock(le, 1, frame, len(frame), flags(1<<31|1)), 0, 1},
		{"CRC error", capturetest.PacketBlock(le, 1, frame, len(frame), flags(1<<24)), 0, 1},
		{"isb_ifdrop", append(capturetest.PacketBlock(le, 1, frame, len(frame)),
			statistics(capturetest.BlockOption(le, 5, u64(7)))...), 7, 0},
		{"isb_osdrop", append(capturetest.PacketBlock(le, 1, frame, len(frame)),
			statistics(capturetest.BlockOption(le, 7, u64(2)))...), 2, 0},
		{"unknown", append(capturetest.PacketBlock(le, 1, frame, len(frame)),
			statistics(capturetest.BlockOption(le, 5, u64(1<<64-1)))...), 0, 0},
		{"both, of the same", append(bytes.Clone(drops), statistics(capturetest.BlockOption(le, 5, u64(3)))...), 3, 0},
		{"obsolete block", capturetest.NewBlock(le, 2, append(old, make([]byte, -len(frame)&3)...)), 2, 0},
	} {
		file := bytes.Join([][]byte{capturetest.SectionHeader(le), capturetest.InterfaceBlock(le), tt.blocks}, nil)
		if _, l, err := decodeAll(file); err != nil || l.CaptureDropped != tt.lost || l.LinkErrors != tt.damaged {
			t.Errorf("%s: lost %d and damaged %d, want %d and %d: %v", tt.name, l.CaptureDropped, l.LinkErrors, tt.lost,
				tt.damaged, err)
		}
	}
}

// TestDamagedBlocks checks the errors for valid blocks whose lengths were changed.
func TestDamagedBlocks(t *testing.T) {
	le, frame := binary.LittleEndian, frameBytes(t)
	sound := bytes.Join([][]byte{capturetest.SectionHeader(le), capturetest.InterfaceBlock(le),
		capturetest.PacketBlock(le, 1, frame, len(frame))}, nil)
	last := len(sound) - len(capturetest.PacketBlock(le, 1, frame, len(frame)))
	change := func(at int, v uint32) []byte {
		b := bytes.Clone(sound)
		le.PutUint32(b[at:], v)
		return b
	}
	for _, tt := range []struct {
		name, say string
		file      []byte
	}{
		{"trailing length", "a block's lengths are 288 at its start and 284 at its end", change(len(sound)-4, 284)},
		{"odd length", "a block's length is 289, not a multiple of four", change(last+4, 289)},
		{"no length", "too short for any block", change(last+4, 0)},
		{"short", "too short for any block", change(last+4, 8)},
		{"giant", "a block claims 4294967280 bytes", change(last+4, 0xfffffff0)},
		{"other interface", "interface 1, which the file does not describe", change(last+8, 1)},
		{"order", "byte-order magic", change(8, 7)},
		{"option", "an option of 65535 bytes does not fit", bytes.Join([][]byte{capturetest.SectionHeader(le),
			capturetest.InterfaceBlock(le, []byte{9, 0, 255, 255})}, nil)},
		{"section", "too short", capturetest.NewBlock(le, 0x0a0d0d0a, le.AppendUint32(nil, 0x1a2b3c4d))},
		{"version", "pcapng version is 2", change(12, 2)},
		{"interface", "an interface description of 4 bytes", append(capturetest.SectionHeader(le),
			capturetest.NewBlock(le, 1, make([]byte, 4))...)},
	} {
		_, _, err := decodeAll(tt.file)
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), tt.say) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.say)
		}
	}
}

// TestOneTagAndAnFCSAreRemoved checks frames as captured by DAG cards, with rx-fcs and on VLAN trunks.
func TestOneTagAndAnFCSAreRemoved(t *testing.T) {
	le, frame := binary.LittleEndian, frameBytes(t)
	tagged := func(kind byte, b []byte) []byte {
		return bytes.Join([][]byte{b[:12], {0x81, kind, 0x20, 7}, b[12:]}, nil)
	}
	fcs := append(bytes.Clone(frame), 1, 2, 3, 4)
	interfaceFCS := func(n byte) []byte {
		return capturetest.InterfaceBlock(le, capturetest.BlockOption(le, 13,
			[]byte{n}))
	}
	packet := func(b []byte, options ...[]byte) []byte { return capturetest.PacketBlock(le, 1, b, len(b), options...) }
	flags := capturetest.BlockOption(le, 2, le.AppendUint32(nil, 4<<5))
	plain := capturetest.InterfaceBlock(le)
	for _, tt := range []struct {
		name                string
		described, captured []byte
		want                Losses
	}{
		{"tag", plain, packet(tagged(0, frame)), Losses{Packets: 1, Updates: 1}},
		{"tag and FCS", interfaceFCS(4), packet(tagged(0, fcs)), Losses{Packets: 1, Updates: 1}},
		{"two tags", plain, packet(tagged(0, tagged(0, frame))), Losses{Packets: 1, Bypassed: 1}},
		{"FCS in bits", interfaceFCS(32), packet(fcs), Losses{Packets: 1, Updates: 1}},
		{"FCS beside the packet", plain, packet(fcs, flags), Losses{Packets: 1, Updates: 1}},
		{"FCS that nothing states", plain, packet(fcs), Losses{Packets: 1, Malformed: 1}},
		{"FCS that is not there", interfaceFCS(4), packet(frame), Losses{Packets: 1, Updates: 1}},
		{"FCS cut off", interfaceFCS(4), capturetest.PacketBlock(le, 1, frame[:100], len(fcs)),
			Losses{Packets: 1, Updates: 1, Truncated: 1}},
		{"FCS cut in the middle", interfaceFCS(4), capturetest.PacketBlock(le, 1, fcs[:258], len(fcs)),
			Losses{Packets: 1, Updates: 1}},
	} {
		_, l, err := decodeAll(bytes.Join([][]byte{capturetest.SectionHeader(le), tt.described, tt.captured}, nil))
		if l != tt.want {
			t.Errorf("%s: %+v, want %+v: %v", tt.name, l, tt.want, err)
		}
	}
	classic := sample(t, PCAP, 1)[:24]
	classic[23] = 0x24 // two words of FCS, and the flag for it
	if _, l, err := decodeAll(append(classic, record(0, 1, 260, 260, fcs)...)); err != nil || l.Updates != 1 {
		t.Errorf("a classic file that states an FCS: %+v, %v", l, err)
	}
}

func TestCompressorsAreNamed(t *testing.T) {
	for magic, program := range map[string]string{"\xfd7zXZ\x00": "xz", "\x28\xb5\x2f\xfd\x04": "zstd",
		"\x04\x22\x4d\x18d": "lz4", "BZh9": "bzip2"} {
		_, _, err := decodeAll([]byte(magic + "rest of the file"))
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), program+" -dc in.pcap | olafctl replay -") {
			t.Errorf("a file of %s: %v", program, err)
		}
	}
}
