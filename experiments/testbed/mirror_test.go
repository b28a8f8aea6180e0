package testbed

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

// mirrorLab is a generator and a server with different clocks. Times are true times in ns, and the server's clock shows
// true time.
type mirrorLab struct {
	fpga.Registers
	nowNS, startNS int64
	skewNS, ppb    int64 // of the generator's clock
}

// generatorNS returns the generator's clock.
func (l *mirrorLab) generatorNS(at int64) int64 {
	return 1e12 + at + l.skewNS + int64(float64(at)*float64(l.ppb)/1e9)
}

func (l *mirrorLab) now() time.Time { return time.Unix(0, l.nowNS) }

func (l *mirrorLab) Read32(addr uint32) (uint32, error) {
	at := l.nowNS
	switch addr {
	case regmap.GeneratorStartCycle, regmap.GeneratorStartCycle + 4:
		if at = l.startNS; at == 0 {
			return 0, nil
		}
	case regmap.CommonCycles:
		l.nowNS += 1000
	}
	v := uint64(l.generatorNS(at) / cycleNS)
	if addr == regmap.CommonCycles+4 || addr == regmap.GeneratorStartCycle+4 {
		return uint32(v >> 32), nil
	}
	return uint32(v), nil
}

// mirrorFrames are frames at one interface of the server's host.
type mirrorFrames struct {
	lab  *mirrorLab
	name string
	all  []capture.Packet
}

func (f *mirrorFrames) Info() live.Info            { return live.Info{Interface: f.name, Stamps: live.Kernel} }
func (f *mirrorFrames) StampCounts() live.Stamped  { return live.Stamped{} }
func (f *mirrorFrames) Drops() (live.Drops, error) { return live.Drops{}, nil }
func (f *mirrorFrames) Close() error               { return nil }

func (f *mirrorFrames) Next(p *capture.Packet) error {
	if len(f.all) == 0 || f.all[0].UnixNS > f.lab.nowNS {
		return capture.ErrIdle
	}
	*p, f.all = f.all[0], f.all[1:]
	return nil
}

// add adds an arriving frame.
func (f *mirrorFrames) add(t *testing.T, at int64, u *olaf.Update) {
	t.Helper()
	data := make([]byte, olaf.FrameSize(int(u.Lanes)))
	n, err := olaf.EncodeUpdate(data, &olaf.Addresses{}, u, make([]int32, u.Lanes))
	if err != nil {
		t.Fatal(err)
	}
	f.all = append(f.all, capture.Packet{Number: len(f.all) + 1, UnixNS: at, Data: data[:n], Wire: n})
}

// run sends updates, of which the queue drops every fifth, merges every fourth with its predecessor, and delivers the others. It
// returns the true ages of the delivered ones, from passing the mirrored cable to the server.
func (l *mirrorLab) run(t *testing.T, draw *rand.Rand, server, mirror *mirrorFrames, lost int) (ages []int64) {
	t.Helper()
	l.nowNS += 1e6
	l.startNS = l.nowNS
	at, out := l.startNS, int64(0)
	for seq := range 40 {
		at += 20_000 + draw.Int64N(50_000)
		sent := at - 500 - draw.Int64N(2_000) // the time to the cable varies
		u := olaf.Update{GenNS: uint64(l.generatorNS(sent) - l.generatorNS(l.startNS)), Seq: uint32(seq), Worker: olaf.WorkerID(seq % 3),
			Cluster: olaf.ClusterID(seq % 2), Count: 1, Lanes: 4}
		if seq != lost {
			mirror.add(t, at, &u)
		}
		if seq%4 == 3 {
			u.Count = 2
		}
		if seq%5 != 4 {
			out = max(out, at) + 5_000 + draw.Int64N(30_000)
			server.add(t, out, &u)
			ages = append(ages, out-at)
		}
	}
	l.nowNS = out + 1e7
	return ages
}

