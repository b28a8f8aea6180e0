package closedloop

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/iswitch"
	"github.com/olafctl/olaf/internal/test/golden"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// listParts writes down the configuration of all programs and hosts.
func listParts(to io.Writer, parts system.Parts) system.Parts {
	if parts.Program != nil {
		tells := func(build func(program.Config) (program.Program, error), what string) func(program.Config) (program.Program, error) {
			return func(cfg program.Config) (program.Program, error) {
				fmt.Fprintf(to, "%s: %+v\n", what, cfg)
				p, err := build(cfg)
				return &listedProgram{p, to}, err
			}
		}
		d := *parts.Program
		d.New = tells(d.New, d.Name)
		if parts.Program = &d; parts.Root != nil {
			parts.Root = tells(parts.Root, "root")
		}
	}
	host := func(build func(endpoint.Config, endpoint.Host) (endpoint.Endpoint, error), what string) func(endpoint.Config,
		endpoint.Host) (endpoint.Endpoint, error) {
		if build == nil {
			return nil
		}
		return func(cfg endpoint.Config, h endpoint.Host) (endpoint.Endpoint, error) {
			fmt.Fprintf(to, "%s %d of %d, job %d: %+v, %d updates, line %d\n", what, cfg.Worker, cfg.Workers, cfg.Job, cfg.Layout,
				cfg.Updates, cfg.Line)
			return build(cfg, h)
		}
	}
	parts.Worker, parts.Server = host(parts.Worker, "worker"), host(parts.Server, "server")
	return parts
}

type listedProgram struct {
	program.Program
	to io.Writer
}

func (l *listedProgram) Configure(j program.Job) error {
	fmt.Fprintf(l.to, "  %+v\n", j)
	return l.Program.Configure(j)
}

// TestConfigurationOfEveryNetwork checks the configuration of all programs, hosts and wires in every kind of network.
func TestConfigurationOfEveryNetwork(t *testing.T) {
	bent := func(n Network) Network { // with distinguishable links
		n.Link.Loss, n.Link.Mark, n.Link.Frame = 0.01, 9000, 7
		n.Trunk = Link{Rate: 40 * olaf.Gbps, Delay: 3 * olaf.Microsecond, Overhead: 20, Frame: 5, Mark: 500}
		n.Access = []Link{n.Link, {Rate: olaf.Gbps, Delay: olaf.Microsecond, Every: 9, Mark: 100}}
		return n
	}
	racks, tree, switches := bent(lab(5)), grownTree(), bent(hilly(3, 4))
	racks.PerRack, racks.Through = 2, true
	tree.Link.Mark = 9000
	tree.Through, tree.Access = true, []Link{tree.Link, {Rate: olaf.Gbps}}
	for i := range tree.Tree.Servers {
		l := &tree.Tree.Servers[i].Link
		l.Rate, l.Mark = l.Rate*olaf.Rate(1+i), 100
	}
	switches.Hops.Switches[3].Slots = 0
	rooted := systemParts(t, "iswitch", system.Options{H: 2})
	rooted.Root = rooted.Program.New
	served := racks
	served.Jobs = 2
	var text strings.Builder
	for _, c := range []struct {
		name  string
		n     Network
		parts system.Parts
		sync  bool
	}{
		{"a switch", bent(lab(3)), iswitchParts(endpoint.ISwitch{Profile: iswitch.Exactly}, 8), true}, {"racks", racks, rooted, false},
		{"servers", served, atpParts(crowdedATP("paper", 2)), true}, {"a server", bent(lab(2)), psParts(true), true},
		{"a tree", tree, xaggParts(), true}, {"switches", switches, systemParts(t, "switchml", system.Options{Slots: 12}), true},
		{"switches with sums of two", switches, rooted, true},
		{"switches below a server", switches, systemParts(t, "atp", system.Options{Profile: "paper", Slots: 30, Window: 5}), true},
	} {
		fmt.Fprintf(&text, "# %s\n", c.name)
		parts := listParts(&text, c.parts)
		s, err := newSim(&c.n, &Job{Layout: endpoint.Layout{Values: 23, PerPacket: 4, Messages: 2}, Updates: 7}, &parts, c.sync, 1)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for i := range s.wires {
			w := &s.wires[i]
			fmt.Fprintf(&text, "wire %d: to %d, port %d, %d ps, at least %d, marks from %d, through %t, line %t\n", i, w.to, w.port,
				w.Delay, w.Least, w.Mark, w.Through, w.Line != nil)
		}
		for i := range s.switches {
			sw := &s.switches[i]
			fmt.Fprintf(&text, "switch %d: up %d, down %v, servers %v, members %v\n", i, sw.up, sw.down, sw.servers, sw.members)
		}
		fmt.Fprintf(&text, "hosts: up %v, down %v\n", s.access, s.homes)
	}
	golden.Equal(t, "told.txt", []byte(text.String()))
}

