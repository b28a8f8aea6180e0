package closedloop

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/atp"
	"github.com/olafctl/olaf/fpga/program/iswitch"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// hilly returns a tree of three levels: the root, a switch below it, and two below that with the workers of three jobs.
func hilly(workers, slots int) Network {
	n := lab(workers)
	n.Accelerator = Accelerator{}
	n.Jobs = 3
	n.Hops = &Hops{
		Switches: []Hop{{}, {Up: n.Link, Slots: slots}, {Parent: 1, Up: n.Link, Slots: slots}, {Parent: 1, Up: n.Link, Slots: slots}},
		Homes:    []int{2, 3, 2},
	}
	return n
}

// systemParts returns the parts of a system for three jobs, with its own frames.
func systemParts(t *testing.T, name string, o system.Options) system.Parts {
	t.Helper()
	s, err := system.All().Find(name)
	if err != nil {
		t.Fatal(err)
	}
	o.Jobs = 3
	parts, err := s.Modes[0].Parts(&o)
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

// TestHopsExactlyOnce checks that over several hops, with full ports and lossy links, every worker of every job ends
// every round with exactly one contribution of every worker, and that no slot remains in use.
func TestHopsExactlyOnce(t *testing.T) {
	seeds := 100
	if testing.Short() {
		seeds = 10
	}
	for _, c := range []struct {
		system  string
		options system.Options
		codec   codec
	}{
		{"iswitch", system.Options{Profile: "isw-x"}, floats}, {"switchml", system.Options{Slots: 12}, integers},
		{"atp", system.Options{Slots: 30, Window: 5}, integers},
		{"atp", system.Options{Profile: "paper", Slots: 30, Window: 5}, integers},
	} {
		parts := systemParts(t, c.system, c.options)
		for _, loss := range []float64{0, 0.001, 0.01, 0.05} {
			for _, slots := range []int{0, 8} {
				t.Run(fmt.Sprintf("%s/%s/%g/%d slots", c.system, c.options.Profile, loss, slots), func(t *testing.T) {
					for seed := range seeds {
						n := hilly(4, slots)
						n.SetLoss(loss)
						exactlyOnce(t, n, parts, c.codec, uint64(seed))
					}
				})
			}
		}
	}
}

// ears counts the notifications of an observer.
type ears struct{ computed, sent, whole, dropped, lost int }

func (e *ears) OnCompute(olaf.Time, int) { e.computed++ }
func (e *ears) OnSend(olaf.Time, int)    { e.sent++ }

func (e *ears) OnSumPacket(olaf.Time, *program.Packet) { e.whole++ }
func (e *ears) OnDrop(olaf.Time, *program.Packet)      { e.dropped++ }
func (e *ears) OnLoss(olaf.Time, *program.Packet)      { e.lost++ }

// TestFullPortDropsFrames checks that a port holds as many frames as it has slots besides the one on the wire and drops
// others, and that all drops are reported.
func TestFullPortDropsFrames(t *testing.T) {
	const updates = 6
	layout := endpoint.Layout{Values: 41, PerPacket: 4}
	for _, slots := range []int{0, 3} {
		n := hilly(4, slots)
		for i := range n.Hops.Switches {
			n.Hops.Switches[i].Up.Rate = 100 * olaf.Mbps
		}
		e := new(ears)
		j := Job{Layout: layout, Updates: updates, Compute: 100 * olaf.Microsecond, Jitter: 0.1, Observer: e}
		r := run(t, n, j, systemParts(t, "switchml", system.Options{}), true, 1)
		if r.Hung || r.Endpoints.Of("packets_inexact") > 0 {
			t.Fatalf("hung %v, %v", r.Hung, r.Endpoints)
		}
		vectors := updates * n.Jobs * n.Workers
		if e.computed != vectors || e.sent != vectors || e.whole < updates*n.Jobs*layout.Packets() {
			t.Errorf("%d slots: heard of %+v; %d vectors of %d packets", slots, *e, vectors, layout.Packets())
		}
		dropped := 0
		for i, p := range r.Ports[1:] {
			dropped += int(p.Dropped)
			if p.In != p.Dropped+p.Left || slots > 0 && p.Most > slots {
				t.Errorf("%d slots: port of switch %d: %+v", slots, i+1, p)
			}
			if most := r.Ports[2].Most; slots > 0 && most != slots {
				t.Errorf("%d slots: %d at most are held", slots, most)
			}
		}
		// Downward ports drop as well, which only the observer sees.
		if (dropped > 0) != (slots > 0) || dropped > e.dropped {
			t.Errorf("%d slots: %d dropped on the way up, heard of %d", slots, dropped, e.dropped)
		}
	}
}

// TestHopsTakeTheirTime checks that a sum takes as long as the links on its path: up for the last frame, and down for
// the answer.
func TestHopsTakeTheirTime(t *testing.T) {
	n := hilly(2, 0)
	n.Link.Delay, n.Link.Overhead = 10*olaf.Microsecond, 0
	for i := range n.Hops.Switches {
		n.Hops.Switches[i].Up.Delay, n.Hops.Switches[i].Up.Overhead = 100*olaf.Microsecond, 0
	}
	j := Job{Layout: endpoint.Layout{Values: 64, PerPacket: 64}, Updates: 1, Compute: olaf.Millisecond}
	r := run(t, n, j, systemParts(t, "switchml", system.Options{}), true, 1)
	// One frame of 308 B at 10 Gbps takes 246.4 ns on each of three links in each direction. Two jobs share a switch:
	// their sums follow each other twice, on the way up at the switch and again at the one above, where the third job's
	// arrives too.
	least := 1e6 + 2*(10e3+2*100e3) + 6*246.4
	if d := float64(r.Duration); d < least || d > least+4*246.4 {
		t.Errorf("the jobs took %g ns, want %g and the time of 4 frames at most", d, least)
	}
}

// TestOneLossOnEveryLink checks that all workers finish with exact sums if one frame, data or answer, is lost on every
// link in turn, and if every n-th retransmission is lost as well.
func TestOneLossOnEveryLink(t *testing.T) {
	for _, c := range []struct {
		parts system.Parts
		codec codec
	}{
		{switchmlParts(2), integers}, {iswitchParts(endpoint.ISwitch{Profile: iswitch.Exactly}, 8), floats},
		{atpParts(crowdedATP(atp.Released, 0)), integers},
	} {
		for worker := range 4 {
			for frame := 13; frame <= 60; frame++ {
				n := lab(4)
				n.Access = []Link{n.Link, n.Link, n.Link, n.Link}
				n.Access[worker].Every = frame
				exactlyOnce(t, n, c.parts, c.codec, uint64(frame))
			}
		}
	}
}

func TestHopsRefusals(t *testing.T) {
	parts := systemParts(t, "switchml", system.Options{})
	for name, change := range map[string]func(*Network){
		"the root alone":       func(n *Network) { n.Hops.Switches = n.Hops.Switches[:1] },
		"a job without a home": func(n *Network) { n.Hops.Homes = n.Hops.Homes[:2] },
		"workers on the root":  func(n *Network) { n.Hops.Homes[1] = 0 },
		"no such switch":       func(n *Network) { n.Hops.Homes[1] = 4 },
		"above itself":         func(n *Network) { n.Hops.Switches[2].Parent = 2 },
		"no rate":              func(n *Network) { n.Hops.Switches[1].Up.Rate = 0 },
		"slots below 0":        func(n *Network) { n.Hops.Switches[0].Slots = -1 },
		"racks beside":         func(n *Network) { n.PerRack = 2 },
	} {
		n := hilly(4, 0)
		change(&n)
		j := Job{Layout: endpoint.Layout{Values: 8, PerPacket: 4}, Updates: 1}
		if _, err := Run(context.Background(), n, j, parts, true, 1); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	isw := systemParts(t, "iswitch", system.Options{H: 5})
	j := Job{Layout: endpoint.Layout{Values: 8, PerPacket: 4}, Updates: 1}
	if _, err := Run(context.Background(), hilly(4, 0), j, isw, true, 1); !errors.Is(err, ErrConfig) {
		t.Errorf("H above the workers: %v", err)
	}
}
