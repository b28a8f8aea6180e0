package closedloop

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/internal/calendar"
	"github.com/olafctl/olaf/internal/test/golden"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/results/metric"
)

// TestLimits checks both ends of each limit of networks and jobs, and that an error names the limit.
func TestLimits(t *testing.T) {
	tree := func(n *Network) *Tree {
		n.Tree = &Tree{Servers: []TreeServer{{Link: n.Link}, {Link: n.Link}, {Parent: 1, Link: n.Link}}, Workers: []int{0, 1, 2}}
		return n.Tree
	}
	hops := func(n *Network) *Hops {
		n.Hops = &Hops{Switches: []Hop{{}, {Up: n.Link}, {Parent: 1, Up: n.Link}}, Homes: []int{1, 2}}
		n.Jobs = 2
		return n.Hops
	}
	link := func(change func(*Link)) func(*Network, *Job) { return func(n *Network, _ *Job) { change(&n.Link) } }
	for name, c := range map[string]struct {
		change func(*Network, *Job)
		want   string // empty if valid
	}{
		"as it is":               {func(*Network, *Job) {}, ""},
		"no rate":                {link(func(l *Link) { l.Rate = 0 }), "a link of "},
		"a bit a second":         {link(func(l *Link) { l.Rate = 1 }), ""},
		"a trunk without a rate": {func(n *Network, _ *Job) { n.Trunk.Delay = 1 }, "a link of "},
		"a worker without":       {func(n *Network, _ *Job) { n.Access = []Link{n.Link, {}} }, "a link of "},
		"all is lost":            {link(func(l *Link) { l.Loss = 1 }), ""},
		"more is lost":           {link(func(l *Link) { l.Loss = 1.01 }), "a loss of 1.01; it must be 0 to 1"},
		"less than nothing":      {link(func(l *Link) { l.Loss = -0.01 }), "a loss of -0.01"},
		"no loss at all":         {link(func(l *Link) { l.Loss = math.NaN() }), "a loss of NaN"},
		"every frame":            {link(func(l *Link) { l.Every = 1 }), "every 1-th frame lost; it must be 0 or 2 and more"},
		"every other frame":      {link(func(l *Link) { l.Every = 2 }), ""},
		"every -1st frame":       {link(func(l *Link) { l.Every = -1 }), "every -1-th frame lost"},
		"a delay below 0":        {link(func(l *Link) { l.Delay = -1 }), "a link with a delay of -1ps"},
		"bytes below 0":          {link(func(l *Link) { l.Overhead = -1 }), "-1B beside each frame"},
		"a frame below 0":        {link(func(l *Link) { l.Frame = -1 }), "-1ps a frame"},
		"marks below 0":          {link(func(l *Link) { l.Mark = -1 }), "marks from -1B"},
		"all above 0":            {link(func(l *Link) { l.Delay, l.Overhead, l.Frame, l.Mark = 1, 1, 1, 1 }), ""},
		"no workers":             {func(n *Network, _ *Job) { n.Workers = 0 }, "0 workers"},
		"one worker":             {func(n *Network, _ *Job) { n.Workers = 1 }, ""},
		"all workers":            {func(n *Network, _ *Job) { n.Workers = 65536 }, ""},
		"a worker more":          {func(n *Network, _ *Job) { n.Workers = 65537 }, "65537 workers; frames name 1 to 65536 of a job"},
		"all jobs":               {func(n *Network, _ *Job) { n.Jobs = 65535 }, ""},
		"a job more":             {func(n *Network, _ *Job) { n.Jobs = 65536 }, "65536 jobs; frames name 1 to 65535"},
		"jobs below 0":           {func(n *Network, _ *Job) { n.Jobs = -1 }, "-1 jobs"},
		"links of all":           {func(n *Network, _ *Job) { n.Access = slices.Repeat([]Link{n.Link}, 3) }, ""},
		"a link of nobody": {func(n *Network, _ *Job) { n.Access = slices.Repeat([]Link{n.Link}, 4) },
			"links for 4 of 3 workers"},
		"racks below 0":   {func(n *Network, _ *Job) { n.PerRack = -1 }, "-1 workers a rack"},
		"racks of one":    {func(n *Network, _ *Job) { n.PerRack = 1 }, ""},
		"a bus below 0":   {func(n *Network, _ *Job) { n.Accelerator.BusBytes = -1 }, "an accelerator of -1 bytes"},
		"a beat below 0":  {func(n *Network, _ *Job) { n.Accelerator.Beat = -1 }, "a beat of -1ps"},
		"beats below 0":   {func(n *Network, _ *Job) { n.Accelerator.Pipeline = -1 }, "an accelerator of"},
		"an accelerator":  {func(n *Network, _ *Job) { n.Accelerator = Accelerator{1, 1, 1} }, ""},
		"a cycle below 0": {func(n *Network, _ *Job) { n.Cycle = -1 }, "a clock with a cycle of -1ps"},
		"a cycle":         {func(n *Network, _ *Job) { n.Cycle = 1 }, ""},

		"jitter of all":      {func(_ *Network, j *Job) { j.Jitter = 1 }, ""},
		"more than all":      {func(_ *Network, j *Job) { j.Jitter = 1.01 }, "spread by 1.01 of themselves"},
		"jitter below 0":     {func(_ *Network, j *Job) { j.Jitter = -0.01 }, "spread by -0.01"},
		"no jitter at all":   {func(_ *Network, j *Job) { j.Jitter = math.NaN() }, "spread by NaN"},
		"computing below 0":  {func(_ *Network, j *Job) { j.Compute = -1 }, "computing takes -1ps"},
		"applying below 0":   {func(_ *Network, j *Job) { j.Apply = -1 }, "applying -1ps and"},
		"a server's below 0": {func(_ *Network, j *Job) { j.ServerApply = -1 }, "and -1ps, within"},
		"a limit below 0":    {func(_ *Network, j *Job) { j.Limit = -1 }, "within -1ps"},
		"starts below 0":     {func(_ *Network, j *Job) { j.Apart = -1 }, "computing takes"},
		"a picosecond each":  {func(_ *Network, j *Job) { j.Compute, j.Apply, j.ServerApply, j.Limit, j.Apart = 1, 1, 1, 1, 1 }, ""},
		"late below 0":       {func(_ *Network, j *Job) { j.Late = []olaf.Duration{0, -1} }, "worker 1 is late by -1ps"},
		"late by nothing":    {func(_ *Network, j *Job) { j.Late = []olaf.Duration{0, 0, 1} }, ""},
		"a tree":             {func(n *Network, _ *Job) { tree(n) }, ""},
		"a tree of one": {func(n *Network, _ *Job) {
			n.Tree = &Tree{Servers: []TreeServer{{Link: n.Link}}, Workers: []int{0, 0, 0}}
		}, ""},
		"a tree of none": {func(n *Network, _ *Job) { n.Tree = &Tree{Workers: []int{0, 0, 0}} },
			"a tree of 0 servers, with places for 3 of 3 workers"},
		"a tree of jobs":      {func(n *Network, _ *Job) { tree(n); n.Jobs = 2 }, "a tree of servers has one job, not 2"},
		"a tree in racks":     {func(n *Network, _ *Job) { tree(n); n.PerRack = 1 }, "a tree of servers hangs on one switch"},
		"a worker nowhere":    {func(n *Network, _ *Job) { tree(n).Workers = []int{0, 1} }, "with places for 2 of 3 workers"},
		"a place below 0":     {func(n *Network, _ *Job) { tree(n).Workers[1] = -1 }, "worker 1 below server -1 of 3"},
		"no such place":       {func(n *Network, _ *Job) { tree(n).Workers[1] = 3 }, "worker 1 below server 3 of 3"},
		"below nothing":       {func(n *Network, _ *Job) { tree(n).Servers[1].Parent = -1 }, "server 1 below server -1"},
		"below itself":        {func(n *Network, _ *Job) { tree(n).Servers[1].Parent = 1 }, "server 1 below server 1"},
		"a root without link": {func(n *Network, _ *Job) { tree(n).Servers[0].Link.Rate = 0 }, "server 0 below server 0, on a link of"},
		"a bit a second up":   {func(n *Network, _ *Job) { tree(n).Servers[1].Link.Rate = 1 }, ""},
		"a server without":    {func(n *Network, _ *Job) { tree(n).Servers[2].Link.Rate = 0 }, "server 2 below server 1, on a link of"},
		"childless":           {func(n *Network, _ *Job) { tree(n).Workers[2] = 0 }, "server 2 has no children"},
		"a child is a server": {func(n *Network, _ *Job) { tree(n).Workers = []int{2, 2, 2} }, ""},
		"the root dies":       {func(n *Network, _ *Job) { tree(n).Kill = &Kill{} }, "server 0 of 3 cannot be killed"},
		"somebody dies":       {func(n *Network, _ *Job) { tree(n).Kill = &Kill{Server: 3} }, "server 3 of 3 cannot be killed"},
		"dead before":         {func(n *Network, _ *Job) { tree(n).Kill = &Kill{Server: 1, At: -1} }, "killed at -1ps"},
		"noticed before":      {func(n *Network, _ *Job) { tree(n).Kill = &Kill{Server: 1, Noticed: -1} }, "cannot be killed"},
		"dead at once":        {func(n *Network, _ *Job) { tree(n).Kill = &Kill{Server: 2} }, ""},

		"switches":     {func(n *Network, _ *Job) { hops(n) }, ""},
		"two switches": {func(n *Network, _ *Job) { h := hops(n); h.Switches, h.Homes = h.Switches[:2], []int{1, 1} }, ""},
		"one switch": {func(n *Network, _ *Job) { h := hops(n); h.Switches = h.Switches[:1] },
			"a tree of 1 switches, with places for 2 of 2 jobs"},
		"switches and servers": {func(n *Network, _ *Job) { tree(n); h := hops(n); n.Jobs, h.Homes = 1, h.Homes[:1] },
			"a tree of switches beside racks or a tree of servers"},
		"switches in racks": {func(n *Network, _ *Job) { hops(n); n.PerRack = 1 }, "a tree of switches beside racks"},
		"a home too few":    {func(n *Network, _ *Job) { h := hops(n); h.Homes = h.Homes[:1] }, "places for 1 of 2 jobs"},
		"home at the root": {func(n *Network, _ *Job) { hops(n).Homes[1] = 0 },
			"job 1 on switch 0 of 3; the root is the server's"},
		"home nowhere":          {func(n *Network, _ *Job) { hops(n).Homes[0] = 3 }, "job 0 on switch 3 of 3"},
		"a switch below itself": {func(n *Network, _ *Job) { hops(n).Switches[1].Parent = 1 }, "switch 1 below switch 1"},
		"a switch below none":   {func(n *Network, _ *Job) { hops(n).Switches[2].Parent = -1 }, "switch 2 below switch -1"},
		"a switch without link": {func(n *Network, _ *Job) { hops(n).Switches[2].Up.Rate = 0 }, "on a link of"},
		"a switch's bit":        {func(n *Network, _ *Job) { hops(n).Switches[2].Up.Rate = 1 }, ""},
		"the root's slots":      {func(n *Network, _ *Job) { hops(n).Switches[0].Slots = -1 }, "with -1 slots"},
		"a slot":                {func(n *Network, _ *Job) { hops(n).Switches[2].Slots = 1 }, ""},
		"slots below 0": {func(n *Network, _ *Job) { hops(n).Switches[2].Slots = -1 },
			"switch 2 below switch 1, with -1 slots"},
	} {
		n, j := Network{Workers: 3, Link: Link{Rate: 10 * olaf.Gbps}}, Job{}
		c.change(&n, &j)
		err := errors.Join(n.checkNetwork(), j.checkJob())
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if kind, declared := olaf.KindOf(err); c.want != "" && (kind != olaf.Usage || !declared) {
			t.Errorf("%s: an error of kind %v", name, kind)
		}
	}
	n, j := Network{Workers: 3, Link: Link{Rate: 1, Delay: 2}}, Job{}
	if err := errors.Join(n.checkNetwork(), j.checkJob()); err != nil || n.Trunk != n.Link || n.Jobs != 1 ||
		j.Limit != 3600*olaf.Second {
		t.Errorf("%+v, %+v, %v", n, j, err)
	}
	n, j = Network{Workers: 3, Jobs: 2, Link: Link{Rate: 1}, Trunk: Link{Rate: 2}}, Job{Limit: 7}
	if err := errors.Join(n.checkNetwork(), j.checkJob()); err != nil || n.Trunk.Rate != 2 || n.Jobs != 2 || j.Limit != 7 {
		t.Errorf("%+v, %+v, %v", n, j, err)
	}
}

