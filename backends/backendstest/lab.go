// Package backendstest provides a software testbed for tests. It consists of a fake card, a host whose clock differs
// from the card's, and an interface at which the card's frames arrive.
package backendstest

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/backends"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/pcie/pcietest"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/twin"
	"github.com/olafctl/olaf/p4ctl/agent"
)

// Lab is a software testbed for tests. It consists of a fake card, a host whose clock differs from the card's, and an
// interface at which the card's frames arrive.
type Lab struct {
	Card *pcietest.Card
	// Generator is a second card, whose cable leads to the first one; nil before AddGenerator.
	Generator *pcietest.Card
	Bus       *pcie.Bus // the bus of both cards
	tables    *agent.Embedded
	Boot      time.Time
	// The host's clock is off by offset and drifts by ppm; after Step on the card it is set forward by a second.
	offset time.Duration
	ppm    float64
	Step   time.Duration
	Wire   *Wire
	Access testbed.Access
}

const ServerPort = 1

// NewLab returns a Lab in which reading the card's clock takes some time.
func NewLab(t *testing.T) *Lab {
	t.Helper()
	r := &Lab{tables: new(agent.Embedded), offset: 37 * time.Hour, ppm: 40}
	var err error
	r.Card, err = pcietest.New(twin.Config{Tables: testbed.TablesOf(r.tables), Wire: true})
	requireNoError(t, err)
	r.Boot = r.Card.Now()
	requireNoError(t, r.Card.Wait(t.Context(), olaf.Millisecond)) // the card has been on for a while
	r.Slow(800 * olaf.Nanosecond)
	bus, err := r.Card.Bus(t.TempDir(), pcietest.OpenNIC())
	requireNoError(t, err)
	r.Wire = &Wire{rig: r, Stamps: live.Kernel}
	bus.Clock, r.Bus = r, &bus
	r.Access = testbed.Access{Devices: devicesOn(r.Bus), Now: r.Now, Locks: bus.Locks, Card: testbed.CardAccess{
		Tables: func(testbed.CardTables) (agent.Backend, func() error, error) {
			return r.tables, func() error { return nil }, nil
		},
		Capture:    func() (testbed.Frames, error) { return r.Wire, nil },
		Now:        func() time.Time { return r.Host(r.Card.Now()) },
		ServerPort: ServerPort,
	}}
	return r
}

// AddGenerator adds a second card to the host and connects it to the first card by a cable.
func (r *Lab) AddGenerator(t *testing.T) {
	t.Helper()
	var err error
	r.Generator, err = pcietest.New(twin.Config{Wire: true})
	requireNoError(t, err)
	requireNoError(t, twin.Join(r.Generator.Twin(), r.Card.Twin()))
	f := pcietest.OpenNIC()
	f.BDF = "0000:5e:00.0"
	requireNoError(t, pcietest.WriteSysfs(r.Bus.Sysfs, f))
	r.Bus.Map = func(path string, _ int64, _ bool) (pcie.Window, error) {
		if strings.Contains(path, f.BDF) {
			return r.Generator, nil
		}
		return r.Card, nil
	}
	r.Slow(800 * olaf.Nanosecond)
}

// Slow makes every reading of a card's clock take d. Half of this time passes before the card answers.
func (r *Lab) Slow(d olaf.Duration) {
	for _, card := range []*pcietest.Card{r.Card, r.Generator} {
		if card == nil {
			continue
		}
		card.OnLoad = func(_ int, offset, value uint32) uint32 {
			if offset == regmap.CommonCycles {
				_ = r.Wait(context.Background(), d/2)
				value, _ = card.Blocks.Read32(offset)
				_ = r.Wait(context.Background(), d/2)
			}
			return value
		}
	}
}

// Host returns the time on the host's clock at an instant on the card's clock.
func (r *Lab) Host(at time.Time) time.Time {
	host := r.monotonicTime(at)
	if r.Step > 0 && at.Sub(r.Boot) > r.Step {
		host = host.Add(time.Second)
	}
	return host
}