// TestMirrorNeedsNoClock checks ages between two clocks with a skew of up to 3 s and a drift of up to 50 ppm, where the
// generator's clock is never compared well. In 20 of 20 runs, the server's own clock measures each age, from the copy
// of an update to its arrival, and the stated error is 0. Copies arrive at another interface, or among the server's
// frames.
func TestMirrorNeedsNoClock(t *testing.T) {
	draw := rand.New(rand.NewPCG(41, 2))
	for try := range 20 {
		l := &mirrorLab{nowNS: 1e15, skewNS: draw.Int64N(6e9) - 3e9, ppb: draw.Int64N(100_000) - 50_000}
		server, mirror := &mirrorFrames{lab: l, name: "eth0"}, &mirrorFrames{lab: l, name: "eth1"}
		source, copied := &Mirror{Open: func() (Frames, error) { return mirror, nil }}, mirror
		if try%2 == 1 { // the packets of one interface, in the order of their stamps
			source, copied = new(Mirror), new(mirrorFrames)
		}
		tap, err := NewTap(l, func() (Frames, error) { return server, nil }, source, l.now, 1)
		if err != nil {
			t.Fatal(err)
		}
		for again := range 2 { // the second run finds the first one's remains
			ages := l.run(t, draw, server, copied, -1)
			server.all = mergePackets(server.all, copied.all, source.Open == nil)
			if source.Open == nil {
				copied.all = nil
			}
			seen := tap.Drain(nil)
			if len(seen) != len(ages) {
				t.Fatalf("try %d, run %d: %d updates arrived, want %d", try, again, len(seen), len(ages))
			}
			for i, want := range ages {
				if got := seen[i].At.NS() - int64(seen[i].Update.GenNS); got != want {
					t.Errorf("try %d, run %d: update %d is %d ns old, want %d", try, again, i, got, want)
				}
			}
			c, err := tap.Capture()
			if err != nil || c.Mirror == "" || c.UncertaintyNS != 0 || c.DriftNS != 0 || c.Withheld != "" || c.Duplicates != 0 || len(c.Faults) > 0 {
				t.Errorf("try %d, run %d: %+v, %v", try, again, c, err)
			}
		}
	}
}

// mergePackets returns both lists in the order of their stamps, or only the first.
func mergePackets(a, b []capture.Packet, both bool) []capture.Packet {
	if !both {
		return a
	}
	var all []capture.Packet
	for len(a)+len(b) > 0 {
		if len(b) == 0 || len(a) > 0 && a[0].UnixNS < b[0].UnixNS {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return all
}

// TestMirrorThatMissesAnUpdate checks that the ages of a run in which a copy is missing are withheld, and that stamps
// of two clocks are rejected.
func TestMirrorThatMissesAnUpdate(t *testing.T) {
	l := &mirrorLab{nowNS: 1e15}
	server, mirror := &mirrorFrames{lab: l, name: "eth0"}, &mirrorFrames{lab: l, name: "eth1"}
	tap, err := NewTap(l, func() (Frames, error) { return server, nil }, &Mirror{Open: func() (Frames, error) { return mirror, nil }}, l.now, 1)
	if err != nil {
		t.Fatal(err)
	}
	l.run(t, rand.New(rand.NewPCG(1, 1)), server, mirror, 6)
	tap.Drain(nil)
	if c, err := tap.Capture(); err != nil || c.Withheld != "1 update had no copy at eth1 (clock.by mirror)" {
		t.Errorf("%+v, %v", c, err)
	}
	other := &hardwareFrames{mirrorFrames{lab: l, name: "eth2"}}
	_, err = NewTap(l, func() (Frames, error) { return server, nil }, &Mirror{Open: func() (Frames, error) { return other, nil }}, l.now, 1)
	if kind, _ := olaf.KindOf(err); kind != olaf.Usage {
		t.Errorf("stamps of two clocks: %v", err)
	}
}

// TestSilentMirrorWithholdsAges checks that ages are withheld if no copy arrives at another interface, and that a run
// is invalid if no copy arrives among the server's frames.
func TestSilentMirrorWithholdsAges(t *testing.T) {
	for name, c := range map[string]struct {
		apart           bool
		withheld, fault string
	}{
		"apart":             {true, "32 updates had no copy at eth1 (clock.by mirror)", ""},
		"among the updates": {false, "8 updates had no copy at eth0 (clock.by mirror)", "no update reached eth0 twice, so no switch mirrors the generator's cable to it (clock.by mirror)"},
	} {
		l := &mirrorLab{nowNS: 1e15}
		server, source := &mirrorFrames{lab: l, name: "eth0"}, new(Mirror)
		if c.apart {
			source.Open = func() (Frames, error) { return &mirrorFrames{lab: l, name: "eth1"}, nil }
		}
		tap, err := NewTap(l, func() (Frames, error) { return server, nil }, source, l.now, 1)
		if err != nil {
			t.Fatal(err)
		}
		l.run(t, rand.New(rand.NewPCG(1, 1)), server, new(mirrorFrames), -1)
		tap.Drain(nil)
		got, err := tap.Capture()
		if err != nil || got.Withheld != c.withheld || strings.Join(got.Faults, "|") != c.fault {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// hardwareFrames are frames stamped by a network card.
type hardwareFrames struct{ mirrorFrames }

func (f *hardwareFrames) Info() live.Info { return live.Info{Interface: f.name, Stamps: live.Hardware} }