// TestSetLossAppliesToEveryLink checks that SetLoss sets the loss of every link and nothing else.
func TestSetLossAppliesToEveryLink(t *testing.T) {
	l := Link{Rate: 3, Delay: 4}
	n := Network{Link: l, Access: []Link{l, l}, Tree: &Tree{Servers: []TreeServer{{Link: l}, {Link: l}}},
		Hops: &Hops{Switches: []Hop{{Up: l}, {Up: l}}}}
	n.SetLoss(0.25)
	l.Loss = 0.25
	for i, got := range []Link{n.Link, n.Access[0], n.Access[1], n.Tree.Servers[0].Link, n.Tree.Servers[1].Link, n.Hops.Switches[0].Up,
		n.Hops.Switches[1].Up} {
		if got != l {
			t.Errorf("link %d is %+v, want %+v", i, got, l)
		}
	}
	bare := Network{Link: l}
	if bare.SetLoss(0.5); bare.Link.Loss != 0.5 {
		t.Errorf("%+v", bare)
	}
}

// anyNetwork draws racks, or a tree of switches, for some jobs.
func anyNetwork(t *rapid.T) Network {
	n := Network{Workers: rapid.IntRange(1, 7).Draw(t, "workers"), Jobs: rapid.IntRange(1, 3).Draw(t, "jobs"),
		Link: Link{Rate: olaf.Gbps, Mark: 7}}
	if rapid.Bool().Draw(t, "tree") {
		n.Hops = &Hops{Switches: make([]Hop, rapid.IntRange(2, 7).Draw(t, "switches"))}
		for i := range n.Hops.Switches {
			n.Hops.Switches[i] = Hop{Parent: rapid.IntRange(0, max(i-1, 0)).Draw(t, "parent"), Up: Link{Rate: olaf.Gbps}, Slots: i}
		}
		for range n.Jobs {
			n.Hops.Homes = append(n.Hops.Homes, rapid.IntRange(1, len(n.Hops.Switches)-1).Draw(t, "home"))
		}
		return n
	}
	n.PerRack = rapid.IntRange(0, 8).Draw(t, "a rack")
	return n
}

