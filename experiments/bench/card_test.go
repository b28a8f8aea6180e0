package bench

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/backends"
	"github.com/olafctl/olaf/backends/backendstest"
	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/internal/test/raced"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/store"
)

func cardSpec() Spec {
	spec := usualSpec()
	spec.Runs, spec.Workload.UpdatesPerWorker = 2, 60
	return spec
}

// sameRuns requires equal counters, and ages that differ by no more than the clocks' uncertainty.
func sameRuns(t *testing.T, got, want *Outcome) {
	t.Helper()
	off := float64(clockErrorNS(&got.captured.worst)) + 2 // stamps are whole ns
	for c := range want.Runs {
		for i := range want.Runs[c] {
			g, w := &got.Runs[c][i], &want.Runs[c][i]
			if !g.Counters.Equal(w.Counters) || !g.Valid() {
				t.Errorf("configuration %d, run %d: invalid for %q\n%+v, want\n%+v", c, i, g.Invalid, g.Counters, w.Counters)
			}
			if a, b := float64(g.Metrics.Of("aom_cluster_ns")), float64(w.Metrics.Of("aom_cluster_ns")); a == b ||
				!(math.Abs(a-b) <= off) {
				t.Errorf("configuration %d, run %d: AoM %v ns on the card, %v on the twin; the clocks are known to ±%v", c, i, a, b,
					off)
			}
		}
	}
}

// TestBenchOnACard checks that a card is measured like the twin: the same counters, and the same ages within the
// clocks' uncertainty, with the card owned by this process or by an agent.
func TestBenchOnACard(t *testing.T) {
	want := mustBench(t, cardSpec(), Options{})
	t.Run("own", func(t *testing.T) {
		r := backendstest.NewLab(t)
		got := mustBench(t, cardSpec(), Options{Device: backendstest.CardAddress, Access: r.Access, AgeErrorPct: 200})
		must(t, got.Err())
		sameRuns(t, got.Outcome, want.Outcome)
		if d := got.Outcome.Device; d.Address != backendstest.CardAddress || d.Kind != "pcie" {
			t.Errorf("it ran on %+v", d)
		}
		if c := &got.Outcome.captured.worst; c.UncertaintyNS != 800 || c.DriftNS > 10 || c.LateNS != 0 || c.YoungestNS <= 0 {
			t.Errorf("%+v", c)
		}
		said := strings.Join(got.Bench.Statements, "\n")
		for _, words := range []string{"fake0 are stamped by the kernel", "800ns from pairing", "old on arrival"} {
			if !strings.Contains(said, words) {
				t.Errorf("%q is not said in\n%s", words, said)
			}
		}
	})
	t.Run("agent", func(t *testing.T) {
		r := backendstest.NewLab(t)
		s, err := testbed.ServeDevice(t.Context(), backendstest.CardAddress,
			testbed.ServeOptions{Listen: "unix:" + filepath.Join(t.TempDir(), "s"), Device: testbed.DeviceOptions{Access: r.Access}})
		must(t, err)
		for range 2 { // the second bench finds the first one's remains
			got := mustBench(t, cardSpec(), Options{Device: "grpc:" + s.Target, Access: backendstest.TestAccess(), AgeErrorPct: 200})
			must(t, got.Err())
			sameRuns(t, got.Outcome, want.Outcome)
		}
		must(t, s.Close())
	})
}

// TestFramesFitTheCapture checks that a bench whose frames are larger than the MTU of the interface at which they are
// captured is refused in one line, whether this process or an agent captures, and that it runs after the MTU was raised.
func TestFramesFitTheCapture(t *testing.T) {
	r := backendstest.NewLab(t)
	expect := func(device, prefix string, access testbed.Access) {
		t.Helper()
		r.Wire.MTU = 200
		want := prefix + "device refused: interface fake0 has an MTU of 200, but frames need 242; run 'sudo ip link set fake0 mtu 242' there"
		if _, err := MeasureSpec(t.Context(), cardSpec(), Options{Device: device, Access: access}); !errors.Is(err, fpga.ErrRefused) || err.Error() != want {
			t.Errorf("%s: %v, want %q", device, err, want)
		}
		r.Wire.MTU = 242
		must(t, mustBench(t, cardSpec(), Options{Device: device, Access: access, AgeErrorPct: 200}).Err())
	}
	expect(backendstest.CardAddress, backendstest.CardAddress+": ", r.Access)
	s, err := testbed.ServeDevice(t.Context(), backendstest.CardAddress,
		testbed.ServeOptions{Listen: "unix:" + filepath.Join(t.TempDir(), "s"), Device: testbed.DeviceOptions{Access: r.Access}})
	must(t, err)
	expect("grpc:"+s.Target, "grpc://"+s.Target+": ", backendstest.TestAccess())
	must(t, s.Close())
}

