package netsim

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/internal/yamlfile"
)

// Scale changes the size and timing of a preset; zero values leave the preset's own.
type Scale struct {
	Clusters          int
	WorkersPerCluster int
	Interval          olaf.Duration // of all clusters
	Interval2         olaf.Duration // of the second half of the clusters
	Jitter            *olaf.Duration
	X1                olaf.Rate // of the link out of the first switch
}

// presets are the built-in topologies, simplest first.
var presets = []struct {
	name, about string
	make        func() *Topology
}{
	{"single", "one switch, one queue: 9 clusters of 3 workers", singlePreset},
	{"multihop", "the paper's Fig. 9 with the parameters of Tables 2 and 3: 10 clusters behind two switches, a " +
		"third is the bottleneck", multihopPreset},
	{"fat-tree", "4-ary fat tree: clusters spread over the edge switches of three pods, the server in the fourth",
		fatTree},
	{"rack", "8 racks of servers under two spines", rackPreset},
	{"ns3-fifo", "the model of docs/notes/ns3: FIFO only, equal to ns-3 3.37 packet for packet", ns3FIFO},
}

// Presets returns the names of the presets and their descriptions.
func Presets() [][2]string {
	var out [][2]string
	for _, p := range presets {
		out = append(out, [2]string{p.name, p.about})
	}
	return out
}

// Preset returns the named topology, which may use systems of the set; queues alone need none. If scale changes the
// number of clusters or workers, link rates grow with the workers and slots with the clusters, so that the load stays
// the same. The error matches ErrTopology.
func Preset(systems system.Set, name string, scale Scale) (*Topology, error) {
	var names []string
	for _, p := range presets {
		if p.name == name {
			t := p.make()
			t.Name, t.systems = name, systems
			return t, t.Rescale(scale)
		}
		names = append(names, p.name)
	}
	return nil, &Error{What: fmt.Sprintf("there is no preset %q%s", name, yamlfile.Suggest(name, names))}
}

// Rescale applies s to t; see Preset.
func (t *Topology) Rescale(s Scale) error {
	if s.Clusters < 0 || s.WorkersPerCluster < 0 {
		return &Error{What: fmt.Sprintf("%d clusters of %d workers: both must be positive", s.Clusters,
			s.WorkersPerCluster)}
	}
	clusters, workers := t.countWorkers()
	t.setClusters(s.Clusters)
	id := 0
	for i := range t.Clusters {
		k := &t.Clusters[i]
		if s.WorkersPerCluster > 0 {
			k.Workers = s.WorkersPerCluster
		}
		if s.Clusters > 0 {
			k.ID = id
		}
		id += k.clusterCount()
		if s.Interval > 0 {
			k.Period = s.Interval
		}
		if s.Interval2 > 0 && 2*i >= len(t.Clusters) {
			k.Period = s.Interval2
		}
		if s.Jitter != nil {
			k.Jitter = *s.Jitter
		}
	}
	nowClusters, nowWorkers := t.countWorkers()
	if t.Timing != NS3 && clusters > 0 && workers > 0 {
		for i := range t.Links {
			t.Links[i].Rate = olaf.Rate(float64(t.Links[i].Rate) * float64(nowWorkers) / float64(workers))
		}
		for i := range t.Switches {
			if was := t.Switches[i].Slots; was > 0 { // 0 is an error that Check will report
				t.Switches[i].Slots = max(1, was*nowClusters/clusters)
			}
		}
	}
	if s.X1 != 0 {
		return t.setFirstRate(s.X1)
	}
	return nil
}

// setFirstRate changes the rate of the link out of the first cluster's first switch.
func (t *Topology) setFirstRate(r olaf.Rate) error {
	if len(t.Clusters) > 0 && len(t.Clusters[0].At) > 0 {
		for i := range t.Links {
			if t.Links[i].From == t.Clusters[0].At[0] {
				t.Links[i].Rate = r
				return nil
			}
		}
	}
	return &Error{What: "the first cluster's switch has no output link whose rate could be changed"}
}