// place is a node of a network in a list: its name, parent and job.
type place struct {
	name        string
	above       int // index of the switch to which the host is attached; for a switch, index of its parent
	job, worker int
}

// listPlaces lists the nodes of a network: hosts, then switches.
func listPlaces(n *Network, server bool) (hosts, switches []place) {
	named := func(job int, name string) string {
		if n.Jobs > 1 {
			return fmt.Sprintf("job-%d-%s", job+1, name)
		}
		return name
	}
	racks := n.PerRack > 0 && n.PerRack < n.Workers
	for job := range n.Jobs {
		for w := range n.Workers {
			p := place{named(job, fmt.Sprintf("worker-%d", w)), 0, job, w}
			switch {
			case n.Hops != nil:
				p.above = n.Hops.Homes[job]
			case racks:
				p.above = 1 + w/n.PerRack
			}
			hosts = append(hosts, p)
		}
	}
	for job := range n.Jobs {
		if server {
			hosts = append(hosts, place{named(job, "server"), 0, job, n.Workers})
		}
	}
	switches = []place{{name: "root", above: -1}}
	switch {
	case n.Hops != nil:
		for i, h := range n.Hops.Switches[1:] {
			switches = append(switches, place{name: fmt.Sprintf("rack-%d", i), above: h.Parent})
		}
	case racks:
		for w := 0; w < n.Workers; w += n.PerRack {
			switches = append(switches, place{name: fmt.Sprintf("rack-%d", len(switches)-1)})
		}
	}
	return hosts, switches
}

