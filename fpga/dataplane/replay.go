package dataplane

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
)

// Comparison is the result of comparing a decision log with the engine. The log agrees with the engine if Void is empty
// and Equal is the same as Checked.
type Comparison struct {
	Checked int    // number of decisions replayed
	Equal   int    // replayed decisions that equal the engine's
	First   string // first difference; empty if all are equal
	Void    string // reason why the comparison is void, such as lost log entries; else empty
}

// Replayer repeats the kernel's decisions in the engine and compares the results. Decisions may be added in any order;
// they are replayed in the order of their numbers.
type Replayer struct {
	discipline engine.Discipline
	clusters   int
	pending    map[uint64]Decision
	next       uint64
	leaving    engine.Slot
	found      Comparison
}

// NewReplayer returns a replayer for a queue that was empty before decision 0. The error matches engine.ErrConfig.
func NewReplayer(discipline string, cfg engine.Config) (*Replayer, error) {
	d, err := engine.New(discipline, cfg)
	if err != nil {
		return nil, err
	}
	return &Replayer{discipline: d, clusters: cfg.Clusters, pending: map[uint64]Decision{}, leaving: engine.NoSlot}, nil
}

// Add adds a decision. Decisions are replayed as soon as all decisions with lower numbers have been added.
func (r *Replayer) Add(d *Decision) {
	r.pending[d.Number] = *d
	for {
		next, ok := r.pending[r.next]
		if !ok {
			return
		}
		delete(r.pending, r.next)
		r.next++
		r.replay(&next)
	}
}

// Compare returns the result of the comparison so far. It is void unless exactly total decisions were added.
func (r *Replayer) Compare(total uint64) Comparison {
	c := r.found
	if came := uint64(c.Checked + len(r.pending)); came != total || len(r.pending) > 0 {
		c.Void = fmt.Sprintf("the log lacks %d of %d decisions, starting with number %d", total-came, total, r.next)
	}
	return c
}

func (r *Replayer) replay(d *Decision) {
	r.found.Checked++
	differs := r.decide(d)
	if differs == "" {
		r.found.Equal++
	} else if r.found.First == "" {
		r.found.First = fmt.Sprintf("decision %d: %s", d.Number, differs)
	}
}

// decide repeats a decision in the engine and returns a description of the difference, or "" if there is none.
func (r *Replayer) decide(d *Decision) string {
	switch d.Kind {
	case Arrival:
		return r.arrive(d)
	case Start:
		return r.start(d)
	case Release:
		return r.release(d)
	case Flush:
		r.discipline.Flush()
		r.leaving = engine.NoSlot
		return ""
	}
	return fmt.Sprintf("unknown kind %d", d.Kind)
}

func (r *Replayer) arrive(d *Decision) string {
	u := d.Update
	if int(u.Cluster) >= r.clusters || u.Count == 0 || u.GenNS >= olaf.GenModulus {
		return fmt.Sprintf("the update is invalid: %+v", u)
	}
	o := r.discipline.Offer(0, &u, nil, nil)
	if o.Class != d.Class || o.Slot != d.Slot {
		return fmt.Sprintf("%v in slot %d, but the engine has %v in slot %d", d.Class, d.Slot, o.Class, o.Slot)
	}
	return ""
}

func (r *Replayer) start(d *Decision) string {
	slot, _, ok := r.discipline.Lock()
	if !ok {
		return fmt.Sprintf("slot %d starts, but the engine's output can't start", d.Slot)
	}
	r.leaving = slot
	var f engine.Frame
	r.discipline.View(slot, &f)
	want := olaf.Update{Cluster: f.Update.Cluster, Count: f.Update.Count, Lanes: f.Update.Lanes}
	if slot != d.Slot || d.Update != want {
		return fmt.Sprintf("slot %d starts with %+v, but the engine starts slot %d with %+v", d.Slot, d.Update, slot,
			want)
	}
	return ""
}

func (r *Replayer) release(d *Decision) string {
	leaving := r.leaving
	if leaving == engine.NoSlot {
		return fmt.Sprintf("slot %d is released, but nothing is leaving the engine", d.Slot)
	}
	r.discipline.Release(leaving)
	r.leaving = engine.NoSlot
	if leaving != d.Slot {
		return fmt.Sprintf("slot %d is released, but the engine releases slot %d", d.Slot, leaving)
	}
	return ""
}
