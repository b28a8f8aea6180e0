package bench

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/backends/backendstest"
	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/regmap"
)

// loopback moves the test, on a separate thread, into a new network namespace, enables its loopback interface, and
// returns a socket that sends whole frames there.
func loopback(t *testing.T) (fd int) {
	t.Helper()
	runtime.LockOSThread() // never unlocked: the thread and the namespace end with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		t.Skipf("this needs root and network namespaces; unshare: %v", err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	up, err := unix.NewIfreq("lo")
	must(t, err)
	up.SetUint16(unix.IFF_UP)
	must(t, unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, up))
	const index = 1 // of the loopback interface in every namespace
	must(t, unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: index}))
	return fd
}

// keepUp keeps a rig's card in step with the host's time and sends the card's frames on a real interface.
type keepUp struct {
	*backendstest.Lab
	t    *testing.T
	fd   int
	boot time.Time
}

func (k *keepUp) Now() time.Time { return time.Now() }

// Wait advances time for the card and for the test.
func (k *keepUp) Wait(ctx context.Context, d olaf.Duration) error {
	timer := time.NewTimer(time.Duration(d / olaf.Nanosecond))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	k.catchUp()
	return ctx.Err()
}

// catchUp advances the card to the present.
func (k *keepUp) catchUp() {
	behind := time.Since(k.boot) - k.Card.Now().Sub(k.Lab.Boot)
	if cycles := int64(behind) / int64(olaf.Cycle/olaf.Nanosecond); cycles > 0 {
		_ = k.Card.Wait(context.Background(), olaf.Duration(cycles)*olaf.Cycle)
	}
	if err := k.Wire.Poll(); err != nil {
		k.t.Error(err)
	}
	for _, a := range k.Wire.Frames {
		if _, err := unix.Write(k.fd, a.Data); err != nil {
			k.t.Error(err)
		}
	}
	k.Wire.Frames = k.Wire.Frames[:0]
}

// TestBenchOnARealInterface checks with a fake card's frames on a real interface that every frame is counted, and that
// kernel and host agree on the time.
func TestBenchOnARealInterface(t *testing.T) {
	fd := loopback(t)
	r := backendstest.NewLab(t)
	k := &keepUp{Lab: r, t: t, fd: fd, boot: time.Now().Add(-time.Millisecond)}
	r.Card.OnLoad = func(_ int, offset, value uint32) uint32 {
		if offset == regmap.CommonCycles {
			k.catchUp()
			value, _ = r.Card.Twin().Read32(offset)
		}
		return value
	}
	r.Bus.Clock, r.Access.Card.Now = k, time.Now
	r.Access.Card.Capture = func() (testbed.Frames, error) {
		return live.Open(live.Options{Interface: "lo", Stamps: live.Kernel})
	}
	spec := cardSpec()
	want := mustBench(t, spec, Options{})
	for range 2 {
		got := mustBench(t, spec, Options{Device: backendstest.CardAddress, Access: r.Access})
		must(t, got.Err())
		for c := range want.Outcome.Runs {
			for i, w := range want.Outcome.Runs[c] {
				if g := got.Outcome.Runs[c][i]; !g.Counters.Equal(w.Counters) || !slices.Equal(g.Aggregations, w.Aggregations) {
					t.Errorf("configuration %d, run %d:\n%+v, want\n%+v", c, i, g.Counters, w.Counters)
				}
			}
		}
		t.Log(got.Bench.Statements)
	}
}
