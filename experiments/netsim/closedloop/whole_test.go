package closedloop

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/iswitch"
	"github.com/olafctl/olaf/fpga/program/xagg"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// watchParts returns parts whose programs are recorded in the order of creation.
func watchParts(parts system.Parts) (system.Parts, *[]*watchedProgram) {
	made := new([]*watchedProgram)
	keep := func(build func(program.Config) (program.Program, error)) func(program.Config) (program.Program, error) {
		return func(cfg program.Config) (program.Program, error) {
			p, err := build(cfg)
			w := &watchedProgram{Program: p}
			*made = append(*made, w)
			return w, err
		}
	}
	d := *parts.Program
	d.New = keep(d.New)
	if parts.Program = &d; parts.Root != nil {
		parts.Root = keep(parts.Root)
	}
	return parts, made
}

// watchedProgram records the configuration of jobs.
type watchedProgram struct {
	program.Program
	jobs []string
}

func (w *watchedProgram) Configure(j program.Job) error {
	var members []program.Port
	for _, m := range j.Members {
		members = append(members, m.Port)
	}
	w.jobs = append(w.jobs, fmt.Sprintf("%v below %t in %d out %d", members, j.Parent, j.In, j.Out))
	return w.Program.Configure(j)
}

// TestCountsOfEveryTable checks that counts are summed over all programs, with and without the root, and that held
// memory corresponds to held slots if all tables are alike.
func TestCountsOfEveryTable(t *testing.T) {
	racks := lab(5)
	racks.PerRack = 2
	isw := iswitchParts(endpoint.ISwitch{Profile: iswitch.Exactly}, 8)
	for name, c := range map[string]struct {
		n     Network
		parts system.Parts
		made  int
		below int  // the first one below the root
		alike bool // slots of all tables have the same size
	}{
		"a switch": {lab(3), isw, 1, 1, true}, "racks": {racks, isw, 4, 1, true}, "servers": {grownTree(), xaggParts(), 3, 0, false},
		"switches": {hilly(3, 0), systemParts(t, "switchml", system.Options{Slots: 12}), 3, 1, false},
	} {
		parts, made := watchParts(c.parts)
		c.n.SetLoss(0.02)
		r := run(t, c.n, Job{Layout: endpoint.Layout{Values: 23, PerPacket: 4}, Updates: 5, Compute: 100 * olaf.Microsecond, Jitter: 1},
			parts, true, 2)
		if r.Hung || len(*made) != c.made {
			t.Fatalf("%s: hung %t, %d programs", name, r.Hung, len(*made))
		}
		all, below := make([]int64, len(r.Program.Names())), make([]int64, len(r.Program.Names()))
		slots, held, memory := 0, 0, olaf.Size(0)
		for i, p := range *made {
			for k, n := range p.Counts() {
				if all[k] += int64(n); i >= c.below {
					below[k] += int64(n)
				}
			}
			slots, held, memory = slots+p.Slots(), held+p.CountOccupied(), memory+p.Memory()
		}
		for k, counter := range r.Program.Names() {
			if r.Program.At(k) != all[k] || r.Below.At(k) != below[k] {
				t.Errorf("%s: %s is %d, and %d below the root; want %d and %d", name, counter, r.Program.At(k), r.Below.At(k), all[k],
					below[k])
			}
		}
		if r.Slots != slots || r.HeldLast != held || r.Memory != memory {
			t.Errorf("%s: %d slots, %d held, %d bytes; want %d, %d, %d", name, r.Slots, r.HeldLast, r.Memory, slots, held, memory)
		}
		if want := float64(r.OccupiedSlots) * float64(memory) / float64(slots); c.alike &&
			!(math.Abs(float64(r.OccupiedBytes)-want) <= 1e-9*want && want > 0) {
			t.Errorf("%s: %g bytes are held, want %g", name, float64(r.OccupiedBytes), want)
		}
	}
}

// hearing is a worker that records management packets.
type hearing struct {
	endpoint.Endpoint
	worker olaf.WorkerID
	heard  *[]string
}

func (h *hearing) Receive(now olaf.Time, p *program.Packet, lanes []uint32) {
	if p.Kind == program.Control && p.Action == xagg.Renew {
		*h.heard = append(*h.heard, fmt.Sprintf("worker %d at %d: change %d", h.worker, now, p.Value))
	}
	h.Endpoint.Receive(now, p, lanes)
}