// TestBenchOnTwoCards checks that the generator of one card and the queue of another give the twin's counters, and ages
// within the clocks' known uncertainty, and that the generator feeds its own queue again afterwards.
func TestBenchOnTwoCards(t *testing.T) {
	want := mustBench(t, cardSpec(), Options{})
	r := backendstest.NewLab(t)
	r.AddGenerator(t)
	r.Access.Generator = backendstest.GeneratorAddress
	got := mustBench(t, cardSpec(), Options{Device: backendstest.CardAddress, Access: r.Access, AgeErrorPct: 200})
	must(t, got.Err())
	sameRuns(t, got.Outcome, want.Outcome)
	if d := got.Outcome.Device; d.Address != backendstest.CardAddress+" with the generator of "+backendstest.GeneratorAddress {
		t.Errorf("it ran on %s", d.Address)
	}
	if v := r.Generator.Load32(regmap.GeneratorControl); v != 0 {
		t.Errorf("generator.control is %d after the bench", v)
	}
	bed, err := testbed.OpenTestbed(t.Context(), backendstest.CardAddress, testbed.OpenOptions{Access: r.Access})
	must(t, err)
	must(t, errors.Join(bed.CheckCable(t.Context()), bed.Close()))
	for name, generator := range map[string]string{"a twin's": "twin:", "its own, which is open": backendstest.CardAddress} {
		r.Access.Generator = generator
		_, err := testbed.OpenTestbed(t.Context(), backendstest.CardAddress, testbed.OpenOptions{Access: r.Access})
		if kind, _ := olaf.KindOf(err); kind != olaf.Device {
			t.Errorf("with %s generator: %v", name, err)
		}
	}
}

