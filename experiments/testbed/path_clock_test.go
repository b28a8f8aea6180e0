package testbed

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/twin"
	"github.com/olafctl/olaf/pktgen"
)

// pathLab is a twin whose frames take a path of constant delay, with random queueing, to a server with another clock.
type pathLab struct {
	*twin.Twin
	t           *testing.T
	draw        *rand.Rand
	skewNS, ppb int64 // of the server's clock
	lost        int   // of the probe frames
	ages        map[uint32]int64
	waiting     [2][]capture.Packet // updates and probe frames
	frames      [2]*pathFrames
}

// pathNS is the constant delay of the path in ns, queueNS the mean of the random delay.
const pathNS, queueNS = 70_000, 30_000

// pathFrames are the frames of one kind at the server.
type pathFrames struct {
	*pathLab
	kind int
}

func (f *pathFrames) Info() live.Info            { return live.Info{Interface: "eth0", Stamps: live.Kernel} }
func (f *pathFrames) StampCounts() live.Stamped  { return live.Stamped{} }
func (f *pathFrames) Drops() (live.Drops, error) { return live.Drops{}, nil }
func (f *pathFrames) Close() error               { return nil }
func (f *pathFrames) Now() time.Time             { return time.Unix(0, f.serverNS(f.cycles())+1e9) }
func (f *pathFrames) LocalNow() time.Time        { return f.Now() }
func (f *pathFrames) Offset() (Offset, error)    { return Offset{}, nil }

// cycles returns the twin's clock in ns.
func (l *pathLab) cycles() int64 {
	v, err := regmap.Read64(l.Twin, regmap.CommonCycles)
	if err != nil {
		l.t.Fatal(err)
	}
	return int64(v) * cycleNS
}

// serverNS returns the server's time at a time of the generator's clock.
func (l *pathLab) serverNS(at int64) int64 {
	return 1_700_000_000e9 + at + l.skewNS + int64(float64(at)*float64(l.ppb)/1e9)
}

// Next returns the next frame of a kind.
func (f *pathFrames) Next(p *capture.Packet) error {
	f.receive()
	if len(f.waiting[f.kind]) == 0 {
		return capture.ErrIdle
	}
	*p, f.waiting[f.kind] = f.waiting[f.kind][0], f.waiting[f.kind][1:]
	return nil
}

// receive lets the frames that left the twin arrive. All of them bypass its queue, because it has no tables.
func (l *pathLab) receive() {
	start, err := regmap.Read64(l.Twin, regmap.GeneratorStartCycle)
	if err != nil {
		l.t.Fatal(err)
	}
	for i, out := range l.DrainPackets(nil) {
		kind := 0
		if out.Addresses.DestPort == regmap.NotOlafPort {
			if kind = 1; i < l.lost {
				continue
			}
		}
		data := make([]byte, olaf.FrameSize(int(out.Update.Lanes)))
		n, err := olaf.EncodeUpdate(data, &olaf.Addresses{}, &out.Update, make([]int32, out.Update.Lanes))
		if err != nil {
			l.t.Fatal(err)
		}
		binary.BigEndian.PutUint16(data[36:], out.Addresses.DestPort)
		queuedNS := int64(l.draw.ExpFloat64() * queueNS)
		if kind == 0 {
			l.ages[out.Update.Seq] = queuedNS
		}
		at := int64(start)*cycleNS + int64(out.Update.GenNS) + queuedNS
		l.waiting[kind] = append(l.waiting[kind], capture.Packet{UnixNS: l.serverNS(at + pathNS), Data: data[:n], Wire: n})
	}
	for kind := range l.waiting {
		slices.SortStableFunc(l.waiting[kind], func(a, b capture.Packet) int { return cmp.Compare(a.UnixNS, b.UnixNS) })
	}
}

// newPathLab returns the twin and the card that a bench uses.
func newPathLab(t *testing.T, draw *rand.Rand) (*pathLab, *Card) {
	t.Helper()
	dev, err := twin.New(twin.Config{Wire: true})
	if err != nil {
		t.Fatal(err)
	}
	l := &pathLab{Twin: dev, t: t, draw: draw, ages: map[uint32]int64{}, skewNS: draw.Int64N(6e9) - 3e9, ppb: draw.Int64N(100_000) - 50_000}
	dev.Record(true)
	if err := dev.Sleep(t.Context(), olaf.Second); err != nil {
		t.Fatal(err)
	}
	for kind := range l.frames {
		l.frames[kind] = &pathFrames{l, kind}
	}
	tap, err := NewTap(dev, func() (Frames, error) { return l.frames[0], nil }, nil, nil, 1)
	if err == nil {
		err = tap.openProbes(&Probes{Open: func() (Frames, error) { return l.frames[1], nil }})
	}
	if err != nil {
		t.Fatal(err)
	}
	return l, &Card{Device: dev, Tap: tap}
}

// updates is the source of updates every 20 µs.
type updates struct{ total, sent int }

func (u *updates) Total() int { return u.total }

func (u *updates) Fill(dst []regmap.Descriptor) (n int) {
	for ; n < len(dst) && u.sent < u.total; n++ {
		dst[n] = regmap.Descriptor{Time: uint64(u.sent) * 5000, Sequence: uint32(u.sent)}
		u.sent++
	}
	return n
}

