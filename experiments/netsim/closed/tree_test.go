package closed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/internal/splitmix"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

func xaggParts() system.Parts { return partsOf("xagg") }

func partsOf(name string) system.Parts {
	s, err := system.All().Find(name)
	if err != nil {
		panic(err)
	}
	parts, err := s.Modes[0].Parts(&system.Options{})
	if err != nil {
		panic(err)
	}
	return parts
}

// grownTree is five workers below two servers and the root, one of the servers below the other.
func grownTree() Network {
	l := Link{Rate: 10 * olaf.Gbps, Delay: 500 * olaf.Nanosecond, Overhead: 24}
	return Network{Workers: 5, Link: l, Tree: &Tree{
		Servers: []TreeServer{{Link: l}, {Parent: 0, Link: l}, {Parent: 1, Link: l}}, Workers: []int{2, 2, 1, 1, 0},
	}}
}

// Whatever is lost on its way, at random or every so-many-th frame of every link, sums through a tree of servers are exact.
func TestTreeExactlyOnce(t *testing.T) {
	for _, every := range []int{0, 5, 7, 10, 101} {
		for _, loss := range []float64{0, 0.01, 0.05} {
			t.Run(fmt.Sprintf("every %d/%g", every, loss), func(t *testing.T) {
				for seed := range 5 {
					n := grownTree()
					n.Link.Loss, n.Link.Every = loss, every
					for i := range n.Tree.Servers {
						n.Tree.Servers[i].Link.Loss, n.Tree.Servers[i].Link.Every = loss, every
					}
					exactlyOnce(t, n, xaggParts(), integers, uint64(seed))
				}
			})
		}
	}
}

// TestKilledServer kills either server at a hundred moments of a job: all sums are exact, and no round is missing.
func TestKilledServer(t *testing.T) {
	whole := func(n Network, seed uint64) *Result {
		return run(t, n, Job{Layout: endpoint.Layout{Values: 23, PerPacket: 4}, Updates: 5, Compute: 200 * olaf.Microsecond, Jitter: 0.5}, xaggParts(), true, seed)
	}
	repeated := 0
	for i := range 100 {
		n := grownTree()
		length := float64(whole(n, uint64(i)).Duration)
		n.Link.Loss = []float64{0, 0.02}[i%2]
		draw := func(salt uint64) float64 { return float64(splitmix.Mix(uint64(i)*3+salt)>>11) / (1 << 53) }
		n.Tree.Kill = &Kill{
			Server: 1 + i/2%2, At: olaf.Duration(draw(1) * length * float64(olaf.Nanosecond)),
			Noticed: olaf.Duration(draw(2) * float64(2*olaf.Millisecond)),
		}
		exactlyOnceBut(t, n, xaggParts(), integers, uint64(i), n.Tree.Kill.Server)
		if r := whole(n, uint64(i)); r.Endpoints.Of("packets_resent") > 0 {
			repeated++
		}
	}
	t.Logf("in %d of 100 jobs packets were sent again", repeated)
	if repeated < 50 {
		t.Errorf("only %d of 100 kills made anybody send again", repeated)
	}
}

// fig1 is the example of the paper: four workers, of which one has half a link and one computes for two seconds. All times
// are divided by scale.
func fig1(scale int) (Network, Job) {
	half := Link{Rate: 5 * olaf.Gbps, Overhead: 24}
	l := Link{Rate: 10 * olaf.Gbps, Overhead: 24}
	n := Network{Workers: 4, Link: l, Through: true, Access: []Link{l, half, l}, Tree: &Tree{Servers: []TreeServer{{Link: l}, {Parent: 0, Link: l}}, Workers: []int{1, 1, 1, 0}}}
	// As many whole fragments and a shorter one as take a second of a link's time, with everything beside the values.
	bits := int64(10*olaf.Gbps) / int64(scale)
	frame := int64(64+24+1024) * 8
	values := bits/frame*256 + (bits%frame/8-88)/4
	return n, Job{
		Layout: endpoint.Layout{Values: int(values), PerPacket: 256}, Updates: 1,
		Begin: func(worker int, _ uint32) olaf.Duration {
			if worker == 2 {
				return 2 * olaf.Second / olaf.Duration(scale)
			}
			return 0
		},
	}
}

// TestFig1 is the paper's example at a thousandth: 4 s with a parameter server and with a programmable switch, 3 s with servers
// that hold the model, each within the time of one packet and of some frames of control. The pool of a switch takes packets before the straggler begins, each
// of which saves one; where rates are negotiated, what the children that are about to finish are told costs some more.
func TestFig1(t *testing.T) {
	const scale, packet = 1000, 1112 * 8 / 10.0 // ns
	for _, c := range []struct {
		system  string
		ms      float64
		early   float64 // packets at half the rate
		divides bool
		packets float64 // of tolerance
	}{{"ps", 4, 0, false, 1}, {"xagg", 3, 0, false, 1.3}, {"xagg", 3, 0, true, 4}, {"switchml", 4, 128, false, 2}} {
		n, job := fig1(scale)
		parts := partsOf(c.system)
		if !parts.Whole { // its program is a switch's
			n.Tree, parts.Frame, parts.Header, parts.PerPacket = nil, nil, 64, 256 // frames are as long as the others'
		}
		if worker := parts.Worker; !c.divides {
			parts.Worker = func(cfg endpoint.Config, h endpoint.Host) (endpoint.Endpoint, error) {
				cfg.Line = 0
				return worker(cfg, h)
			}
		}
		r := run(t, n, job, parts, true, 1)
		want := c.ms*1e6 - c.early*2*packet
		if off := float64(r.Summed) - want; r.Hung || math.Abs(off) > c.packets*packet+1e-6 {
			t.Errorf("%s: the sum is at the root after %.1f ns, %.1f off %.0f; hung %v", c.system, float64(r.Summed), off, want, r.Hung)
		} else {
			t.Logf("%s: %.1f ns, %.1f off", c.system, float64(r.Summed), off)
		}
	}
}

func TestTreeRefusals(t *testing.T) {
	for name, change := range map[string]func(*Network){
		"racks":            func(n *Network) { n.PerRack = 2 },
		"a loop":           func(n *Network) { n.Tree.Servers[1].Parent = 2 },
		"no place":         func(n *Network) { n.Tree.Workers[0] = 3 },
		"a worker more":    func(n *Network) { n.Workers++ },
		"no children":      func(n *Network) { n.Tree.Workers = []int{1, 1, 1, 1, 0} },
		"a root that dies": func(n *Network) { n.Tree.Kill = &Kill{} },
		"no link":          func(n *Network) { n.Tree.Servers[1].Link.Rate = 0 },
		"every frame":      func(n *Network) { n.Link.Every = 1 },
		"links of nobody":  func(n *Network) { n.Access = make([]Link, 9) },
	} {
		n := grownTree()
		change(&n)
		if _, err := Run(context.Background(), n, Job{Layout: endpoint.Layout{Values: 4, PerPacket: 4}, Updates: 1}, xaggParts(), true, 1); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