// TestManagementNotifiesEveryWorkerOnce checks that after a server's failure management notifies every worker of the
// first change once, at the configured instant, and configures the children of every remaining server.
func TestManagementNotifiesEveryWorkerOnce(t *testing.T) {
	const killed, noticed = 150 * olaf.Microsecond, 40 * olaf.Microsecond
	n := grownTree()
	for i := range n.Tree.Servers {
		n.Tree.Servers[i].Link.Rate = olaf.Rate(i+1) * olaf.Gbps
	}
	n.Tree.Kill = &Kill{Server: 1, At: killed, Noticed: noticed}
	parts, made := watchParts(xaggParts())
	var heard, want []string
	build := parts.Worker
	parts.Worker = func(cfg endpoint.Config, h endpoint.Host) (endpoint.Endpoint, error) {
		e, err := build(cfg, h)
		return &hearing{e, cfg.Worker, &heard}, err
	}
	r := run(t, n, Job{Layout: endpoint.Layout{Values: 23, PerPacket: 4}, Updates: 5, Compute: 200 * olaf.Microsecond}, parts, true, 1)
	for w := range n.Workers {
		want = append(want, fmt.Sprintf("worker %d at %d: change 1", w, killed+noticed))
	}
	if r.Hung || !slices.Equal(heard, want) {
		t.Errorf("hung %t; workers heard %q, want %q", r.Hung, heard, want)
	}
	for i, want := range [][]string{
		{"[0 1] below false in 1000000000 out 1000000000", "[0 1 2 3] below false in 1000000000 out 1000000000"},
		{"[0 1 2] below true in 2000000000 out 2000000000"},
		{"[0 1] below true in 3000000000 out 3000000000", "[0 1] below true in 3000000000 out 3000000000"},
	} {
		if p := (*made)[i]; !slices.Equal(p.jobs, want) {
			t.Errorf("server %d was told %q, want %q", i, p.jobs, want)
		}
	}
}

// TestPicturesOfATree compares a snapshot of a tree of servers, with each worker's link and each server's fragments,
// with the tap at every moment.
func TestPicturesOfATree(t *testing.T) {
	n := grownTree()
	hub := n.Workers
	sent, came := make([]uint64, n.Workers), make([]uint64, n.Workers)
	j := Job{Layout: endpoint.Layout{Values: 23, PerPacket: 4}, Updates: 3, Compute: 50 * olaf.Microsecond, Jitter: 1}
	j.Tap = func(f *Frame) {
		switch {
		case f.To == hub && f.From < hub:
			sent[f.From]++
		case f.To < hub:
			came[f.To]++
		}
	}
	var last *Snapshot
	look := func(v *Snapshot, over bool) {
		for w, h := range v.Hosts {
			if h.Up.Frames < sent[w] || h.Down.Frames < came[w] || over &&
				(h.Up.Frames != sent[w] || h.Down.Frames != came[w] || h.Doing != Finished) {
				t.Fatalf("at %d worker %d had sent %d frames and been sent %d: %+v", v.Now, w, sent[w], came[w], h)
			}
		}
		for i, s := range v.Switches {
			name, slots := "root", 0
			if i > 0 {
				name, slots = fmt.Sprintf("aggregator-%d", i-1), j.Packets()
			}
			if s.Name != name || s.Slots != slots || s.Occupied != len(s.Table) || s.Occupied > s.Peak || over &&
				(s.Occupied > 0 || (s.Peak > 0) != (i > 0)) {
				t.Fatalf("at %d switch %d is %+v", v.Now, i, s)
			}
		}
		last = v
	}
	j.Follow = func(at, _ olaf.Time, l *Look) (olaf.Time, bool) {
		look(l.Snapshot(at), false)
		return at, true
	}
	r := run(t, n, j, xaggParts(), true, 3)
	look(last, true)
	if len(last.Hosts) != n.Workers || len(last.Switches) != 4 || last.Frames != r.Frames || last.Frames != r.Arrived ||
		fmt.Sprint(last.Program) != fmt.Sprint(r.Program) {
		t.Errorf("it ends as %+v; the result is %+v", last, r)
	}
}

// TestActivitiesHaveNames checks the word for each activity.
func TestActivitiesHaveNames(t *testing.T) {
	for d, want := range map[Doing]string{Talking: "talking", Computing: "computing", Applying: "applying", Finished: "done",
		Finished + 1: "done"} {
		if d.String() != want {
			t.Errorf("%d is %q, want %q", d, d, want)
		}
	}
}

