// Package testbedtest has a testbed made of software for tests: a fake card, a host whose clock is not the card's, and an
// interface at which the card's frames arrive.
package experiments

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/fpga/pcie/pcietest"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/twin"
	"github.com/olafctl/olaf/p4ctl/agent"
)

// rig is a laboratory made of software: a fake card, a host whose clock is not the card's, and an interface at which the
// card's frames arrive.
type rig struct {
	card   *pcietest.Card
	tables *agent.Embedded
	boot   time.Time
	// The host's clock is off by offset and drifts; once step has passed on the card it jumps by a second.
	offset time.Duration
	ppm    float64
	step   time.Duration
	wire   *fakeInterface
	access Access
}

const fakePort = 1

// newRig is a rig on which every read of the card's clock takes a while.
func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{tables: new(agent.Embedded), offset: 37 * time.Hour, ppm: 40}
	var err error
	r.card, err = pcietest.New(twin.Config{Tables: TablesOf(r.tables), Wire: true})
	ok(t, err)
	r.boot = r.card.Now()
	ok(t, r.card.Wait(t.Context(), olaf.Millisecond)) // it has been on for a while
	r.slow(800 * olaf.Nanosecond)
	bus, err := r.card.Bus(t.TempDir(), pcietest.OpenNIC())
	ok(t, err)
	r.wire = &fakeInterface{rig: r, stamps: live.Kernel}
	r.access = Access{Bus: &bus, Clock: r, Card: CardAccess{
		Tables: func(*CardTables) (agent.Backend, func() error, error) {
			return r.tables, func() error { return nil }, nil
		},
		Capture:    func() (Frames, error) { return r.wire, nil },
		ServerPort: fakePort,
	}}
	return r
}

// slow makes a read of the card's clock take d, half of it until the card answers.
func (r *rig) slow(d olaf.Duration) {
	r.card.OnLoad = func(_ int, offset, value uint32) uint32 {
		if offset == regmap.CommonCycles {
			_ = r.card.Wait(context.Background(), d/2)
			value, _ = r.card.Twin.Read32(offset)
			_ = r.card.Wait(context.Background(), d/2)
		}
		return value
	}
}

// host is the host's clock at an instant of the card's.
func (r *rig) host(at time.Time) time.Time {
	passed := at.Sub(r.boot)
	host := at.Add(r.offset + time.Duration(float64(passed)*r.ppm/1e6))
	if r.step > 0 && passed > r.step {
		host = host.Add(time.Second)
	}
	return host
}

func (r *rig) Now() time.Time                                  { return r.host(r.card.Now()) }
func (r *rig) Wait(ctx context.Context, d olaf.Duration) error { return r.card.Wait(ctx, d) }

// arrival is one frame at the interface.
type arrival struct {
	at   time.Time // when it is there, on the card's clock
	ns   int64     // its stamp
	data []byte
}

// fakeInterface stamps the frames of the card by the host's clock.
type fakeInterface struct {
	rig     *rig
	stamps  live.Stamps
	ahead   time.Duration // of the stamps before the host's clock
	latency time.Duration // from the wire to the reader
	// edit changes the nth frame, or says how often it arrives; nil lets all arrive once.
	edit   func(n int, a *arrival) (times int)
	drops  live.Drops
	broken error

	frames []arrival
	seen   int
	number int
}

func (w *fakeInterface) Info() live.Info            { return live.Info{Interface: "fake0", Stamps: w.stamps} }
func (w *fakeInterface) Stamped() live.Stamped      { return live.Stamped{} }
func (w *fakeInterface) Drops() (live.Drops, error) { return w.drops, nil }
func (w *fakeInterface) Close() error               { return nil }

func (w *fakeInterface) Next(p *capture.Packet) error {
	if err := w.poll(); err != nil {
		return err
	}
	if w.broken != nil && w.number > 5 {
		return w.broken
	}
	if len(w.frames) == 0 || w.frames[0].at.After(w.rig.card.Now()) {
		return capture.ErrIdle
	}
	a := w.frames[0]
	w.frames = w.frames[1:]
	w.number++
	*p = capture.Packet{Number: w.number, UnixNS: a.ns, Data: a.data, Wire: len(a.data)}
	return nil
}

// poll moves what the card sent to the interface.
func (w *fakeInterface) poll() error {
	sent, err := w.rig.card.Sent(fakePort)
	if err != nil {
		return err
	}
	for _, f := range sent {
		a := arrival{at: f.At.Add(w.latency), ns: w.rig.host(f.At).Add(w.ahead).UnixNano(), data: f.Data}
		w.seen++
		times := 1
		if w.edit != nil {
			times = w.edit(w.seen, &a)
		}
		for range times {
			w.frames = append(w.frames, a)
		}
	}
	return nil
}

const pciAddress = "pci:" + pcietest.BDF

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// startService lends a twin for the length of a test and returns the address that opens it.
func startService(tb testing.TB, o ServeOptions) string {
	tb.Helper()
	o.Listen = "unix:" + filepath.Join(tb.TempDir(), "s")
	s, err := Serve(context.Background(), "twin:", o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return "grpc:" + s.Target
}
