package closedloop

import (
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/results/metric"
)

// Snapshot is a run at an instant. It does not change, whatever the run does next.
type Snapshot struct {
	Now      olaf.Time
	Events   uint64
	Rounds   uint32 // of every job
	Jobs     []JobSnapshot
	Hosts    []HostSnapshot
	Switches []SwitchSnapshot

	Frames, Lost, Underway uint64
	Endpoints              olaf.Counts // over all hosts
	Program                olaf.Counts // over all switches; nothing of switches that only forward
}

// JobSnapshot is a job: how many rounds all of its workers have the sum of, and how many workers have that of the next.
type JobSnapshot struct {
	Rounds uint32
	Ahead  int
	Done   bool
}

// Doing is what a host does.
type Doing uint8

const (
	Talking   Doing = iota // sending, or waiting for packets
	Computing              // a gradient
	Applying               // a sum
	Finished
)

// String is that in a word.
func (d Doing) String() string {
	return [...]string{"talking", "computing", "applying", "done"}[min(d, Finished)]
}

// HostSnapshot is a worker, or a server.
type HostSnapshot struct {
	Name        string
	Job, Worker int // from 0; of a server the number of workers
	Server      bool
	Doing       Doing
	Updates     uint64 // of its weights; of a server that only adds up none
	Counts      olaf.Counts
	Up, Down    LinkSnapshot // towards its switch, and back
}

// LinkSnapshot is one direction of a link.
type LinkSnapshot struct {
	Frames, Lost, Bytes uint64
	Busy                metric.Float // share of the time so far; a frame that is on it counts as a whole
}

// SwitchSnapshot is a switch: the root first, then racks.
type SwitchSnapshot struct {
	Name  string
	Slots int
	Held  int
	Peak  int
	Table []HeldSlot // those that are held, in order; the first MostSlots
}

// MostSlots is how many held slots of a switch a picture has.
const MostSlots = 1024

// HeldSlot is one that holds something.
type HeldSlot struct {
	Place int
	program.Slot
}

// Snapshot takes a picture at an instant from the latest event to the next.
func (l *Look) Snapshot(at olaf.Time) *Snapshot {
	s := l.sim
	v := &Snapshot{Now: at, Events: s.events, Rounds: s.job.Updates, Underway: uint64(s.meter.inFlight), Jobs: make([]JobSnapshot, s.jobs)}
	v.Endpoints = olaf.NewCounts(endpoints)
	for i := range s.wires {
		v.Frames += s.wires[i].Frames
		v.Lost += s.wires[i].Lost
	}
	names := s.net.Nodes(s.parts.Server != nil)
	for i, h := range s.hosts {
		one := HostSnapshot{
			Name: names[i], Job: h.job, Worker: h.worker, Server: h.server, Doing: h.doing, Updates: s.meter.hosts[i].updates, Counts: olaf.NewCounts(endpoints),
			Up: s.wires[s.access[i]].look(at), Down: s.wires[s.homes[i]].look(at),
		}
		if h.done {
			one.Doing = Finished
		}
		for k, n := range h.end.Counts() {
			one.Counts.SetAt(k, int64(n))
			v.Endpoints.SetAt(k, v.Endpoints.At(k)+int64(n))
		}
		v.Hosts = append(v.Hosts, one)
	}
	s.lookAtJobs(v)
	s.lookAtSwitches(v, names)
	return v
}

// lookAtJobs says how far the slowest worker of each job is, and how many are further.
func (s *sim) lookAtJobs(v *Snapshot) {
	for j := range v.Jobs {
		job := &v.Jobs[j]
		job.Done = s.meter.jobs[j].left == 0
		had := make([]uint32, s.workers)
		for w := range had {
			had[w] = uint32(v.Hosts[j*s.workers+w].Counts.Of("updates_applied"))
		}
		job.Rounds = slices.Min(had)
		for _, n := range had {
			if n > job.Rounds {
				job.Ahead++
			}
		}
	}
}

func (s *sim) lookAtSwitches(v *Snapshot, names []string) {
	for i := range s.switches {
		sw := &s.switches[i]
		one := SwitchSnapshot{Name: names[s.root()+i], Peak: sw.Table.Peak}
		if sw.Program != nil {
			one.Slots, one.Held = sw.Program.Slots(), sw.Program.Occupied()
			for at := 0; at < one.Slots && len(one.Table) < min(one.Held, MostSlots); at++ {
				if slot := sw.Program.Slot(at); slot.Held {
					slot.Lanes = nil // the program's own
					one.Table = append(one.Table, HeldSlot{at, slot})
				}
			}
			if v.Program.Ledger() == nil {
				v.Program = olaf.NewCounts(s.ledger)
			}
			for k, n := range sw.Program.Counts() {
				v.Program.SetAt(k, v.Program.At(k)+int64(n))
			}
		}
		v.Switches = append(v.Switches, one)
	}
}

// look is what a direction of a link carried so far.
func (w *wire) look(at olaf.Time) LinkSnapshot {
	l := LinkSnapshot{Frames: w.Frames, Lost: w.Lost, Bytes: w.Bytes, Busy: metric.Missing()}
	if at > 0 {
		l.Busy = metric.Float(min(w.Busy, int64(at))) / metric.Float(at)
	}
	return l
}