// setClusters distributes n clusters evenly over the entries of t.
func (t *Topology) setClusters(n int) {
	if n <= 0 {
		return
	}
	entries := min(len(t.Clusters), n)
	t.Clusters = t.Clusters[:entries]
	for i := range t.Clusters {
		t.Clusters[i].Count = n*(i+1)/entries - n*i/entries
	}
}

func (t *Topology) countWorkers() (clusters, workers int) {
	for i := range t.Clusters {
		clusters += t.Clusters[i].clusterCount()
		workers += t.Clusters[i].clusterCount() * t.Clusters[i].Workers
	}
	return clusters, workers
}

func singlePreset() *Topology {
	const us = olaf.Microsecond
	return &Topology{
		Duration: 100 * olaf.Millisecond, Warmup: olaf.Millisecond, Seed: 1, Queue: "olaf", Update: 256,
		Control:  Control{Threshold: 50 * us, Slope: tc.Urgency, Count: CountClusters, Window: olaf.Millisecond},
		Switches: []Switch{{Name: "sw1", Slots: 8, HoldTx: true}},
		Servers:  []Server{{Name: "ps"}},
		Links:    []Link{{From: "sw1", To: "ps", Rate: 400 * olaf.Mbps, Delay: us}},
		Clusters: []Clusters{{ID: 0, Count: 9, Workers: 3, At: Names{"sw1"}, Period: 100 * us, Jitter: 10 * us,
			Access: Access{Rate: 10 * olaf.Gbps, Delay: us}}},
	}
}

// bottleneck is the rate of SW3 in the multi-hop experiments: 106 updates of 1 kB per second.
const bottleneck = 106 * 8000 * olaf.BitPerSecond

func multihopPreset() *Topology {
	const ms = olaf.Millisecond
	half := func(group string, id int, at string) Clusters {
		return Clusters{
			Group: group, ID: id, Count: 5, Workers: 10, At: Names{at}, Access: Access{Delay: 50 * ms},
			Period: 100 * ms, Phase: Span{0, 54 * ms}, Jitter: 2 * ms,
		}
	}
	return &Topology{
		Duration: 60 * olaf.Second, Warmup: 5 * olaf.Second, Seed: 1, Queue: "olaf", Update: 1000,
		Control:  Control{Threshold: 50 * ms, Slope: tc.Urgency, Count: CountSenders, Window: olaf.Second},
		Switches: []Switch{{Name: "sw1", Slots: 5}, {Name: "sw2", Slots: 5}, {Name: "sw3", Slots: 8}},
		Servers:  []Server{{Name: "ps"}},
		Links: []Link{
			{From: "sw1", To: "sw3", Rate: bottleneck * 9 / 2, Delay: 50 * ms},
			{From: "sw2", To: "sw3", Rate: bottleneck * 9 / 2, Delay: 50 * ms},
			{From: "sw3", To: "ps", Rate: bottleneck, Delay: 50 * ms},
		},
		Clusters: []Clusters{half("S1", 1, "sw1"), half("S2", 6, "sw2")},
	}
}

func ns3FIFO() *Topology {
	hop := 100 * olaf.Microsecond
	const framing = 30 // 8 B of UDP, 20 B of IPv4 and 2 B of PPP around 1000 B
	half := func(group string, id int, at string) Clusters {
		return Clusters{
			Group: group, ID: id, Count: 5, Workers: 10, At: Names{at}, Period: 100 * olaf.Millisecond,
			Access: Access{Rate: 100 * olaf.Mbps, Delay: hop, Overhead: framing},
		}
	}
	return &Topology{
		Duration: 60 * olaf.Second, Seed: 1, Queue: "fifo", Update: 1000, Timing: NS3, Acks: AcksNone,
		Switches: []Switch{{Name: "sw1", Slots: 5}, {Name: "sw2", Slots: 5}, {Name: "sw3", Slots: 8}},
		Servers:  []Server{{Name: "ps"}},
		Links: []Link{
			{From: "sw1", To: "sw3", Rate: 10 * olaf.Mbps, Delay: hop, Overhead: framing},
			{From: "sw2", To: "sw3", Rate: 10 * olaf.Mbps, Delay: hop, Overhead: framing},
			{From: "sw3", To: "ps", Rate: olaf.Mbps, Delay: hop, Overhead: framing},
		},
		Clusters: []Clusters{half("S1", 0, "sw1"), half("S2", 5, "sw2")},
	}
}

