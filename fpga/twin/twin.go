// Package twin is the software twin of a card. It has the same registers (fpga/regmap), tables and data path as the
// FPGA, in virtual time at 250 MHz. The packet generator sends frames to VNP4-1, which looks up their source. Updates
// of known workers pass the switch program, if one is built and selected, then OlafQueue and its output limiter, and
// leave for the parameter server. ACKs return through VNP4-2, which writes the queue's status into them and multicasts
// them to the cluster. The twin is event-driven, single-threaded and deterministic. Time passes only in Sleep, idle
// cycles take no computation, and the same register accesses and table contents always produce the same frames and
// counters.
package twin

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/regfile"
	"github.com/olafctl/olaf/fpga/regmap"
)

// ModelVersion must change whenever the same register accesses would produce other frames, times or counters than
// before.
const ModelVersion = "twin-1"

// clockHz is the clock rate of the modelled data path. One cycle is olaf.Cycle.
const clockHz = uint64(olaf.Second / olaf.Cycle)

// Config contains the parameters that are fixed by a bitstream, and the connections of the twin's ports. Everything
// else is set through registers. A limit of 0 selects its default.
type Config struct {
	Slots       int // default 4,096, at most engine.MaxSlots
	Clusters    int // default and maximum 65,536
	Descriptors int // default 2^24; memory is allocated as they are loaded
	// Tables answers the lookups of VNP4-1 and VNP4-2. If it is nil, all sources are unknown and all frames bypass the
	// queue.
	Tables TableLookup
	// Programs are built in front of the queue. If there are none, the build has no aggregator block.
	Programs []program.Description
	// Wire moves gradient lanes, and records every frame that leaves the card in either direction, for DrainPackets.
	// Record turns it on and off later.
	Wire bool
	// ReadPorts, 1 or 2, selects the timing of the logic with this number of read ports of the gradient memory. 0
	// selects the abstract model (docs/reference/semantics.md, Measured).
	ReadPorts int
	// Unit models the time that updates spend in the programs' hardware. nil adds no time.
	Unit *aggregator.Unit
	// Observer receives every event of the queue; it may be nil. A Replica has no observer.
	Observer Observer
}

// Fixed limits.
const (
	defaultSlots    = 4096
	defaultMemory   = 1 << 24
	contextInterval = 4096 // number of events between two checks of the context
)

// maxCycle is the last cycle that olaf.Time can represent.
const maxCycle = math.MaxInt64/int64(olaf.Cycle) - 1

// Twin is a card in software. It is not safe for concurrent use, except for the tables in Config.Tables.
type Twin struct {
	cfg    Config
	layout *regfile.Layout
	file   regfile.File[*Twin]
	// recording starts with the value of Config.Wire and is changed by Record.
	recording bool
	now       int64 // device time in cycles since power-up

	tables    tables
	front     front
	down      downlinks
	unit      unit
	queue     queue
	generator generator
	bus       bus
	inlet     inlet
	cable     *Twin // receiver of the generator's frames that leave over the wire; if nil, they are lost
	server    server
	counters  counters
	tap       tap
}

var _ fpga.Device = (*Twin)(nil)

// New returns a twin in its reset state at cycle 0.
func New(cfg Config) (*Twin, error) {
	cfg.Slots = orDefault(cfg.Slots, defaultSlots)
	cfg.Clusters = orDefault(cfg.Clusters, engine.MaxClusters)
	cfg.Descriptors = orDefault(cfg.Descriptors, defaultMemory)
	limits := []struct {
		what       string
		value, max int
	}{{"slots", cfg.Slots, engine.MaxSlots}, {"clusters", cfg.Clusters, engine.MaxClusters},
		{"descriptors", cfg.Descriptors, regfile.MaxDescriptors},
		{"read ports", max(1, cfg.ReadPorts), engine.MaxReadPorts}}
	for _, l := range limits {
		if l.value < 1 || l.value > l.max {
			return nil, fmt.Errorf("twin: %d %s cannot be built; 1 to %d can", l.value, l.what, l.max)
		}
	}
	return newTwin(cfg, regfile.NewLayout(cfg.capabilities()))
}

func newTwin(cfg Config, l *regfile.Layout) (*Twin, error) {
	t := &Twin{cfg: cfg, recording: cfg.Wire, layout: l}
	t.file = regfile.New(behaviour, t, l, cfg.Descriptors)
	t.tables.init(cfg.Tables)
	if err := t.powerOn(); err != nil {
		return nil, err
	}
	return t, nil
}