// TestGeneratorFeedsItsQueue checks that a bench on one card connects its generator to the queue, even if a pair that
// failed left the generator connected to the output. An image with an older register map, which lacks this choice, must
// work as before.
func TestGeneratorFeedsItsQueue(t *testing.T) {
	for name, spoil := range map[string]func(*backendstest.Lab){
		"left leading out": func(r *backendstest.Lab) { r.Card.Store32(regmap.GeneratorControl, regmap.GeneratorControlWire) },
		"map 1.4": func(r *backendstest.Lab) {
			slow := r.Card.OnLoad
			r.Card.OnLoad = func(n int, offset, value uint32) uint32 {
				switch offset {
				case regmap.CommonMapVersion:
					return 0x01040000
				case regmap.GeneratorControl:
					return regmap.Placeholder
				}
				return slow(n, offset, value)
			}
		},
	} {
		r := backendstest.NewLab(t)
		spoil(r)
		got := mustBench(t, cardSpec(), Options{Device: backendstest.CardAddress, Access: r.Access, AgeErrorPct: 200})
		if err := got.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFaultyFramesAndClocksInvalidateRuns checks the verdicts for faults of frames and clocks on the way.
func TestFaultyFramesAndClocksInvalidateRuns(t *testing.T) {
	raced.SkipRaced(t)
	spec := cardSpec()
	spec.Runs, spec.Versus, spec.OutRates = 2, "", spec.OutRates[:1]
	spec.Workload.UpdatesPerWorker = 300 // a run of 0.3 ms is polled several times
	every := func(k int, times int) func(int, *backendstest.Arrival) int {
		return func(n int, _ *backendstest.Arrival) int {
			if n%k == 0 {
				return times
			}
			return 1
		}
	}
	for name, c := range map[string]struct {
		spoil func(*backendstest.Lab)
		why   string // part of the first reason; empty for a valid run
	}{
		"nothing":          {func(*backendstest.Lab) {}, ""},
		"late frames":      {func(r *backendstest.Lab) { r.Wire.Latency = 5 * time.Millisecond }, ""},
		"frames too late":  {func(r *backendstest.Lab) { r.Wire.Latency = 2 * time.Second }, "lost on the cable from port 1 to fake0"},
		"lost on the wire": {func(r *backendstest.Lab) { r.Wire.Edit = every(100, 0) }, "lost on the cable from port 1 to fake0"},
		"two receive queues": {func(r *backendstest.Lab) {
			var held backendstest.Arrival
			r.Wire.Edit = func(n int, a *backendstest.Arrival) int {
				switch n % 100 {
				case 1:
					held = *a
				case 2:
					r.Wire.Frames = append(r.Wire.Frames, *a, held)
				default:
					return 1
				}
				return 0
			}
		}, ""},
		"lost in the card": {func(r *backendstest.Lab) {
			r.Wire.Edit = func(int, *backendstest.Arrival) int { r.Card.Ports[backendstest.ServerPort].Running[0x500]--; return 0 }
		}, "lost inside the card, behind the queue"},
		"twice": {func(r *backendstest.Lab) { r.Wire.Edit = every(100, 2) }, "more than the queue delivered"},
		"damaged": {func(r *backendstest.Lab) {
			r.Wire.Edit = func(_ int, a *backendstest.Arrival) int { a.Data[17] ^= 1; return 1 }
		}, "OLAF frames were damaged between the card and fake0"},
		"unsynchronised": {func(r *backendstest.Lab) { r.Wire.Stamps, r.Wire.Ahead = live.Hardware, -37*time.Second }, "phc2sys"},
		"stamps ahead": {func(r *backendstest.Lab) { r.Wire.Stamps, r.Wire.Ahead = live.Hardware, 37*time.Second },
			"later than the time at which they were read"},
		"clock step": {func(r *backendstest.Lab) { r.Step = 1300 * time.Microsecond }, "a clock was set during the run"},
		"interface removed": {func(r *backendstest.Lab) { r.Wire.Broken = live.ErrGone },
			"the capture failed: the interface is gone"},
		"lost in the socket": {func(r *backendstest.Lab) {
			r.Wire.Edit = func(n int, _ *backendstest.Arrival) int {
				if n%100 != 0 {
					return 1
				}
				r.Wire.Lost.Socket++
				return 0
			}
		}, "lost in the socket's buffer at fake0"},
		"lost in the network card": {func(r *backendstest.Lab) {
			r.Wire.Edit = func(n int, _ *backendstest.Arrival) int {
				if n%100 != 0 {
					return 1
				}
				r.Wire.Lost.RXMissed++
				return 0
			}
		}, "lost by the network card of fake0 or its driver"},
		"others' frames lost": {func(r *backendstest.Lab) {
			r.Wire.Edit = func(int, *backendstest.Arrival) int { r.Wire.Lost.RXDropped++; return 1 }
		}, ""},
		"wrong FCS": {func(r *backendstest.Lab) {
			r.Wire.Edit = func(int, *backendstest.Arrival) int { r.Card.Ports[backendstest.ServerPort].Running[0x5B8]++; return 1 }
		}, "with a wrong FCS left port 1"},
		"damaged at the other port": {func(r *backendstest.Lab) {
			r.Wire.Edit = func(int, *backendstest.Arrival) int { r.Card.Ports[0].Running[0x6C0]++; return 1 }
		}, "with a wrong FCS, too long or cut came to port 0"},
	} {
		t.Run(name, func(t *testing.T) {
			r := backendstest.NewLab(t)
			c.spoil(r)
			report := mustBench(t, spec, Options{Device: backendstest.CardAddress, Access: r.Access})
			run := &report.Outcome.Runs[0][0]
			if c.why == "" {
				if !run.Valid() {
					t.Fatalf("invalid for %q", run.Invalid)
				}
				return
			}
			if run.Valid() || !slices.ContainsFunc(run.Invalid, func(s string) bool { return strings.Contains(s, c.why) }) {
				t.Errorf("invalid for %q, want %q", run.Invalid, c.why)
			}
			if err := report.Err(); !errors.Is(err, ErrInvalid) {
				t.Errorf("the report says %v", err)
			}
		})
	}
}

// TestResetCountsAreRejected checks that counts that were reset are rejected.
func TestResetCountsAreRejected(t *testing.T) {
	before, after := []fpga.Port{{}, {Dropped: 100}}, []fpga.Port{{}, {Dropped: 3}}
	if _, err := fpga.SubtractPorts(before, after); !errors.Is(err, fpga.ErrDoubtful) || !strings.Contains(err.Error(), "port 1") {
		t.Error(err)
	}
	if rose, err := fpga.SubtractPorts(after, before); err != nil || rose[1].Dropped != 97 {
		t.Errorf("%+v, %v", rose, err)
	}
}

// TestClockErrorWithholdsAges checks that ages are withheld if the clocks' error may exceed the limit, and that counts
// stay.
func TestClockErrorWithholdsAges(t *testing.T) {
	spec := cardSpec()
	spec.Runs, spec.Versus, spec.OutRates = 1, "", spec.OutRates[:1]
	batched := func(r *backendstest.Lab) { // an interrupt for 64 frames
		var at time.Time
		r.Wire.Edit = func(n int, a *backendstest.Arrival) int {
			if n%64 == 1 {
				at = a.At.Add(10 * time.Microsecond)
			}
			a.At, a.Ns = at, r.Host(at).UnixNano()
			return 1
		}
	}
	for name, c := range map[string]struct {
		spoil    func(*backendstest.Lab)
		percent  float64
		withheld bool
	}{
		"a quick card":                          {func(r *backendstest.Lab) { r.Slow(40 * olaf.Nanosecond) }, 0, false},
		"a card as slow as PCIe":                {func(*backendstest.Lab) {}, 0, true},
		"the same, and it is accepted":          {func(*backendstest.Lab) {}, 200, false},
		"late stamps that give themselves away": {func(r *backendstest.Lab) { r.Slow(40 * olaf.Nanosecond); batched(r) }, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := backendstest.NewLab(t)
			c.spoil(r)
			report := mustBench(t, spec, Options{Device: backendstest.CardAddress, Access: r.Access, AgeErrorPct: c.percent})
			must(t, report.Err())
			run, said := &report.Outcome.Runs[0][0], strings.Join(report.Bench.Statements, "\n")
			if run.Counters.Of("received") == 0 || run.Metrics.Of("aom_cluster_ns").Known() == c.withheld ||
				run.Clusters[0].PeakAoM.Known() == c.withheld {
				t.Errorf("AoM %v\n%s", run.Metrics.Of("aom_cluster_ns"), said)
			}
			if c.withheld != strings.Contains(said, "withheld") ||
				c.withheld != strings.Contains(run.Missing["peak_aom_ns"], "ages may be off") {
				t.Errorf("%q\n%s", run.Missing, said)
			}
		})
	}
}

// TestFramesOfAnEarlierRun checks that late frames are not counted in the next run.
func TestFramesOfAnEarlierRun(t *testing.T) {
	spec := cardSpec()
	spec.Runs, spec.Versus, spec.OutRates = 2, "", spec.OutRates[:1]
	r := backendstest.NewLab(t)
	var held *backendstest.Arrival
	r.Wire.Edit = func(n int, a *backendstest.Arrival) int {
		if n == 5 {
			held = &backendstest.Arrival{Ns: a.Ns, Data: slices.Clone(a.Data)}
			return 0
		}
		if n == 700 {
			again := *held
			again.At = a.At
			held, r.Wire.Frames = nil, append(r.Wire.Frames, again)
		}
		return 1
	}
	report := mustBench(t, spec, Options{Device: backendstest.CardAddress, Access: r.Access})
	first, second := &report.Outcome.Runs[0][0], &report.Outcome.Runs[0][1]
	if held != nil || first.Valid() || first.Counters.Of("capture_lost") != 1 {
		t.Errorf("the first run: %+v, %q", first.Counters, first.Invalid)
	}
	if !second.Valid() || report.Outcome.captured.worst.LeftOver != 1 {
		t.Errorf("the second run: %q, %d left over", second.Invalid, report.Outcome.captured.worst.LeftOver)
	}
	if said := fmt.Sprint(report.Bench.Statements); !strings.Contains(said, "1 frame of an earlier run") {
		t.Error(said)
	}
}

// TestInterfaceComesBack checks that an interrupted capture invalidates its run, and the runs until it can be started
// again.
func TestInterfaceComesBack(t *testing.T) {
	spec := cardSpec()
	spec.Runs, spec.Versus, spec.OutRates = 4, "", spec.OutRates[:1]
	r := backendstest.NewLab(t)
	r.Wire.Broken = live.ErrGone
	opened := 0
	r.Access.Card.Capture = func() (testbed.Frames, error) {
		switch opened++; opened {
		case 1:
			return r.Wire, nil
		case 2:
			return nil, live.ErrInterface // it is still down
		}
		must(t, r.Wire.Poll())
		r.Wire.Broken, r.Wire.Frames = nil, nil // earlier frames were not captured
		return r.Wire, nil
	}
	report := mustBench(t, spec, Options{Device: backendstest.CardAddress, Access: r.Access})
	for i, want := range []string{live.ErrGone.Error(), live.ErrInterface.Error(), "", ""} {
		run := &report.Outcome.Runs[0][i]
		if run.Valid() != (want == "") || !strings.Contains(fmt.Sprint(run.Invalid), want) {
			t.Errorf("run %d: %q, want %q", i, run.Invalid, want)
		}
	}
	if opened != 3 {
		t.Errorf("it was started %d times", opened)
	}
}

// TestIncompleteCardsAreReported checks that missing parts of a card are reported.
func TestIncompleteCardsAreReported(t *testing.T) {
	r := backendstest.NewLab(t)
	for name, c := range map[string]struct {
		spoil func(*testbed.Access)
		kind  error
		says  string
	}{
		"no driver": {func(a *testbed.Access) { a.Card.Tables = nil }, backends.ErrIncomplete, "add the tables' driver (--vnp4-1"},
		"no capture": {func(a *testbed.Access) { a.Card.Capture = nil }, backends.ErrIncomplete,
			"add the parameter server's network interface (--capture"},
		"no such interface": {func(a *testbed.Access) {
			a.Card.Capture = func() (testbed.Frames, error) { return nil, live.ErrInterface }
		}, live.ErrInterface, ""},
		"driver fails": {func(a *testbed.Access) {
			a.Card.Tables = func(testbed.CardTables) (agent.Backend, func() error, error) {
				return nil, nil, errors.New("no library")
			}
		}, nil, "the tables' driver: no library"},
		"no such port": {func(a *testbed.Access) { a.Card.ServerPort = 2 }, nil, "no port 2"},
	} {
		a := r.Access
		c.spoil(&a)
		_, err := testbed.OpenTestbed(t.Context(), backendstest.CardAddress, testbed.OpenOptions{Access: a})
		if err == nil || c.kind != nil && !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	bed, err := testbed.OpenTestbed(t.Context(), backendstest.CardAddress, testbed.OpenOptions{Access: r.Access}) // nothing remained locked
	must(t, err)
	must(t, bed.Close())
}

// TestCardThatVanishes checks that a bench ends with the device's error, at any point.
func TestCardThatVanishes(t *testing.T) {
	for _, after := range []int{300, 1_000, 2_000} {
		r := backendstest.NewLab(t)
		r.Card.OnLoad = nil
		r.Card.AllOnesFrom(after)
		if _, err := MeasureSpec(t.Context(), cardSpec(), Options{Device: backendstest.CardAddress, Access: r.Access}); !errors.Is(err,
			fpga.ErrGone) {
			t.Errorf("after %d reads: %v", after, err)
		}
	}
}

// TestKeptRunOfACard checks that a stored run of a card can be recomputed from its frames, which are all stored, and
// that withheld ages stay withheld.
func TestKeptRunOfACard(t *testing.T) {
	for _, percent := range []float64{0, 200} {
		st, err := store.Open(t.TempDir())
		must(t, err)
		k := NewKeeper(st, time.Unix(1_700_000_000, 0))
		r := backendstest.NewLab(t)
		report := mustBench(t, cardSpec(), Options{Device: backendstest.CardAddress, Access: r.Access, AgeErrorPct: percent,
			Stream: NewStream(k)})
		id, err := k.Finish(report)
		must(t, err)
		f, err := st.Load(id)
		must(t, err)
		proof, err := archive.Verify(f, system.All().FindDeclaration)
		if err != nil || proof.Runs != 8 {
			t.Errorf("%+v, %v", proof, err)
		}
		must(t, st.Close())
	}
}

// TestCardWithoutProvenance checks that a card without provenance is not configured for it.
func TestCardWithoutProvenance(t *testing.T) {
	r := backendstest.NewLab(t)
	r.Card.OnLoad = func(_ int, offset, value uint32) uint32 {
		if offset == regmap.CommonCapabilities {
			value &^= regmap.CommonCapabilitiesProvenance
		}
		return value
	}
	must(t, mustBench(t, cardSpec(), Options{Device: backendstest.CardAddress, Access: r.Access}).Err())
	if mode, err := r.Card.Twin().Read32(regmap.QueueMode); err != nil || mode&regmap.QueueModeProvenance != 0 {
		t.Errorf("queue.mode is %#x, %v", mode, err)
	}
}

// TestNoAgesWithoutUpdates checks that without updates there are no statements about ages.
func TestNoAgesWithoutUpdates(t *testing.T) {
	var none, some captured
	none.addCapture(&fpga.Capture{Interface: "fake0", UncertaintyNS: 5}, false)
	some.addCapture(&fpga.Capture{Interface: "fake0", UncertaintyNS: 5, Updates: 1, YoungestNS: 9}, false)
	if n, s := len(none.listStatements()), len(some.listStatements()); n != 1 || s != 3 {
		t.Errorf("%d and %d statements: %q", n, s, none.listStatements())
	}
}
