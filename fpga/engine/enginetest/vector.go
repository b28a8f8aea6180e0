// Package enginetest holds what a queue is tested against: golden vectors, which it reads, writes and replays, and a slow
// and obvious reference. A vector is what goes into a queue and exactly what must come out, with times in cycles; its text
// is described in docs/reference/semantics.md, Golden vectors.
package enginetest

import (
	"errors"
	"fmt"
	"io"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
)

// ErrFormat is the kind of every error of Parse; its text names the line.
var ErrFormat = errors.New("vector: bad format")

// Vector is one golden vector.
type Vector struct {
	Name   string
	About  []string // what it shows, one line each
	Engine string   // as in engine.Names
	Config engine.Config
	Output engine.Output
	Events []Event
	Stats  []Stat // after the last event and after everything inside has left
}

// Kind says what an event is.
type Kind uint8

const (
	In    Kind = iota // an update arrives
	Out               // a frame's last bit has left
	Flush             // everything inside is discarded
)

// Event is one line of a vector. Events are in the order in which they happen.
type Event struct {
	Kind  Kind
	Cycle int64
	// Update is what arrived or left; Data its gradients, nil where they do not matter.
	Update olaf.Update
	Data   []int32
	// Inside lists the contributors: of a frame that left, with provenance; of an arrival that an earlier hop merged.
	Inside []olaf.Contributor
	// Class is what became of an arrival; engine.Classes where the vector does not say.
	Class  engine.Class
	Queued int64 // of a frame that left: cycles since the append of its slot
}

// Stat is one counter at the end.
type Stat struct {
	Name  string
	Value uint64
}

// Replay runs the arrivals and flushes of v and returns v with what came out instead of what was expected. The error
// matches engine.ErrConfig.
func Replay(v *Vector) (*Vector, error) {
	d, err := engine.New(v.Engine, v.Config)
	if err != nil {
		return nil, err
	}
	return ReplayOn(d, v)
}

// ReplayOn is Replay through a discipline that somebody else made as v wants it. It must be empty.
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
			p.Advance(at) // so that what leaves at this instant is recorded before the arrival
			ev.Class = p.OfferMerged(at, &ev.Update, ev.Data, ev.Inside).Class
			got.Events = append(got.Events, ev)
		case Flush:
			p.Flush(at)
			got.Events = append(got.Events, ev)
		}
	}
	idle := p.Drain()
	got.Stats = append(Counters(d.Stats()),
		Stat{"stall_cycles", p.StallCycles()},
		Stat{"idle_at", uint64(idle) / uint64(olaf.Cycle)})
	return got, nil
}

// recorder is a vector to which departures are appended.
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

// Counters lists s under the names that vectors use.
func Counters(s engine.Stats) []Stat {
	rows := engine.Rows()
	list := make([]Stat, len(rows))
	for i := range rows {
		list[i] = Stat{rows[i].Vector, rows[i].Of(&s)}
	}
	return list
}

// Write prints v in the canonical form, which Parse reads back unchanged.
func Write(w io.Writer, v *Vector) error {
	p := &printer{w: w}
	p.line("vector %s", v.Name)
	for _, about := range v.About {
		p.line("# %s", about)
	}
	c, o := &v.Config, &v.Output
	p.line("queue %s slots=%d clusters=%d lanes=%d free_slot_on_start=%d reward_filter=%d reward_threshold=%d provenance=%d",
		v.Engine, c.Slots, c.Clusters, c.LaneMemory, bit(c.FreeSlotOnStart), bit(c.RewardFilter), c.RewardThreshold,
		bit(c.Provenance))
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

// printer keeps the first error of many writes.
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
		p.print("%s%d", separator(i, " data="), lane)
	}
	for i, who := range ev.Inside {
		p.print("%s%d:%d:%d", separator(i, " inside="), who.Worker, who.Seq, who.GenNS)
	}
	if ev.Kind == In && ev.Class < engine.Classes {
		p.print(" => %s", ev.Class)
	}
	p.line("")
}

// namedFlag is a property of an update by name.
type namedFlag struct {
	name string
	flag olaf.Flags
}

var flags = []namedFlag{{"retransmission", olaf.Retransmission}, {"count_saturated", olaf.CountSaturated}}

func separator(i int, first string) string {
	if i == 0 {
		return first
	}
	return ","
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