// fatTree returns the 4-ary fat tree: four pods of two edge and two aggregation switches below four cores. The server
// is at the last pod's first edge switch; the clusters are spread over the edges of the other three.
func fatTree() *Topology {
	const us = olaf.Microsecond
	t := &Topology{
		Duration: olaf.Second, Warmup: 100 * olaf.Millisecond, Seed: 1, Queue: "olaf", Update: 1024,
		Control: Control{Threshold: 5 * olaf.Millisecond, Slope: tc.Urgency, Count: CountClusters,
			Window: 100 * olaf.Millisecond},
		Servers: []Server{{Name: "ps"}},
	}
	sw := func(format string, args ...any) string {
		name := fmt.Sprintf(format, args...)
		t.Switches = append(t.Switches, Switch{Name: name, Slots: 8})
		return name
	}
	link := func(from, to string) {
		t.Links = append(t.Links, Link{From: from, To: to, Rate: 20 * olaf.Mbps, Delay: 5 * us})
	}
	cores := []string{sw("core1"), sw("core2"), sw("core3"), sw("core4")}
	var edges []string
	for pod := range 4 {
		var up []string
		for a := range 2 {
			up = append(up, sw("agg%d%d", pod+1, a+1))
			link(up[a], cores[2*a])
			link(up[a], cores[2*a+1])
		}
		for e := range 2 {
			name := sw("edge%d%d", pod+1, e+1)
			link(name, up[e]) // first link, so that each edge prefers its own aggregation switch
			link(name, up[1-e])
			edges = append(edges, name)
		}
	}
	link(edges[6], "ps")
	for i := range 3 {
		t.Clusters = append(t.Clusters, Clusters{
			Group: fmt.Sprintf("pods%d", i+1), ID: 8 * i, Count: 8, Workers: 8,
			At:     Names{edges[2*i], edges[2*i+1], edges[(2*i+2)%6]},
			Period: 20 * olaf.Millisecond, Jitter: olaf.Millisecond, Access: Access{Rate: olaf.Gbps, Delay: 5 * us},
		})
	}
	return t
}

// rackPreset returns two tiers: racks whose top-of-rack switches connect to one of two spines, and the server at the first
// spine.
func rackPreset() *Topology {
	const us = olaf.Microsecond
	t := &Topology{
		Duration: olaf.Second, Warmup: 100 * olaf.Millisecond, Seed: 1, Queue: "olaf", Update: 1024,
		Control: Control{Threshold: 5 * olaf.Millisecond, Slope: tc.Urgency, Count: CountClusters,
			Window: 100 * olaf.Millisecond},
		Switches: []Switch{{Name: "spine1", Slots: 16}, {Name: "spine2", Slots: 16}},
		Servers:  []Server{{Name: "ps"}},
		Links: []Link{
			{From: "spine1", To: "ps", Rate: 40 * olaf.Mbps, Delay: 2 * us},
			{From: "spine2", To: "spine1", Rate: 40 * olaf.Mbps, Delay: 2 * us},
		},
	}
	for i := range 8 {
		tor := fmt.Sprintf("tor%d", i+1)
		t.Switches = append(t.Switches, Switch{Name: tor, Slots: 8})
		t.Links = append(t.Links, Link{From: tor, To: fmt.Sprintf("spine%d", i%2+1), Rate: 20 * olaf.Mbps,
			Delay: 2 * us})
		t.Clusters = append(t.Clusters, Clusters{
			Group: fmt.Sprintf("rack%d", i+1), ID: 4 * i, Count: 4, Workers: 16, At: Names{tor},
			Period: 50 * olaf.Millisecond, Jitter: 5 * olaf.Millisecond, Access: Access{Rate: olaf.Gbps, Delay: us},
		})
	}
	return t
}
