package closedloop

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

func xaggParts() system.Parts { return partsOf("xagg", 0) }

// partsOf returns the parts of a system, with a number of slots, or its default for 0.
func partsOf(name string, slots int) system.Parts {
	s, err := system.All().Find(name)
	if err != nil {
		panic(err)
	}
	parts, err := s.Modes[0].Parts(&system.Options{Slots: slots})
	if err != nil {
		panic(err)
	}
	return parts
}

// grownTree returns five workers below two servers and the root, with one server below the other.
func grownTree() Network {
	l := Link{Rate: 10 * olaf.Gbps, Delay: 500 * olaf.Nanosecond, Overhead: 24}
	return Network{Workers: 5, Link: l, Tree: &Tree{
		Servers: []TreeServer{{Link: l}, {Parent: 0, Link: l}, {Parent: 1, Link: l}}, Workers: []int{2, 2, 1, 1, 0},
	}}
}

// TestTreeExactlyOnce checks that sums through a tree of servers are exact with any losses, random or every n-th frame
// on every link.
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

// TestKilledServer checks that all sums are exact and no round is missing if either server is killed, at a hundred
// moments of a job.
func TestKilledServer(t *testing.T) {
	whole := func(n Network, seed uint64) *Result {
		return run(t, n, Job{Layout: endpoint.Layout{Values: 23, PerPacket: 4}, Updates: 5, Compute: 200 * olaf.Microsecond,
			Jitter: 0.5}, xaggParts(), true, seed)
	}
	repeated := 0
	for i := range 100 {
		n := grownTree()
		length := float64(whole(n, uint64(i)).Duration)
		n.Link.Loss = []float64{0, 0.02}[i%2]
		draw := func(salt uint64) float64 { return float64(splitmix.MixBits(uint64(i)*3+salt)>>11) / (1 << 53) }
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

// TestLoadedServer checks that if a server's link is taken away, at fifty moments, all sums are exact whether its
// children move or stay, and that a job whose children move ends sooner.
func TestLoadedServer(t *testing.T) {
	length := func(n Network, seed uint64) float64 {
		return float64(run(t, n, Job{Layout: endpoint.Layout{Values: 4000, PerPacket: 256}, Updates: 8}, xaggParts(), true, seed).Duration)
	}
	free := length(grownTree(), 1)
	for i := range 50 {
		n := grownTree()
		server := 1 + i%2
		rate := n.Tree.Servers[server].Link.Rate / 20
		n.Tree.Load = &Load{Server: server, At: olaf.Duration(free * float64(i) / 100 * float64(olaf.Nanosecond)), Rate: rate}
		stay := length(n, uint64(i))
		exactlyOnceBut(t, n, xaggParts(), integers, uint64(i), -1)
		moved := *n.Tree.Load
		moved.Every = olaf.Duration(free / 8 * float64(olaf.Nanosecond))
		n.Tree.Load = &moved
		exactlyOnceBut(t, n, xaggParts(), integers, uint64(i), server)
		if move := length(n, uint64(i)); move >= stay {
			t.Errorf("server %d loaded at %v: %.0f ns where its children move, %.0f ns where they stay", server, moved.At, move, stay)
		}
	}
}

// TestChildrenStayWithAFastServer checks that management moves no children to a parent with less capacity for them.
func TestChildrenStayWithAFastServer(t *testing.T) {
	n := grownTree()
	n.Tree.Load = &Load{Server: 1, Rate: n.Tree.Servers[1].Link.Rate, Every: olaf.Microsecond}
	if n.Tree.movesChildren() {
		t.Error("the children of a server without load move")
	}
	n.Tree.Load.Rate /= 100
	if !n.Tree.movesChildren() {
		t.Error("the children of a server with a hundredth of its link stay")
	}
}

// fig1 returns the paper's example: four workers, one with half a link and one that computes for two seconds. All times
// are divided by scale.
func fig1(scale int) (Network, Job) {
	half := Link{Rate: 5 * olaf.Gbps, Overhead: 24}
	l := Link{Rate: 10 * olaf.Gbps, Overhead: 24}
	n := Network{Workers: 4, Link: l, Through: true, Access: []Link{l, half, l},
		Tree: &Tree{Servers: []TreeServer{{Link: l}, {Parent: 0, Link: l}}, Workers: []int{1, 1, 1, 0}}}
	// As many full fragments and a shorter one as take a second on a link, including overhead.
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

// TestFig1 runs the paper's example at a thousandth of its size: 4 s with a parameter server and with a programmable
// switch, 3 s with servers that store the model, plus the exact time of packets and messages. Everything follows from
// the link into the lower server, which must be busy for 3 s without a gap:
//
//   - a server receives a whole packet before it sends its sum on: one packet;
//   - messages to it share the link: both children that finish early report it, which is 2; with divided rates, each of three
//     children requests one, and the root grants three, which is 6 more;
//   - with divided rates the link is idle for one packet in total: for three messages at the start, because the child with half a
//     link receives its rate that much later, and for the rest of the packet before that child's last one, which is forwarded
//     when complete.
//
// A switch's pool receives packets before the straggler begins, each of which saves one at half the rate; the
// straggler's first must arrive and be answered before others continue, which is two packets. Two slots are the minimum
// to keep half a link busy.
func TestFig1(t *testing.T) {
	const (
		scale   = 1000
		packet  = (64 + 24 + 1024) * 8 / 10.0 // ns
		message = (64 + 24) * 8 / 10.0
		value   = 4 * 8 / 10.0 // upper limit of what the model lacks to a second of a link
	)
	pooled := func(slots float64) float64 { return 4e6 - slots*2*packet + 2*packet }
	for _, c := range []struct {
		system  string
		slots   int // 0 for the system's default
		divides bool
		want    float64 // ns
	}{
		{"ps", 0, false, 4e6},
		{"xagg", 0, false, 3e6 + packet + 2*message},
		{"xagg", 0, true, 3e6 + 2*packet + 8*message},
		{"switchml", 0, false, pooled(128)},
		{"switchml", 16, false, pooled(16)},
		{"switchml", 2, false, pooled(2)},
	} {
		n, job := fig1(scale)
		parts := partsOf(c.system, c.slots)
		if !parts.FitsVector { // its program runs on a switch
			n.Tree, parts.Frame, parts.Header, parts.PerPacket = nil, nil, 64, 256 // frames are as long as the other systems'
		}
		if worker := parts.Worker; !c.divides {
			parts.Worker = func(cfg endpoint.Config, h endpoint.Host) (endpoint.Endpoint, error) {
				cfg.Line = 0
				return worker(cfg, h)
			}
		}
		r := run(t, n, job, parts, true, 1)
		if off := float64(r.Summed) - c.want; r.Hung || !(math.Abs(off) <= value) {
			t.Errorf("%s of %d slots, rates divided %v: the sum is at the root after %.1f ns, %.1f off %.1f; hung %v", c.system,
				c.slots, c.divides, float64(r.Summed), off, c.want, r.Hung)
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
		"load of the root": func(n *Network) { n.Tree.Load = &Load{Rate: 1} },
		"no rate left":     func(n *Network) { n.Tree.Load = &Load{Server: 1} },
		"no link":          func(n *Network) { n.Tree.Servers[1].Link.Rate = 0 },
		"every frame":      func(n *Network) { n.Link.Every = 1 },
		"links of nobody":  func(n *Network) { n.Access = make([]Link, 9) },
	} {
		n := grownTree()
		change(&n)
		if _, err := Run(context.Background(), n, Job{Layout: endpoint.Layout{Values: 4, PerPacket: 4}, Updates: 1}, xaggParts(), true,
			1); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