// way returns the switches from one up to the root, including both.
func way(switches []place, from int) (up []int) {
	for ; from >= 0; from = switches[from].above {
		up = append(up, from)
	}
	return up
}

// TestRoutesReachHosts checks for any network that nodes are numbered as listed, that the wires lead from every switch
// to every host over the shortest path in the tree, and that ports lead to their members.
func TestRoutesReachHosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, server := anyNetwork(t), rapid.Bool().Draw(t, "server")
		if err := n.checkNetwork(); err != nil {
			t.Fatal(err)
		}
		hosts, switches := listPlaces(&n, server)
		s := &sim{shape: shapeOf(&n, server), net: &n}
		s.buildNodes(&n)
		var names []string
		for _, p := range slices.Concat(hosts, switches) {
			names = append(names, p.name)
		}
		if got := n.NodeNames(server); !slices.Equal(got, names) || s.rootNode() != len(hosts) || len(s.switches) != len(switches) {
			t.Fatalf("nodes %v, want %v; the root is %d of %d", got, names, s.rootNode(), len(s.switches))
		}
		for h, p := range hosts {
			if job, worker := s.jobAndWorker(h); job != p.job || worker != p.worker || s.switchOf(h) != p.above ||
				worker == n.Workers && int(s.serverHost(job)) != h {
				t.Fatalf("host %d is %d of job %d on switch %d, want %+v", h, worker, job, s.switchOf(h), p)
			}
			if up, home := &s.wires[s.access[h]], &s.wires[s.homes[h]]; int(up.to) != len(hosts)+p.above || int(home.to) != h ||
				up.Mark != 0 || home.Mark != n.accessLink(p.worker).Mark {
				t.Fatalf("host %d: up %+v, down %+v", h, up, home)
			}
			for at := range switches {
				from, to := way(switches, at), way(switches, p.above)
				common := 0
				for common < min(len(from), len(to)) && from[len(from)-1-common] == to[len(to)-1-common] {
					common++
				}
				far := len(from) + len(to) - 2*common // between switches, and one more to the host
				node := int32(len(hosts) + at)
				for range far + 1 {
					node = s.wires[s.wireToward(int(node)-len(hosts), int32(h))].to
				}
				if int(node) != h {
					t.Fatalf("from %s to %s %d wires lead to %s", switches[at].name, p.name, far+1, names[node])
				}
			}
		}
		for at := range s.switches {
			sw := &s.switches[at]
			if above := switches[at].above; (sw.up < 0) != (above < 0) || sw.parent != (above >= 0) || above >= 0 &&
				int(s.wires[sw.up].to) != len(hosts)+above {
				t.Fatalf("switch %d: up %d, parent %t; it hangs on %d", at, sw.up, sw.parent, above)
			}
			for port, down := range sw.down {
				back := slices.IndexFunc(s.wires, func(w wire) bool { return int(w.to) == len(hosts)+at && int(w.port) == port })
				if back < 0 || back/2 != int(down)/2 {
					t.Fatalf("switch %d: what leaves port %d over wire %d comes back over wire %d", at, port, down, back)
				}
				if h := n.Hops; h != nil && (s.wires[down].Line == nil) != (h.Switches[at].Slots == 0) {
					t.Fatalf("switch %d: port %d has a line: %t", at, port, s.wires[down].Line != nil)
				}
			}
			for job := range n.Jobs {
				checkMembers(t, s, hosts, switches, at, job)
			}
		}
	})
}

