// Package enginetest tests queues. It reads, writes and replays golden vectors, and has a slow but obvious reference
// implementation. A vector lists the inputs of a queue and its exact outputs, with times in cycles. Its text form is
// described in docs/reference/semantics.md, Golden vectors.
package enginetest

import (
	"errors"
	"fmt"
	"io"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
)

// ErrFormat is matched by all errors of ParseVector.
var ErrFormat = errors.New("vector: bad format")

// Vector is a golden vector: a queue's configuration, inputs and outputs.
type Vector struct {
	Name   string
	About  []string // purpose of the vector, in lines
	Engine string   // one of engine.DisciplineNames
	Config engine.Config
	Output engine.Output
	Events []Event
	Stats  []Stat // after the last event, when the queue is empty
}

// Kind is the kind of an event.
type Kind uint8

const (
	In    Kind = iota // an update arrives
	Out               // a frame's last bit has left
	Flush             // all frames are discarded
)

// Event is an arrival, a departure or a flush in a vector. Events are in order of time.
type Event struct {
	Kind  Kind
	Cycle int64
	// Update is the update that arrived or left. Data has its gradients; nil if they do not matter.
	Update olaf.Update
	Data   []int32
	// Inside lists the contributors of a departed frame with provenance, or of an arrival merged by an earlier hop.
	Inside []olaf.Contributor
	// Class is the class of an arrival, or engine.Classes if the vector does not specify it.
	Class  engine.Class
	Queued int64 // departed frame: cycles since its slot was filled
}

// Stat is the final value of one counter.
type Stat struct {
	Name  string
	Value uint64
}

// ReplayVector runs the arrivals and flushes of v on the engine. It returns a copy of v with the actual outputs instead
// of the expected ones. The error matches engine.ErrConfig.
func ReplayVector(v *Vector) (*Vector, error) {
	d, err := engine.New(v.Engine, v.Config)
	if err != nil {
		return nil, err
	}
	return ReplayOn(d, v)
}

// ReplayOn does the same as ReplayVector, but on d, which must be empty and configured as v requires.
func ReplayOn(d engine.Discipline, v *Vector) (*Vector, error) {
	got := &Vector{Name: v.Name, About: v.About, Engine: v.Engine, Config: v.Config, Output: v.Output}
	p, err := engine.NewPortOf(d, v.Output, (*recorder)(got))
	if err != nil {
		return nil, err
	}
	for _, ev := range v.Events {
		at := olaf.Time(ev.Cycle) * olaf.Time(olaf.Cycle)
		switch ev.Kind {
		case In:
			p.Advance(at) // records departures at this instant before the arrival
			ev.Class = p.OfferMerged(at, &ev.Update, ev.Data, ev.Inside).Class
			got.Events = append(got.Events, ev)
		case Flush:
			p.Flush(at)
			got.Events = append(got.Events, ev)
		}
	}
	idle := p.Drain()
	got.Stats = append(ListCounters(d.Stats()),
		Stat{"stall_cycles", p.StallCycles()},
		Stat{"idle_at", uint64(idle) / uint64(olaf.Cycle)})
	return got, nil
}

// recorder is a sink that appends departures to a vector.
type recorder Vector

func (r *recorder) Deliver(d *engine.Departure) {
	r.Events = append(r.Events, Event{
		Kind:   Out,
		Cycle:  int64(d.At) / int64(olaf.Cycle),
		Queued: int64(d.Queued) / int64(olaf.Cycle),
		Update: d.Frame.Update,
		Data:   append([]int32(nil), d.Frame.Lanes...),
		Inside: append([]olaf.Contributor(nil), d.Frame.Contributors...),
	})
}

// ListCounters returns the counters in s, with the names used in vectors.
func ListCounters(s engine.Stats) []Stat {
	rows := engine.CounterRows()
	list := make([]Stat, len(rows))
	for i := range rows {
		list[i] = Stat{rows[i].Vector, rows[i].Of(&s)}
	}
	return list
}

// WriteVector writes v in canonical form. ParseVector reads it back unchanged.
func WriteVector(w io.Writer, v *Vector) error {
	p := &printer{w: w}
	p.line("vector %s", v.Name)
	for _, about := range v.About {
		p.line("# %s", about)
	}
	c, o := &v.Config, &v.Output
	p.line("queue %s slots=%d clusters=%d lanes=%d free_slot_on_start=%d reward_filter=%d reward_threshold=%d provenance=%d",
		v.Engine, c.Slots, c.Clusters, c.LaneMemory, boolBit(c.FreeSlotOnStart), boolBit(c.RewardFilter), c.RewardThreshold,
		boolBit(c.Provenance))
	p.line("output rate=%d overhead=%d dequeue=%d merge=%d", o.Rate, o.OverheadBytes, o.DequeueCycles, o.MergeCycles)
	for i := range v.Events {
		p.event(&v.Events[i])
	}
	for _, s := range v.Stats {
		p.line("stat %s %d", s.Name, s.Value)
	}
	p.line("end")
	return p.err
}

// printer writes formatted text and keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) print(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func (p *printer) line(format string, args ...any) { p.print(format+"\n", args...) }

func (p *printer) event(ev *Event) {
	switch ev.Kind {
	case Flush:
		p.line("flush %d", ev.Cycle)
		return
	case In:
		p.print("in %d", ev.Cycle)
	case Out:
		p.print("out %d queued=%d", ev.Cycle, ev.Queued)
	}
	u := &ev.Update
	p.print(" cluster=%d worker=%d seq=%d gen=%d reward=%d count=%d lanes=%d",
		u.Cluster, u.Worker, u.Seq, u.GenNS, u.Reward, u.Count, u.Lanes)
	before := " flags="
	for _, f := range flags {
		if u.Flags&f.flag != 0 {
			p.print("%s%s", before, f.name)
			before = "+"
		}
	}
	for i, lane := range ev.Data {
		p.print("%s%d", listSeparator(i, " data="), lane)
	}
	for i, who := range ev.Inside {
		p.print("%s%d:%d:%d", listSeparator(i, " inside="), who.Worker, who.Seq, who.GenNS)
	}
	if ev.Kind == In && ev.Class < engine.Classes {
		p.print(" => %s", ev.Class)
	}
	p.line("")
}

// namedFlag is an update flag with its name.
type namedFlag struct {
	name string
	flag olaf.Flags
}

var flags = []namedFlag{{"retransmission", olaf.Retransmission}, {"count_saturated", olaf.CountSaturated}}

func listSeparator(i int, first string) string {
	if i == 0 {
		return first
	}
	return ","
}

func boolBit(b bool) int {
	if b {
		return 1
	}
	return 0
}
