// Package twin is the software twin of one card: the same registers (fpga/regmap), the same tables and the same data path
// as the FPGA, in virtual time at 250 MHz.
//
// The packet generator fires frames into VNP4-1, which looks up their source; known updates go through the switch program, if
// one is built and chosen, and then through OlafQueue and its
// output limiter to the parameter server; ACKs come back through VNP4-2, which writes the queue's status into them and
// multicasts them to the cluster. The twin is event-driven, single-threaded and deterministic: time passes only in Sleep,
// idle cycles cost nothing, and the same register accesses and table contents always give the same frames and counters.
package twin

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/regfile"
	"github.com/olafctl/olaf/fpga/regmap"
)

// ModelVersion changes whenever the same programme would give other frames, times or counters.
const ModelVersion = "twin-1"

// ClockHz is the clock of the modelled data path: one cycle is olaf.Cycle.
const ClockHz = uint64(olaf.Second / olaf.Cycle)

// Config is what a bitstream fixes, and what hangs on the twin's ports. Everything else is programmed by registers. The
// zero value of a limit takes its default.
type Config struct {
	Slots       int // built slots, default 4,096, at most engine.MaxSlots
	Clusters    int // built clusters, default and at most 65,536
	Descriptors int // built descriptors, default 2^24; memory is taken as they are loaded
	// Tables answers VNP4-1 and VNP4-2; nil knows nobody, so that everything is bypassed.
	Tables TableLookup
	// Programs are built in front of the queue; without any the block aggregator is not there.
	Programs []program.Description
	// Wire moves gradient lanes and records every frame that leaves the card in either direction, for DrainPackets; Record
	// turns it off and on.
	Wire bool
	// ReadPorts, 1 or 2, makes the card keep the logic's own time, with so many read ports of its memory of gradients; 0 is the
	// abstract model (docs/reference/semantics.md, Measured).
	ReadPorts int
	// Unit is the hardware that programs run on, whose time updates take in front of them; nil takes none.
	Unit *aggregator.Unit
	// Observer is told every event of the queue as it happens; nil costs nothing. A Replica has none.
	Observer Observer
}

// Limits that every twin is built with.
const (
	defaultSlots    = 4096
	defaultMemory   = 1 << 24
	contextInterval = 4096 // events between two looks at the context
)

// maxCycle is as far as olaf.Time reaches.
const maxCycle = math.MaxInt64/int64(olaf.Cycle) - 1

// Twin is one software card. It is not safe for concurrent use, but for the tables behind Config.Tables.
type Twin struct {
	cfg    Config
	layout *regfile.Layout
	file   regfile.File[*Twin]
	// recording is Config.Wire, as long as nobody turns it off.
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
	cable     *Twin // to whose port the generator's frames go that leave by the wire; nil loses them
	server    server
	counters  counters
	tap       tap
}

var _ fpga.Device = (*Twin)(nil)

// New builds a twin in its reset state at cycle 0.
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
	return build(cfg, regfile.NewLayout(cfg.capabilities()))
}

func build(cfg Config, l *regfile.Layout) (*Twin, error) {
	t := &Twin{cfg: cfg, recording: cfg.Wire, layout: l}
	t.file = regfile.New(behaviour, t, l, cfg.Descriptors)
	t.tables.init(cfg.Tables)
	if err := t.powerOn(); err != nil {
		return nil, err
	}
	return t, nil
}

// Replica is another card of the same build with the same tables, in its reset state, for a parallel run. It has no
// observer.
func (t *Twin) Replica() *Twin {
	cfg := t.cfg
	cfg.Observer = nil
	r, err := build(cfg, t.layout)
	if err != nil {
		panic(fmt.Sprintf("twin: what was built once cannot be built again: %v", err)) // same inputs, same code
	}
	return r
}

func orDefault(v, otherwise int) int {
	if v == 0 {
		return otherwise
	}
	return v
}

// powerOn returns registers, memories and counters to their reset values. Time goes on, and what was delivered before can
// still be drained.
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

// Identity says which model this is.
func (t *Twin) Identity() fpga.Identity {
	return fpga.Identity{
		Address:    "twin:",
		Kind:       "twin",
		MapVersion: fmt.Sprintf("%d.%d.%d", regmap.VersionMajor, regmap.VersionMinor, regmap.VersionPatch),
		Build:      ModelVersion,
		ClockHz:    ClockHz,
	}
}

func buildHash() uint32 { return crc32.ChecksumIEEE([]byte(ModelVersion)) }

// Close makes every later access fail with fpga.ErrGone.
func (t *Twin) Close() error {
	t.file.Close()
	return nil
}

// errEndOfTime is what Sleep says at the end of the virtual clock.
var errEndOfTime = errors.New("the virtual clock ends 106 days after power-up")

// Sleep lets d of virtual time pass, rounded up to whole cycles, and handles every event in it. It looks at ctx every few
// thousand events; when ctx is done, time stands at the last event and the context's error is returned.
func (t *Twin) Sleep(ctx context.Context, d olaf.Duration) error {
	if err := t.file.Closed(); err != nil {
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
	return t.run(ctx, t.now+cycles)
}

// run handles every event up to and including the cycle until. At equal time departures precede ACKs precede arrivals.
func (t *Twin) run(ctx context.Context, until int64) error {
	look := contextInterval
	for {
		if look--; look == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			look = contextInterval
		}
		arrival := min(t.generator.next, t.bus.next, t.unit.next, t.inlet.next)
		if t.stepwise() {
			if at := min(t.queue.next(), t.server.due(), t.down.next()); at <= arrival && at <= until {
				t.step(at)
				continue
			}
		}
		if arrival > until {
			break
		}
		t.now = max(t.now, arrival)
		switch arrival {
		case t.unit.next:
			t.release()
		case t.bus.next:
			t.carry()
		case t.inlet.next:
			t.receive()
		default:
			t.generator.fire(t)
		}
	}
	t.now = until
	t.queue.advance(t.now)
	t.arrive()
	return nil
}

// stepwise says whether every departure must be met at its own time, instead of with the next arrival: something that
// looks at the queue may happen in between.
func (t *Twin) stepwise() bool {
	return t.cfg.Observer != nil || t.server.pendingAcks() > 0 || t.acking()
}

// step handles departures and ACKs at one cycle.
func (t *Twin) step(at int64) {
	t.now = max(t.now, at)
	t.queue.advance(t.now)
	t.watchStart()
	for t.server.due() <= t.now {
		t.passAck()
	}
	t.arrive()
}

const never = math.MaxInt64

func cycleTime(cycle int64) olaf.Time { return olaf.Time(cycle * int64(olaf.Cycle)) }

func cycleOf(at olaf.Time) int64 { return int64(at) / int64(olaf.Cycle) }

// cycleBy is the first cycle in which an instant has come.
func cycleBy(at olaf.Time) int64 {
	cycle := cycleOf(at)
	if cycleTime(cycle) < at {
		cycle++
	}
	return cycle
}