// TestLossesAreReportedOnce checks for every network that each lost frame is reported once and does not arrive.
func TestLossesAreReportedOnce(t *testing.T) {
	racks := lab(5)
	racks.PerRack = 2
	for name, c := range map[string]struct {
		n     Network
		parts system.Parts
	}{
		"a switch": {lab(3), switchmlParts(2)}, "racks": {racks, switchmlParts(2)}, "a server": {lab(3), atpParts(crowdedATP("", 0))},
		"servers":  {grownTree(), xaggParts()},
		"switches": {hilly(3, 0), systemParts(t, "switchml", system.Options{Slots: 12})},
	} {
		e, arrived := new(ears), uint64(0)
		j := Job{Layout: endpoint.Layout{Values: 200, PerPacket: 4}, Updates: 5, Compute: 100 * olaf.Microsecond, Observer: e,
			Tap: func(*Frame) { arrived++ }}
		c.n.SetLoss(0.02)
		r := run(t, c.n, j, c.parts, true, 4)
		if r.Hung || e.lost == 0 || uint64(e.lost) != r.Lost || e.dropped != 0 || r.Arrived != arrived ||
			r.Frames != arrived+r.Lost+r.Underway {
			t.Errorf("%s: hung %t, heard of %+v and of %d that arrived; %d frames, %d lost, %d underway", name, r.Hung, *e, arrived,
				r.Frames, r.Lost, r.Underway)
		}
	}
}

// TestSumsStayExactAfterAServerFails checks that sums stay exact if management notices a failure at once, while packets
// of the failed server are in flight to servers with other children by then, which treat them as a stranger's.
func TestSumsStayExactAfterAServerFails(t *testing.T) {
	strangers := int64(0)
	for at := range 60 {
		n := grownTree()
		n.Tree.Servers[1].Link.Delay = 20 * olaf.Microsecond
		n.Tree.Kill = &Kill{Server: 1, At: 200*olaf.Microsecond + olaf.Duration(at)*5*olaf.Microsecond}
		strangers += exactlyOnceBut(t, n, xaggParts(), integers, 1, 1).Program.Of("stranger")
	}
	if strangers == 0 {
		t.Error("nothing was on its way")
	}
}

// TestTooManyChildrenIsAnError checks that a change that gives a server too many children is an error of the run.
func TestTooManyChildrenIsAnError(t *testing.T) {
	for workers, want := range map[int]error{xagg.MaxMembers: nil, xagg.MaxMembers + 1: program.ErrConfig} {
		n := grownTree()
		n.Workers, n.Tree.Servers, n.Tree.Workers = workers, n.Tree.Servers[:2], make([]int, workers)
		for w := range 10 {
			n.Tree.Workers[w] = 1
		}
		n.Tree.Kill = &Kill{Server: 1, At: olaf.Microsecond, Noticed: olaf.Microsecond}
		r, err := Run(t.Context(), n, Job{Layout: endpoint.Layout{Values: 4, PerPacket: 4}, Updates: 1, Compute: 10 * olaf.Microsecond},
			xaggParts(), true, 1)
		if !errors.Is(err, want) || (r == nil) != (want != nil) {
			t.Errorf("%d children: %v, want %v", workers, err, want)
		}
	}
}

// TestDelayedAckServerFinishes checks that a server that delays its acknowledgement finishes after the delay, even if
// nothing more arrives.
func TestDelayedAckServerFinishes(t *testing.T) {
	for _, packets := range []int{1, 3, 7} {
		o, slots := crowdedATP("", 0)
		o.Batch = 2 * packets
		j := Job{Layout: endpoint.Layout{Values: 4 * packets, PerPacket: 4}, Updates: 1, Compute: olaf.Microsecond}
		if r := run(t, lab(3), j, atpParts(o, slots), true, 1); r.Hung || r.Updates != 1 || r.Endpoints.Of("packets_repeated") > 0 {
			t.Errorf("%d packets: hung %t, %v", packets, r.Hung, r.Endpoints)
		}
	}
}

// TestPortsWithoutALimit checks that unlimited ports show no waiting frames in a snapshot.
func TestPortsWithoutALimit(t *testing.T) {
	n := hilly(4, 0)
	for i := range n.Hops.Switches {
		n.Hops.Switches[i].Up.Rate = 100 * olaf.Mbps
	}
	j := Job{Layout: endpoint.Layout{Values: 41, PerPacket: 4}, Updates: 1, Compute: 100 * olaf.Microsecond, Jitter: 0.1}
	sending, idle := 0, 0
	j.Follow = func(last, _ olaf.Time, look *Look) (olaf.Time, bool) {
		for i, p := range look.Ports(last)[1:] {
			if p.In != p.Left || p.Dropped != 0 || p.Most != 0 || p.Waiting != 0 || p.Sending && p.In == 0 {
				t.Fatalf("at %d the port of switch %d is %+v", last, i+1, p)
			}
			if p.Sending {
				sending++
			} else {
				idle++
			}
		}
		return last, true
	}
	if run(t, n, j, systemParts(t, "switchml", system.Options{}), true, 1); sending == 0 || idle == 0 {
		t.Errorf("ports sent at %d moments and were idle at %d", sending, idle)
	}
}