// checkMembers compares the members of a job at a switch with the switch's children that have workers of the job. The
// root of a tree has one port per job.
func checkMembers(t *rapid.T, s *sim, hosts, switches []place, at, job int) {
	var want []int32 // nodes
	for h, p := range hosts {
		if p.job == job && p.worker < s.workers && p.above == at {
			want = append(want, int32(h))
		}
	}
	if at == 0 {
		for below := range switches {
			for _, p := range hosts {
				if switches[below].above == 0 && p.job == job && p.worker < s.workers &&
					slices.Contains(way(switches, p.above), below) {
					want = append(want, int32(len(hosts)+below))
					break
				}
			}
		}
	}
	var got []int32
	if job < len(s.switches[at].members) {
		for i, m := range s.membersOf(at, job) {
			node := s.wires[s.switches[at].down[m.Port]].to
			first := 0
			if at > 0 {
				first = (at - 1) * s.perRack
			}
			if int(m.Worker) != first+i {
				t.Fatalf("switch %d: member %d is worker %d, want %d", at, i, m.Worker, first+i)
			}
			got = append(got, node)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("switch %d: job %d is at nodes %v, want %v", at, job, got, want)
	}
}

// TestChildrenOfATree checks that a server's children are in the order of their ports, and that a failed server's
// children move to its parent.
func TestChildrenOfATree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := &Tree{Servers: make([]TreeServer, rapid.IntRange(1, 6).Draw(t, "servers"))}
		for i := range tree.Servers {
			tree.Servers[i].Parent = rapid.IntRange(0, max(i-1, 0)).Draw(t, "parent")
		}
		for range rapid.IntRange(1, 8).Draw(t, "workers") {
			tree.Workers = append(tree.Workers, rapid.IntRange(0, len(tree.Servers)-1).Draw(t, "place"))
		}
		children := func(tree *Tree, server, gone int) (all []kid) {
			below := func(parent int) bool {
				return parent == server || parent == gone && gone > 0 && tree.Servers[gone].Parent == server
			}
			for i := 1; i < len(tree.Servers); i++ {
				if i != gone && server != gone && below(tree.Servers[i].Parent) {
					all = append(all, kid{place: i})
				}
			}
			for w, p := range tree.Workers {
				if server != gone && below(p) {
					all = append(all, kid{worker: true, place: w})
				}
			}
			return all
		}
		for i := range tree.Servers {
			if got, want := tree.childrenOf(i), children(tree, i, -1); !slices.Equal(got, want) {
				t.Fatalf("server %d of %+v has %v, want %v", i, tree, got, want)
			}
		}
		if len(tree.Servers) == 1 {
			return
		}
		gone := rapid.IntRange(1, len(tree.Servers)-1).Draw(t, "gone")
		before := fmt.Sprint(*tree)
		next := tree.withoutServer(gone)
		for i := range tree.Servers {
			got := slices.DeleteFunc(next.childrenOf(i), func(k kid) bool { return !k.worker && k.place == gone })
			if want := children(tree, i, gone); !slices.Equal(got, want) {
				t.Fatalf("server %d of %+v has %v without %d, want %v", i, tree, got, gone, want)
			}
		}
		if fmt.Sprint(*tree) != before {
			t.Fatalf("the tree was %s, and is %+v", before, *tree)
		}
	})
}

// TestRowsOfAResult checks that every number of a Result has a row, and that an unknown name is missing.
func TestRowsOfAResult(t *testing.T) {
	r := Result{
		Updates: 1, Duration: 2, Iteration: 3, Gradient: 23, Summed: 4, Aggregation: 5, Goodput: 6, StaleUpdates: 7, StaleVectors: 8,
		AoM:           [3]metric.Float{9, 10, 11},
		OccupiedSlots: 12, OccupiedSlotsPeak: 13, OccupiedBytes: 14, Memory: 15, Slots: 1, Completion: 16, Served: 17, Marked: 18, Busiest: 19, Frames: 20,
		Lost: 21, Bytes: 22,
	}
	want := map[string]metric.Float{
		"updates": 1, "duration_ns": 2, "iteration_ns": 3, "gradient_ns": 23, "summed_ns": 4, "aggregation_ns": 5, "goodput_bps": 6,
		"staleness_updates": 7, "staleness_vectors": 8,
		"aom_newest_ns": 9, "aom_mean_ns": 10, "aom_oldest_ns": 11, "slots_held": 12, "slots_held_peak": 13, "held_bytes": 14,
		"memory_bytes": 15, "jct_ns": 16,
		"served": 17, "frames_marked": 18, "busiest_wire": 19, "frames": 20, "frames_lost": 21, "wire_bytes": 22,
	}
	for _, row := range ListRows() {
		if got, ok := want[row.Name]; !ok || row.Of(&r) != got || r.Of(row.Name) != got {
			t.Errorf("%s is %g and %g, want %g", row.Name, float64(row.Of(&r)), float64(r.Of(row.Name)), float64(got))
		}
	}
	var said strings.Builder
	for _, row := range ListRows() {
		fmt.Fprintf(&said, "%s, %q in %q: %s. Missing: %q, once 0: %t\n", row.Name, row.Title, row.Unit, row.Doc, row.Reason, row.Zeroed)
	}
	golden.Equal(t, "rows.txt", []byte(said.String()))
	if none := new(Result); none.Of("memory_bytes").Known() {
		t.Error("no table takes memory")
	}
	if len(ListRows()) != len(want) || r.Of("none").Known() {
		t.Errorf("%d rows, want %d; there is a row %g", len(ListRows()), len(want), float64(r.Of("none")))
	}
}