// monotonicTime returns the time that the host's clock would show if it had never been set.
func (r *Lab) monotonicTime(at time.Time) time.Time {
	return at.Add(r.offset + time.Duration(float64(at.Sub(r.Boot))*r.ppm/1e6))
}

// Now returns the host's time with a monotonic reading, like time.Now. Setting the host's clock does not affect
// differences between such times.
func (r *Lab) Now() time.Time { return r.monotonicTime(r.Card.Now()) }

// Wait lets the time d pass for the cards and the host.
func (r *Lab) Wait(ctx context.Context, d olaf.Duration) error {
	if r.Generator != nil {
		if err := r.Generator.Wait(ctx, d); err != nil {
			return err
		}
	}
	return r.Card.Wait(ctx, d)
}

// Arrival is one frame that arrived at the interface.
type Arrival struct {
	At   time.Time // on the card's clock
	Ns   int64     // timestamp
	Data []byte
}

// Wire is an interface that assigns timestamps of the host's clock to the card's frames.
type Wire struct {
	rig     *Lab
	Stamps  live.Stamps
	MTU     int           // 0 if it is unknown
	Ahead   time.Duration // how far stamps are ahead of the host's clock
	Latency time.Duration // from the wire to the reader
	// Edit changes the nth frame, and returns how often it arrives; nil lets all arrive once.
	Edit   func(n int, a *Arrival) (times int)
	Lost   live.Drops
	Broken error

	Frames []Arrival
	seen   int
	number int
}

func (w *Wire) Info() live.Info            { return live.Info{Interface: "fake0", MTU: w.MTU, Stamps: w.Stamps} }
func (w *Wire) StampCounts() live.Stamped  { return live.Stamped{} }
func (w *Wire) Drops() (live.Drops, error) { return w.Lost, nil }
func (w *Wire) Close() error               { return nil }

func (w *Wire) Next(p *capture.Packet) error {
	if err := w.Poll(); err != nil {
		return err
	}
	if w.Broken != nil && w.number > 5 {
		return w.Broken
	}
	if len(w.Frames) == 0 || w.Frames[0].At.After(w.rig.Card.Now()) {
		return capture.ErrIdle
	}
	a := w.Frames[0]
	w.Frames = w.Frames[1:]
	w.number++
	*p = capture.Packet{Number: w.number, UnixNS: a.Ns, Data: a.Data, Wire: len(a.Data)}
	return nil
}

// Poll moves the frames that the card has sent to the interface.
func (w *Wire) Poll() error {
	sent, err := w.rig.Card.Sent(ServerPort)
	if err != nil {
		return err
	}
	for _, f := range sent {
		a := Arrival{At: f.At.Add(w.Latency), Ns: w.rig.Host(f.At).Add(w.Ahead).UnixNano(), Data: f.Data}
		w.seen++
		times := 1
		if w.Edit != nil {
			times = w.Edit(w.seen, &a)
		}
		for range times {
			w.Frames = append(w.Frames, a)
		}
	}
	return nil
}

// CardAddress is the address of the card, GeneratorAddress that of the second card.
const (
	CardAddress      = "pci:" + pcietest.BDF
	GeneratorAddress = "pci:0000:5e:00.0"
)

func requireNoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ServeTwin lends a twin for the duration of a test and returns its address.
func ServeTwin(tb testing.TB, o testbed.ServeOptions) string {
	tb.Helper()
	o.Listen = "unix:" + filepath.Join(tb.TempDir(), "s")
	s, err := testbed.ServeDevice(context.Background(), "twin:", o)
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

// TestDevices returns the table of all devices that tests can open.
func TestDevices() testbed.Devices {
	bus := pcie.HostBus()
	return devicesOn(&bus)
}

func devicesOn(bus *pcie.Bus) testbed.Devices {
	return testbed.Devices{testbed.TwinDevice(), backends.CardDevice(bus), testbed.AgentDevice()}
}

// TestAccess returns the access to the devices of TestDevices on this host.
func TestAccess() testbed.Access { return testbed.Access{Devices: TestDevices()} }
