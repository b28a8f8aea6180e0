package netsim

import (
	"embed"
	"fmt"

	"go.yaml.in/yaml/v4"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/internal/yamlfile"
)

// Scale changes the size and the timing of a preset. Fields that are zero leave the preset unchanged.
type Scale struct {
	Clusters          int
	WorkersPerCluster int
	Interval          olaf.Duration // of all clusters
	Interval2         olaf.Duration // of the second half of the clusters
	Jitter            *olaf.Duration
	X1                olaf.Rate // of the link out of the first switch
}

// presetFiles contains the files of the built-in topologies.
//
//go:embed presets
var presetFiles embed.FS

// presets lists the built-in topologies, from simple to complex.
var presets = []struct{ name, about string }{
	{"single", "one switch, one queue: 9 clusters of 3 workers"},
	{"multihop", "the paper's Fig. 9 with the parameters of Tables 2 and 3: 10 clusters behind two switches, a " +
		"third is the bottleneck"},
	{"fat-tree", "4-ary fat tree: clusters spread over the edge switches of three pods, the server in the fourth"},
	{"rack", "8 racks of servers under two spines"},
	{"ns3-fifo", "the model of docs/notes/ns3: FIFO only, equal to ns-3 3.37 packet for packet"},
}

// Presets returns the name and the description of each preset.
func Presets() [][2]string {
	var out [][2]string
	for _, p := range presets {
		out = append(out, [2]string{p.name, p.about})
	}
	return out
}

// Preset returns the topology with the given name. systems contains the available systems; topologies that contain only
// queues need none. If scale changes the number of clusters or workers, link rates grow with the workers and slots with
// the clusters, so that the load stays the same. The error matches ErrTopology.
func Preset(systems system.Set, name string, scale Scale) (*Topology, error) {
	var names []string
	for _, p := range presets {
		if p.name == name {
			t, err := readPreset(systems, name)
			if err != nil {
				return nil, err
			}
			return t, t.Rescale(scale)
		}
		names = append(names, p.name)
	}
	return nil, &Error{What: fmt.Sprintf("there is no preset %q%s", name, yamlfile.Suggest(name, names))}
}

// readPreset parses the file of a preset. It leaves the positions unset, because users do not have the file.
func readPreset(systems system.Set, name string) (*Topology, error) {
	text, err := presetFiles.ReadFile("presets/" + name + ".yaml")
	if err != nil {
		return nil, err
	}
	t := &Topology{systems: systems}
	if err := yaml.Unmarshal(text, t); err != nil {
		return nil, fmt.Errorf("preset %s: %w", name, err)
	}
	t.Schema = ""
	return t, nil
}

// Rescale applies s to t in the same way as Preset.
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

// setFirstRate changes the rate of the link out of the switch to which the first cluster is connected.
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

// setClusters distributes n clusters evenly over the cluster entries of t.
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