// TestFramesOfNodes checks that nodes have distinct addresses, workers those of a trace's workers, that frames use the
// nodes' addresses and are cut after their headers without computed lanes, and that they give their number of vectors.
func TestFramesOfNodes(t *testing.T) {
	n := &Network{Workers: 1, Jobs: 300}
	f := NewFramer(frame.SwitchML, n, true)
	nodes := len(n.NodeNames(true))
	seen := map[[4]byte]int{}
	for i := range nodes {
		a := f.Address(i)
		if other, twice := seen[a.SrcIP]; twice || a.SrcMAC != [6]byte{2, 0, a.SrcIP[0], a.SrcIP[1], a.SrcIP[2], a.SrcIP[3]} {
			t.Fatalf("nodes %d and %d are %v", other, i, a)
		}
		seen[a.SrcIP] = i
		if k := i - 300; k < 0 && a != pktgen.DefaultAddressing().WorkerAddresses(i) || k >= 0 &&
			(a.SrcIP != [4]byte{10, 2, byte(k >> 8), byte(k)} || a.SrcPort != frame.SwitchML.Carrier.Port) {
			t.Errorf("node %d is %+v", i, a)
		}
	}
	if one := NewFramer(frame.SwitchML, &Network{Workers: 2}, false); len(one.nodes) != 3 ||
		one.Address(2).SrcIP != [4]byte{10, 2, 0, 0} {
		t.Errorf("nodes of one job: %+v", one.nodes)
	}
	for name, c := range map[string]struct {
		lanes    []uint32
		vectors  uint32
		from, to int
		kept     int
		comment  string
	}{
		"headers": {nil, 1, 2, 400, 128, ""}, "lanes": {make([]uint32, 64), 1, 2, 400, 0, ""},
		"a sum": {nil, 2, 400, 2, 128, "merged 2"}, "between switches": {nil, 0, 400, 401, 128, ""},
		"to the first server": {nil, 1, 400, 300, 128, ""}, "from a worker to a worker": {nil, 1, 2, 299, 128, ""},
		"to the last worker": {nil, 1, 300, 299, 128, ""},
	} {
		p := program.Packet{Kind: program.Data, Job: 1, Lanes: 64, Count: 1, Trace: program.Trace{Vectors: c.vectors}}
		if c.to == 2 {
			p.Kind = program.Result
		}
		got, err := f.Packet(&Frame{At: olaf.Time(7 * olaf.Microsecond), From: c.from, For: c.to, Packet: &p, Lanes: c.lanes})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if c.kept == 0 {
			c.kept = got.Wire
		}
		if got.UnixNS != 7000 || len(got.Data) != c.kept || got.Wire <= 256 || got.Comment != c.comment {
			t.Errorf("%s: %d of %d bytes at %d, %q", name, len(got.Data), got.Wire, got.UnixNS, got.Comment)
		}
		from, to := f.Address(c.from), f.Address(c.to)
		if mac := slices.Concat(to.SrcMAC[:], from.SrcMAC[:]); !slices.Equal(got.Data[:12], mac) ||
			!slices.Equal(got.Data[26:34], slices.Concat(from.SrcIP[:], to.SrcIP[:])) {
			t.Errorf("%s: % x", name, got.Data[:34])
		}
		ports := [2]uint16{from.SrcPort, frame.SwitchML.Carrier.Port} // the worker's in both directions, and the switch's
		if c.from >= 300 && c.to < 300 {
			ports[0] = to.SrcPort
		}
		if p.Kind == program.Result {
			ports[0], ports[1] = ports[1], ports[0]
		}
		if have := [2]uint16{binary.BigEndian.Uint16(got.Data[34:]), binary.BigEndian.Uint16(got.Data[36:])}; have != ports {
			t.Errorf("%s: ports %d, want %d", name, have, ports)
		}
	}
	if StoredBytes(true) != int(olaf.MaxFrame) || StoredBytes(false) != 128 {
		t.Errorf("%d and %d bytes are kept", StoredBytes(true), StoredBytes(false))
	}
	if h := CaptureInterface("rack-0", frame.SwitchML, false); h.Name != "rack-0" || h.SnapBytes != 128 ||
		!strings.Contains(h.Comment, "what rack-0 hears: SwitchML frames (switchml") {
		t.Errorf("%+v", h)
	}
	if _, err := f.Packet(&Frame{From: 0, For: 400, Packet: &program.Packet{Kind: program.Other}}); err == nil {
		t.Error("a frame of no kind was made")
	}
}

