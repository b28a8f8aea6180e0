package bench

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/backends/backendstest"
	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/p4ctl/agent"
)

// farLab is a laboratory whose cards and interface are on three hosts, each behind an agent.
type farLab struct {
	*backendstest.Lab
	server string // target of the host at whose interface frames arrive
	// up and down are how long a message to that host takes, and its answer.
	up, down olaf.Duration
	queue    string
}

// newFarLab serves both cards and the interface's host.
func newFarLab(t *testing.T) *farLab {
	t.Helper()
	l := &farLab{Lab: backendstest.NewLab(t), up: 2 * olaf.Microsecond, down: 2 * olaf.Microsecond}
	l.AddGenerator(t)
	capture := l.Access.Card.Capture
	l.Access.Card.Capture = nil
	l.queue = serveFar(t, backendstest.CardAddress, l.Access)
	alone := l.Access
	alone.Card = testbed.CardAccess{}
	generator := serveFar(t, backendstest.GeneratorAddress, alone)

	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	must(t, err)
	host := &testbed.HostService{
		Now: func() time.Time { // also between the two readings of an echo
			_ = l.Wait(context.Background(), l.up)
			now := l.Host(l.Card.Now())
			_ = l.Wait(context.Background(), l.down)
			return now
		},
		OpenFrames: func(live.Options) (testbed.Frames, error) { return capture() },
	}
	server := grpc.NewServer(agent.ServerOptions(nil)...)
	host.Register(server)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	l.server = "unix:" + listener.Addr().String()

	l.Access = backendstest.TestAccess()
	l.Access.Now, l.Access.Generator = l.Now, generator
	l.Access.Card = testbed.CardAccess{ServerPort: backendstest.ServerPort, Capture: func() (testbed.Frames, error) {
		h, err := testbed.DialHost("ps", l.server, l.Now)
		if err != nil {
			return nil, err
		}
		return h.OpenFrames(context.Background(), live.Options{Interface: "fake0"})
	}}
	return l
}

// serveFar lends a device and returns its address for others.
func serveFar(t *testing.T, address string, a testbed.Access) string {
	t.Helper()
	s, err := testbed.ServeDevice(t.Context(), address,
		testbed.ServeOptions{Listen: "unix:" + filepath.Join(t.TempDir(), "s"), Device: testbed.DeviceOptions{Access: a}})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return "grpc:" + s.Target
}

// TestBenchAcrossHosts checks that a generator, a queue and a server on three hosts whose clocks differ by hours give
// the twin's counters, and ages within the clocks' known uncertainty.
func TestBenchAcrossHosts(t *testing.T) {
	want := mustBench(t, cardSpec(), Options{})
	l := newFarLab(t)
	got := mustBench(t, cardSpec(), Options{Device: l.queue, Access: l.Access, AgeErrorPct: 2000})
	must(t, got.Err())
	sameRuns(t, got.Outcome, want.Outcome)
	if d := got.Outcome.Device.Address; !strings.Contains(d, "with the generator of grpc://unix:") {
		t.Errorf("it ran on %s", d)
	}
	worst := &got.Outcome.captured.worst
	if worst.Interface != "ps/fake0" || worst.YoungestNS <= 0 {
		t.Errorf("%+v", worst)
	}
	// The way to the host and back and its second reading take 8 µs, so the offset is known to 4 µs at best.
	if worst.UncertaintyNS < 800+2*2000 || worst.UncertaintyNS > 800+2*9000 {
		t.Errorf("the clocks are known to %d ns, want the round trip's half on either side, and the card's 800 ns", worst.UncertaintyNS)
	}
}

// TestSlowPathWithholdsAges checks that ages are withheld if the path between the hosts is too slow for them, and that
// counts remain.
func TestSlowPathWithholdsAges(t *testing.T) {
	l := newFarLab(t)
	l.up, l.down = 300*olaf.Microsecond, olaf.Microsecond
	got := mustBench(t, cardSpec(), Options{Device: l.queue, Access: l.Access})
	must(t, got.Err())
	for _, run := range got.Outcome.Runs[0] {
		if !run.Valid() || run.Metrics.Of("aom_cluster_ns") == run.Metrics.Of("aom_cluster_ns") || run.Counters.Of("delivered") == 0 {
			t.Errorf("invalid for %q, AoM %v, %d delivered; want no age", run.Invalid, run.Metrics.Of("aom_cluster_ns"), run.Counters.Of("delivered"))
		}
	}
}

// TestFarGeneratorNeedsServer checks that the error for a generator on another host names the missing requirement.
func TestFarGeneratorNeedsServer(t *testing.T) {
	l := newFarLab(t)
	l.Access.Card.Capture = nil
	_, err := testbed.OpenTestbed(t.Context(), l.queue, testbed.OpenOptions{Access: l.Access})
	if !errors.Is(err, testbed.ErrBackend) || !strings.Contains(err.Error(), "add --server ssh://HOST/INTERFACE") {
		t.Errorf("error %v", err)
	}
	l.Access.Generator = backendstest.ServeTwin(t, testbed.ServeOptions{})
	l.Access.Card.Capture = func() (testbed.Frames, error) { return nil, errors.New("not reached") }
	_, err = testbed.OpenTestbed(t.Context(), l.queue, testbed.OpenOptions{Access: l.Access})
	if !errors.Is(err, testbed.ErrUnsupported) || !strings.Contains(err.Error(), "has virtual time") {
		t.Errorf("error %v", err)
	}
}

// headClock returns the time of a clock that is behind the laboratory's and loses 50 ppm.
func (l *farLab) headClock() time.Time {
	now := l.Card.Now()
	return now.Add(-3*time.Second - now.Sub(l.Boot)/20_000)
}

// TestInjectedSkewIsRecovered checks that the measured offset of a clock that is 37 h and 3 s ahead and gains 90 ppm is
// right within its bound in 20 of 20 calibrations, over paths whose two directions differ.
func TestInjectedSkewIsRecovered(t *testing.T) {
	l := newFarLab(t)
	h, err := testbed.DialHost("ps", l.server, l.headClock)
	must(t, err)
	defer h.Close()
	for i := range 20 {
		l.up, l.down = olaf.Duration(1+i*7%11)*olaf.Microsecond, olaf.Duration(1+i*5%13)*20*olaf.Microsecond
		must(t, l.Wait(t.Context(), olaf.Second))
		got, err := h.Offset(t.Context())
		must(t, err)
		want := l.Host(l.Card.Now()).Sub(l.headClock())
		if wrong := time.Duration(got.OffsetNS) - want; max(wrong, -wrong) > time.Duration(got.BoundNS) {
			t.Errorf("calibration %d is wrong by %v, outside its bound of %v", i, wrong, time.Duration(got.BoundNS))
		}
	}
}