// TestSumContainsAtMostAllContributors checks that a sum contains at most all contributors for synchronous workers, on
// racks and in a tree of switches, and any number for asynchronous ones.
func TestSumContainsAtMostAllContributors(t *testing.T) {
	for name, n := range map[string]Network{"a switch": lab(4), "switches": hilly(4, 0)} {
		n.Jobs = 1
		if n.Hops != nil {
			n.Hops.Homes = n.Hops.Homes[:1]
		}
		for h, ok := range map[int]bool{1: true, 4: true, 5: false} {
			for _, sync := range []bool{true, false} {
				parts := asyncParts(3, h, 8)
				_, err := newSim(&n, &Job{Layout: endpoint.Layout{Values: 8, PerPacket: 4}, Updates: 1}, &parts, sync, 1)
				if (err == nil) != (ok || !sync) {
					t.Errorf("%s: H of %d, waiting %t: %v", name, h, sync, err)
				}
			}
		}
	}
}

// TestBytesCountAllFrames checks that a run's bytes are the sum over all its frames of any kind.
func TestBytesCountAllFrames(t *testing.T) {
	racks := lab(5)
	racks.PerRack = 2
	for name, c := range map[string]struct {
		n     Network
		parts system.Parts
	}{
		"a switch": {lab(3), switchmlParts(4)}, "racks": {racks, iswitchParts(endpoint.ISwitch{}, 100)},
		"a server":                 {lab(3), psParts(true)},
		"servers that only add up": {racks, atpParts(crowdedATP("paper", 2))}, "a ring": {lab(4), ringParts()},
		"a tree":           {grownTree(), xaggParts()},
		"switches":         {hilly(3, 0), systemParts(t, "switchml", system.Options{Slots: 12})},
		"published frames": {lab(3), systemParts(t, "ps", system.Options{})},
	} {
		bytes := uint64(0)
		j := Job{Layout: endpoint.Layout{Values: 43, PerPacket: 4}, Updates: 2, Compute: 50 * olaf.Microsecond, Jitter: 1}
		j.Tap = func(f *Frame) { bytes += uint64(c.parts.FrameSize(f.Packet, f.Past)) }
		if r := run(t, c.n, j, c.parts, true, 1); r.Hung || r.Bytes != bytes || r.Underway != 0 {
			t.Errorf("%s: hung %t, %d bytes, want %d", name, r.Hung, r.Bytes, bytes)
		}
	}
}

// TestPicturesOfFullTables checks that a snapshot contains the first held slots, up to its limit, and their number.
func TestPicturesOfFullTables(t *testing.T) {
	const slots = mostSlots + 500
	for _, held := range []int{1, mostSlots - 1, mostSlots, mostSlots + 1, slots} {
		most := 0
		j := Job{Layout: endpoint.Layout{Values: held, PerPacket: 1}, Updates: 1, Compute: olaf.Microsecond,
			Late: []olaf.Duration{0, 5 * olaf.Millisecond}}
		j.Follow = func(at, _ olaf.Time, l *Look) (olaf.Time, bool) {
			if s := l.Snapshot(at).Switches[0]; s.Occupied >= most {
				most = s.Occupied
				if len(s.Table) != min(s.Occupied, mostSlots) || s.Peak != s.Occupied || s.Slots != slots || s.Occupied > 0 &&
					s.Table[len(s.Table)-1].Place != len(s.Table)-1 {
					t.Fatalf("%d slots are held of %d, %d shown", s.Occupied, s.Slots, len(s.Table))
				}
			}
			return at + olaf.Time(100*olaf.Microsecond), true
		}
		if run(t, lab(2), j, iswitchParts(endpoint.ISwitch{}, slots), true, 1); most != held {
			t.Errorf("%d slots were held at most, want %d", most, held)
		}
	}
}