// sentTo returns the target nodes of a program's packets, sorted.
func (s *sim) sentTo() (to []int) {
	for s.future.Len() > 0 {
		e := s.future.Pop()
		to = append(to, int(s.packets[uint32(e.What)].target))
		if s.grove == nil {
			to[len(to)-1] = int(s.wires[s.packets[uint32(e.What)].wire].to)
		}
	}
	slices.Sort(to)
	return to
}

// TestProgramDestinations checks that a program's output goes up, to all below, to all but the sender, or to one port.
// Nothing is above the root except its server, and in a tree of servers its sums go to all workers at once.
func TestProgramDestinations(t *testing.T) {
	l := Link{Rate: olaf.Gbps}
	tree := Network{Workers: 3, Link: l, Tree: &Tree{Servers: []TreeServer{{Link: l}, {Link: l}}, Workers: []int{1, 1, 0}}} // hosts 0 to 2, the switch 3, servers 4 and 5
	racks := Network{Workers: 4, Link: l, PerRack: 2}                                                                       // hosts 0 to 3, the root 4, racks 5 and 6
	served := psParts(true)
	for name, c := range map[string]struct {
		n     Network
		parts system.Parts
		at    int
		from  program.Port
		to    program.Dest
		kind  program.Kind
		want  []int
	}{
		"up a tree":                {tree, xaggParts(), 2, 0, program.Up, program.Data, []int{4}},
		"up from the root":         {tree, xaggParts(), 1, 0, program.Up, program.Data, nil},
		"down a tree":              {tree, xaggParts(), 2, 0, program.Down, program.Result, []int{0, 1}},
		"down to the others":       {tree, xaggParts(), 2, 1, program.Others, program.Result, []int{0}},
		"down from above":          {tree, xaggParts(), 2, program.Uplink, program.Others, program.Result, []int{0, 1}},
		"the root's sum":           {tree, xaggParts(), 1, 0, program.Down, program.Result, []int{-1}},
		"the root's word":          {tree, xaggParts(), 1, 0, program.Down, program.Data, []int{2, 5}},
		"the root's to the others": {tree, xaggParts(), 1, 0, program.Others, program.Result, []int{2}},
		"a child":                  {tree, xaggParts(), 2, 0, 1, program.Result, []int{1}},
		"up from a rack":           {racks, iswitchParts(endpoint.ISwitch{}, 8), 2, 0, program.Up, program.Data, []int{4}},
		"up without a server":      {racks, iswitchParts(endpoint.ISwitch{}, 8), 0, 0, program.Up, program.Data, nil},
		"up to a server":           {racks, served, 0, 0, program.Up, program.Data, []int{4}},
		"down a rack":              {racks, iswitchParts(endpoint.ISwitch{}, 8), 2, 0, program.Down, program.Result, []int{2, 3}},
		"to the others of a rack":  {racks, iswitchParts(endpoint.ISwitch{}, 8), 2, 1, program.Others, program.Result, []int{2}},
		"down to racks":            {racks, iswitchParts(endpoint.ISwitch{}, 8), 0, 0, program.Down, program.Result, []int{5, 6}},
		"a worker of a rack":       {racks, iswitchParts(endpoint.ISwitch{}, 8), 1, 0, 1, program.Result, []int{1}},
	} {
		s, err := newSim(&c.n, &Job{Layout: endpoint.Layout{Values: 4, PerPacket: 4}, Updates: 1}, &c.parts, true, 1)
		if err != nil {
			t.Fatal(name, err)
		}
		s.future, s.meter = calendar.NewQueue(8, int64(olaf.Second)), newMeter(s)
		s.out.at, s.out.from = c.at, c.from
		s.out.Emit(c.to, &program.Packet{Kind: c.kind, Job: FirstJob, Lanes: 1, Count: 1}, nil)
		if got := s.sentTo(); !slices.Equal(got, c.want) {
			t.Errorf("%s: to nodes %v, want %v", name, got, c.want)
		}
		if s.grove != nil {
			continue
		}
		for _, job := range []olaf.ClusterID{FirstJob - 1, FirstJob + 1} {
			for _, to := range []program.Dest{program.Up, program.Down, program.Others} {
				s.out.at = 0
				s.out.Emit(to, &program.Packet{Kind: c.kind, Job: job, Lanes: 1}, nil)
			}
			if got := s.sentTo(); got != nil {
				t.Errorf("%s: job %d, which there is none of, reaches nodes %v", name, job, got)
			}
		}
	}
}

