package closedloop

import (
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/results/metric"
)

// Snapshot is the state of a run at one instant. It is immutable.
type Snapshot struct {
	Now      olaf.Time
	Events   uint64
	Rounds   uint32 // per job
	Jobs     []JobSnapshot
	Hosts    []HostSnapshot
	Switches []SwitchSnapshot

	Frames, Lost, Underway uint64
	Endpoints              olaf.Counts // over all hosts
	Program                olaf.Counts // over all switches; empty for switches that only forward
}

// JobSnapshot is the progress of a job: the number of rounds that all its workers have received, and the number of
// workers that have received more.
type JobSnapshot struct {
	Rounds uint32
	Ahead  int
	Done   bool
}

// Doing is the current activity of a host.
type Doing uint8

const (
	Talking   Doing = iota // sending, or waiting for packets
	Computing              // computing a gradient
	Applying               // applying a sum
	Finished
)

// String returns the activity as a word.
func (d Doing) String() string {
	return [...]string{"talking", "computing", "applying", "done"}[min(d, Finished)]
}

// HostSnapshot is the state of a worker or a server.
type HostSnapshot struct {
	Name        string
	Job, Worker int // from 0; for a server, the number of workers
	Server      bool
	Doing       Doing
	Updates     uint64 // updates of the server's weights; 0 for a server that only adds
	Counts      olaf.Counts
	Up, Down    LinkSnapshot // to its switch, and back
}

// LinkSnapshot contains the frame counts for one direction of a link.
type LinkSnapshot struct {
	Frames, Lost, Bytes uint64
	Busy                metric.Float // share of the time so far; a frame on the wire counts in full
}

// SwitchSnapshot is the state of a switch. In a snapshot, the root comes before the racks.
type SwitchSnapshot struct {
	Name     string
	Slots    int
	Occupied int
	Peak     int
	Table    []HeldSlot // the first mostSlots held slots, in order
}

// mostSlots is the maximum number of occupied slots that a snapshot lists per switch.
const mostSlots = 1024

// HeldSlot describes an occupied slot.
type HeldSlot struct {
	Place int
	program.Slot
}

// Snapshot returns the state at the given instant, which must be between the latest and the next event.
func (l *Look) Snapshot(at olaf.Time) *Snapshot {
	s := l.sim
	v := &Snapshot{Now: at, Events: s.events, Rounds: s.job.Updates, Underway: uint64(s.meter.inFlight),
		Jobs: make([]JobSnapshot, s.jobs)}
	v.Endpoints = olaf.NewCounts(endpoints)
	for i := range s.wires {
		v.Frames += s.wires[i].Frames
		v.Lost += s.wires[i].Lost
	}
	names := s.net.NodeNames(s.parts.Server != nil)
	for i, h := range s.hosts {
		one := HostSnapshot{
			Name: names[i], Job: h.job, Worker: h.worker, Server: h.server, Doing: h.doing,
			Updates: s.meter.hosts[i].updates, Counts: olaf.NewCounts(endpoints),
			Up: s.wires[s.access[i]].snapshotAt(at), Down: s.wires[s.homes[i]].snapshotAt(at),
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

// lookAtJobs sets the progress of each job's slowest worker, and the number of workers that are ahead of it.
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
		one := SwitchSnapshot{Name: names[s.rootNode()+i], Peak: sw.Table.Peak}
		if sw.Program != nil {
			one.Slots, one.Occupied = sw.Program.Slots(), sw.Program.CountOccupied()
			for at := 0; at < one.Slots && len(one.Table) < min(one.Occupied, mostSlots); at++ {
				if slot := sw.Program.Slot(at); slot.Occupied {
					slot.Lanes = nil // the lanes belong to the program
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

// snapshotAt returns the frame counts of one direction of a link up to the given instant.
func (w *wire) snapshotAt(at olaf.Time) LinkSnapshot {
	l := LinkSnapshot{Frames: w.Frames, Lost: w.Lost, Bytes: w.Bytes, Busy: metric.Missing()}
	if at > 0 {
		l.Busy = metric.Float(min(w.Busy, int64(at))) / metric.Float(at)
	}
	return l
}