// Replica returns another twin with the same build and the same tables, in its reset state and without an observer. It
// is used for parallel runs.
func (t *Twin) Replica() *Twin {
	cfg := t.cfg
	cfg.Observer = nil
	r, err := newTwin(cfg, t.layout)
	if err != nil {
		panic(fmt.Sprintf("twin: what was built once cannot be built again: %v", err)) // same inputs as in the first build
	}
	return r
}

func orDefault(v, otherwise int) int {
	if v == 0 {
		return otherwise
	}
	return v
}

// powerOn resets registers, memories and counters. Time continues, and earlier deliveries can still be drained.
func (t *Twin) powerOn() error {
	t.file.Reset()
	t.generator.reset()
	t.bus.reset()
	t.inlet.reset()
	t.server = server{pending: t.server.pending[:0]}
	t.counters.reset(t.now)
	t.front.reset(t.now)
	t.down.reset()
	t.unit.reset(&t.cfg)
	return t.queue.rebuild(t)
}

// Identity returns the identity of the twin, whose build is the version of its model.
func (t *Twin) Identity() fpga.Identity {
	return fpga.Identity{
		Address:    "twin:",
		Kind:       "twin",
		MapVersion: fmt.Sprintf("%d.%d.%d", regmap.VersionMajor, regmap.VersionMinor, regmap.VersionPatch),
		Build:      ModelVersion,
		ClockHz:    clockHz,
	}
}

// Close closes the twin. All later accesses fail with fpga.ErrGone.
func (t *Twin) Close() error {
	t.file.Close()
	return nil
}

// errEndOfTime is returned if the virtual clock has reached its end.
var errEndOfTime = errors.New("the virtual clock ends 106 days after power-up")

// Sleep lets d of virtual time pass, rounded up to whole cycles, and handles all events in this time. It checks ctx
// every few thousand events. If ctx is done, time stops at the last event and the context's error is returned.
func (t *Twin) Sleep(ctx context.Context, d olaf.Duration) error {
	if err := t.file.CheckOpen(); err != nil {
		return err
	}
	cycles := int64(max(d, 0) / olaf.Cycle)
	if d%olaf.Cycle > 0 {
		cycles++
	}
	if cycles > maxCycle-t.now {
		return fmt.Errorf("twin: %w: %w", fpga.ErrRefused, errEndOfTime)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return t.handleEvents(ctx, t.now+cycles)
}

// handleEvents handles every event up to and including the cycle until. At equal times departures precede ACKs, and
// ACKs precede arrivals.
func (t *Twin) handleEvents(ctx context.Context, until int64) error {
	look := contextInterval
	for {
		if look--; look == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			look = contextInterval
		}
		arrival := min(t.generator.next, t.bus.next, t.unit.next, t.inlet.next)
		if t.needsSteps() {
			if at := min(t.queue.nextEvent(), t.server.nextDue(), t.down.nextArrival()); at <= arrival && at <= until {
				t.stepTo(at)
				continue
			}
		}
		if arrival > until {
			break
		}
		t.now = max(t.now, arrival)
		switch arrival {
		case t.unit.next:
			t.releaseHeld()
		case t.bus.next:
			t.stepBus()
		case t.inlet.next:
			t.receive()
		default:
			t.generator.fire(t)
		}
	}
	t.now = until
	t.queue.advance(t.now)
	t.deliverSums()
	return nil
}

// needsSteps reports whether every departure must be handled at its own time, because the queue may be observed in
// between. Otherwise it can be handled with the next arrival.
func (t *Twin) needsSteps() bool {
	return t.cfg.Observer != nil || t.server.pendingAcks() > 0 || t.acksEnabled()
}

// stepTo handles the departures and ACKs of one cycle.
func (t *Twin) stepTo(at int64) {
	t.now = max(t.now, at)
	t.queue.advance(t.now)
	t.watchStart()
	for t.server.nextDue() <= t.now {
		t.passAck()
	}
	t.deliverSums()
}

const never = math.MaxInt64

func cycleTime(cycle int64) olaf.Time { return olaf.Time(cycle * int64(olaf.Cycle)) }

func cycleOf(at olaf.Time) int64 { return int64(at) / int64(olaf.Cycle) }

// cycleBy returns the first cycle that begins at or after the given instant.
func cycleBy(at olaf.Time) int64 {
	cycle := cycleOf(at)
	if cycleTime(cycle) < at {
		cycle++
	}
	return cycle
}