// TestBrokenAccounts checks that an account of hosts, switches or packets in flight that does not balance is an error.
func TestBrokenAccounts(t *testing.T) {
	for name, tamper := range map[string]func(*sim){
		"as it is": func(*sim) {}, "on its way for ever": func(s *sim) { s.meter.inFlight++ },
		"a packet that nobody has": func(s *sim) { s.spare = s.spare[1:] },
		"a host's":                 func(s *sim) { s.hosts[3].end = &misheard{s.hosts[3].end} },
		"a switch's": func(s *sim) {
			s.switches[0].Program = &miscounted{s.switches[0].Program,
				s.ledger.Index("vectors_in")}
		}, "a rack's": func(s *sim) { s.switches[1].Program = &miscounted{s.switches[1].Program, s.ledger.Index("vectors_in")} },
	} {
		n, parts := lab(4), iswitchParts(endpoint.ISwitch{}, 8)
		n.PerRack = 2
		s, err := newSim(&n, &Job{Layout: endpoint.Layout{Values: 4, PerPacket: 4}, Updates: 1, Compute: 1}, &parts, true, 1)
		if err != nil {
			t.Fatal(err)
		}
		s.future, s.meter = calendar.NewQueue(8, int64(olaf.Second)), newMeter(s)
		s.startHosts()
		if err := s.runEvents(t.Context()); err != nil {
			t.Fatal(err)
		}
		tamper(s)
		if r, err := s.makeResult(); name == "as it is" && (err != nil || r == nil) || name != "as it is" &&
			(!errors.Is(err, olaf.ErrAccounting) || r != nil) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// miscounted is a program that counts one vector too many.
type miscounted struct {
	program.Program
	vectors int // index among its counts
}

func (m *miscounted) Counts() []uint64 {
	n := slices.Clone(m.Program.Counts())
	n[m.vectors]++
	return n
}

// misheard is a host that counts a sent gradient that was never computed.
type misheard struct{ endpoint.Endpoint }

func (m *misheard) Counts() []uint64 {
	n := make([]uint64, len(m.Endpoint.Counts()))
	n[endpoints.Index("vectors_sent")] = 1
	return n
}

// TestJobsOfTheRoot checks that the root's jobs are available without a run, and empty if no switch runs a program.
func TestJobsOfTheRoot(t *testing.T) {
	job := Job{Layout: endpoint.Layout{Values: 4, PerPacket: 4}, Updates: 1}
	n := lab(4)
	n.Jobs, n.PerRack = 3, 2
	jobs, err := PlanJobs(n, job, systemParts(t, "iswitch", system.Options{PerRack: 2, H: 2}), false)
	if err != nil || len(jobs) != 3 {
		t.Fatalf("%+v, %v", jobs, err)
	}
	for i, j := range jobs {
		ports := []program.Port{}
		for _, m := range j.Members {
			ports = append(ports, m.Port)
		}
		if j.ID != FirstJob+olaf.ClusterID(i) || j.Parent || j.Fan != 2 || j.Level != 1 || !slices.Equal(ports, []program.Port{0, 1}) ||
			j.Base != i*j.Slots {
			t.Errorf("job %d: %+v", i, j)
		}
	}
	for name, c := range map[string]struct {
		n     Network
		parts system.Parts
	}{"a server": {lab(4), psParts(true)}, "a tree": {grownTree(), xaggParts()}} {
		if jobs, err := PlanJobs(c.n, job, c.parts, true); jobs != nil || err != nil {
			t.Errorf("%s: %+v, %v", name, jobs, err)
		}
	}
	if jobs, err := PlanJobs(Network{}, job, psParts(true), true); jobs != nil || !errors.Is(err, ErrConfig) {
		t.Errorf("%+v, %v", jobs, err)
	}
	killed := grownTree()
	killed.Tree.Kill = &Kill{Server: 1}
	parts := xaggParts()
	parts.Renewal = nil
	if r, err := Run(t.Context(), killed, job, parts, true, 1); r != nil || !errors.Is(err, ErrConfig) {
		t.Errorf("nobody hears of a server that is gone: %+v, %v", r, err)
	}
}

// TestPartialSumsAreRejected checks that sums of fewer than all workers are rejected for synchronous workers, but that
// stored runs with them still run.
func TestPartialSumsAreRejected(t *testing.T) {
	job := Job{Layout: endpoint.Layout{Values: 4, PerPacket: 4}, Updates: 1}
	racks := lab(6)
	racks.PerRack = 2
	hops := hilly(4, 0)
	for name, c := range map[string]struct {
		n        Network
		children int
	}{"one switch": {lab(4), 4}, "racks": {racks, 3}, "hops": {hops, 4}} {
		for h := range c.children + 1 {
			parts := systemParts(t, "iswitch", system.Options{PerRack: c.n.PerRack, H: h})
			_, err := PlanJobs(c.n, job, parts, true)
			if early := h > 0 && h < c.children; early != errors.Is(err, ErrConfig) || early &&
				!strings.Contains(err.Error(), fmt.Sprintf("H is %d, but a switch has %d children", h, c.children)) {
				t.Errorf("%s, H = %d: %v", name, h, err)
			}
			if _, err := PlanJobs(c.n, job, parts, false); err != nil {
				t.Errorf("%s, H = %d, async: %v", name, h, err)
			}
			if _, err := Run(t.Context(), c.n, job, parts, true, 1); err != nil {
				t.Errorf("%s, H = %d played: %v", name, h, err)
			}
		}
	}
}