// run sends updates and returns those that arrived and the report.
func (l *pathLab) run(ctx context.Context, c *Card, total int) ([]olaf.Observation, *fpga.Capture) {
	l.t.Helper()
	clear(l.ages)
	g := pktgen.NewGenerator(c.Device)
	job := pktgen.Job{Placement: pktgen.Placement{Workers: 1, Clusters: 1}, Addressing: pktgen.DefaultAddressing(), Size: olaf.FrameSize(4),
		Source: &updates{total: total}}
	seen, err := []olaf.Observation(nil), g.Program(ctx, job)
	if err == nil {
		err = g.ArmAndStart()
	}
	for range total {
		if err == nil {
			err = c.Device.Sleep(ctx, 40*olaf.Microsecond)
		}
		seen = c.Tap.Drain(seen)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	report, err := c.Capture()
	if err == nil {
		err = c.ReportPath(ctx, report)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return seen, report
}

// TestPathIsRecovered checks clocks that differ by up to 3 s and drift by up to 50 ppm, behind a path with a constant
// delay and random queueing. In 20 of 20 runs, the offset before the run is right within its bound, the drift is
// recovered, and every age above the path is right within the stated error and not below 0.
func TestPathIsRecovered(t *testing.T) {
	draw := rand.New(rand.NewPCG(41, 5))
	for try := range 20 {
		l, card := newPathLab(t, draw)
		tap := card.Tap.(*Tap)
		for again := range 2 {
			if probed, err := card.ProbePath(t.Context()); err != nil || !probed {
				t.Fatal(probed, err)
			}
			m := *tap.path.measured
			if off := m.offsetNS - (l.serverNS(m.atNS+pathNS) - m.atNS); off < -1 || off > m.boundNS {
				t.Errorf("try %d, run %d: the path's offset is wrong by %d ns, and its bound is %d ns", try, again, off, m.boundNS)
			}
			seen, report := l.run(t.Context(), card, 2000)
			if len(seen) != len(l.ages) || len(seen) != 2000 || report.LeftOver > 0 || !report.AbovePath || report.Withheld != "" || len(report.Faults) > 0 {
				t.Fatalf("try %d, run %d: %d updates of %d arrived: %+v", try, again, len(seen), len(l.ages), report)
			}
			drift := float64(l.ppb) * float64(int64(tap.run.start)*cycleNS+report.SpanNS-m.fromNS) / 1e9
			if off := math.Abs(float64(report.DriftNS) - drift); off > float64(report.UncertaintyNS) {
				t.Errorf("try %d, run %d: the clocks drifted by %.0f ns, and the report says %d ± %d ns", try, again, drift, report.DriftNS, report.UncertaintyNS)
			}
			bound := report.UncertaintyNS + max(report.DriftNS, -report.DriftNS)
			for i := range seen {
				got, want := seen[i].At.NS()-int64(seen[i].Update.GenNS), l.ages[seen[i].Update.Seq]
				if off := max(got-want, want-got); off > bound || got < 0 {
					t.Fatalf("try %d, run %d: update %d is %d ns old above the path, want %d ± %d", try, again, seen[i].Update.Seq, got, want, bound)
				}
			}
		}
	}
}

// TestPathWithholdsAges checks the reasons for which ages above the path are withheld, and the errors.
func TestPathWithholdsAges(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(l *pathLab, tap *Tap)
		withheld string
		fault    string
	}{
		"nothing":           {func(*pathLab, *Tap) {}, "", ""},
		"at_most":           {func(_ *pathLab, tap *Tap) { tap.path.atMostNS = 50 }, "and the testbed's file allows 50ns (clock.at_most)", ""},
		"a clock is set":    {func(l *pathLab, _ *Tap) { l.skewNS += 1e6 }, "", "a clock was set during the run"},
		"the path is short": {func(l *pathLab, tap *Tap) { tap.run.early = 1e6 }, "an update was faster than the quickest probe frame by 1ms", ""},
	} {
		l, card := newPathLab(t, rand.New(rand.NewPCG(1, 1)))
		tap := card.Tap.(*Tap)
		if _, err := card.ProbePath(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, _ = l.run(t.Context(), card, 10)
		report, err := card.Capture()
		if err != nil || report.Withheld != notProbed {
			t.Fatalf("%s: before the path is measured again, ages are withheld for %q, %v", name, report.Withheld, err)
		}
		c.change(l, tap)
		if err := card.ReportPath(t.Context(), report); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(report.Faults, "; "); !strings.Contains(report.Withheld, c.withheld) || (c.withheld == "") != (report.Withheld == "") ||
			!strings.Contains(got, c.fault) || (c.fault == "") != (got == "") {
			t.Errorf("%s: withheld %q, faults %q; want %q and %q", name, report.Withheld, got, c.withheld, c.fault)
		}
	}
	l, card := newPathLab(t, rand.New(rand.NewPCG(1, 1)))
	l.lost = pathProbes
	if _, err := card.ProbePath(t.Context()); !errors.Is(err, ErrProbes) || !strings.Contains(err.Error(), "0 of 64 (UDP port 9) reached eth0") {
		t.Errorf("no probe frame arrives: %v", err)
	}
}
