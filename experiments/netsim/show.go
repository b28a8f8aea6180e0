package netsim

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/text"
)

// WriteText prints the links in t, the paths of updates, and the senders.
func (t *Topology) WriteText(w io.Writer, width int) error {
	n, err := buildNetwork(t)
	if err != nil {
		return err
	}
	clusters, workers := t.countWorkers()
	control := "off"
	if t.Control.Enabled {
		control = fmt.Sprintf("on, threshold %v, slope %s, N counts %s", t.Control.Threshold, t.Control.Slope,
			t.Control.Count)
		if t.Control.Law != "" {
			control += ", law " + string(t.Control.Law)
		}
		if t.Control.Ack != "" {
			control += ", content of ACKs " + string(t.Control.Ack)
		}
	}
	sending := "transmission control " + control
	if t.Waiting != nil {
		sending = "workers wait for answers as those of " + t.Title()
	}
	if sums := t.DescribeSums(); sums != "" {
		sending = sums + ", " + sending
	}
	for _, line := range table.Fold(fmt.Sprintf("%s: %s, %s, updates of %v, %v after %v of warm-up, queue %s, %s",
		t.Name, olaf.Plural(clusters, "cluster"), olaf.Plural(workers, "worker"), t.Update, t.Duration, t.Warmup,
		t.Queue, sending), width) {
		fmt.Fprintln(w, line)
	}
	fmt.Fprintln(w)
	if err := t.linkGrid(n).Write(w, width); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return t.groupGrid(n).Write(w, width)
}

func (t *Topology) linkGrid(n *network) *table.Grid {
	g := &table.Grid{Columns: []table.GridColumn{{Header: "LINK"}, {Header: "RATE"}, {Header: "DELAY"},
		{Header: "SLOTS"}, {Header: "UPDATES/s AT MOST"}}}
	for i := range t.Links {
		l := &t.Links[i]
		slots := "–"
		if p, ok := n.portOf[[2]int32{n.nodeIndex(l.From), n.nodeIndex(l.To)}]; ok {
			slots = fmt.Sprint(n.ports[p].slots)
		}
		g.Add(l.From+" – "+l.To, l.Rate.String(), l.Delay.String(), slots,
			text.Single(float64(l.Rate)/float64((t.Update+l.Overhead).Bits())))
	}
	return g
}

func (t *Topology) groupGrid(n *network) *table.Grid {
	g := &table.Grid{Columns: []table.GridColumn{{Header: "GROUP"}, {Header: "CLUSTERS"}, {Header: "WORKERS EACH"},
		{Header: "PERIOD"}, {Header: "UPDATES/s"}, {Header: "PATH", Prose: true}}}
	seen := map[*Clusters]bool{}
	for i := range n.clusters {
		c := &n.clusters[i]
		k := n.trees[c.tree].spec
		if seen[k] {
			continue
		}
		seen[k] = true
		offered := float64(k.clusterCount()*k.Workers) / k.Period.Seconds()
		g.Add(n.groups[c.group], k.formatIDs(), fmt.Sprint(k.Workers), k.Period.String(), text.Single(offered),
			n.formatPaths(t, c))
	}
	return g
}

func (n *network) nodeIndex(name string) int32 { return int32(slices.Index(n.names, name)) }

// formatPaths formats the paths that a cluster's updates take.
func (n *network) formatPaths(t *Topology, c *cluster) string {
	var ways []string
	tr := &n.trees[c.tree]
	for _, at := range tr.attached {
		ports, err := n.findPath(t, tr.spec.Pos, at, c.server)
		if err != nil {
			continue // build has reported it
		}
		way := n.names[at]
		for _, p := range ports {
			way += " → " + n.names[n.ports[p].to]
		}
		ways = append(ways, way)
	}
	return strings.Join(ways, ", ")
}

// ShortestWay returns the shortest possible time in which an update travels from a worker to its server through empty
// queues, measured from its first bit to its last bit.
func (t *Topology) ShortestWay() (olaf.Duration, error) {
	n, err := buildNetwork(t)
	if err != nil {
		return 0, err
	}
	least := olaf.Duration(math.MaxInt64)
	for i := range n.clusters {
		c := &n.clusters[i]
		tr := &n.trees[c.tree]
		access := tr.spec.Access.Delay
		if rate := tr.spec.Access.Rate; rate > 0 {
			access += rate.TimeToSend(t.Update + tr.spec.Access.Overhead)
		}
		for _, at := range tr.attached {
			ports, err := n.findPath(t, tr.spec.Pos, at, c.server)
			if err != nil {
				return 0, err
			}
			way := access
			for _, p := range ports {
				l := n.ports[p].spec
				way += l.Delay + l.Rate.TimeToSend(t.Update+l.Overhead)
			}
			least = min(least, way)
		}
	}
	return least, nil
}

// Dot returns t as a Graphviz graph.
func (t *Topology) Dot() string {
	var b strings.Builder
	quote := func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
	}
	b.WriteString("graph topology {\n  rankdir=LR;\n  node [fontname=\"sans-serif\"];\n")
	for i := range t.Clusters {
		k := &t.Clusters[i]
		id := quote("clusters " + k.formatIDs())
		b.WriteString("  " + id + " [shape=folder, label=" + quote(k.formatLabel()) + "];\n")
		for _, at := range k.At {
			b.WriteString("  " + id + " -- " + quote(at) + ";\n")
		}
	}
	for i := range t.Switches {
		s := &t.Switches[i]
		b.WriteString("  " + quote(s.Name) + " [shape=box, label=" +
			quote(s.Name+"\n"+t.queueOf(s)+", "+olaf.Plural(s.Slots, "slot")) + "];\n")
	}
	for i := range t.Servers {
		b.WriteString("  " + quote(t.Servers[i].Name) + " [shape=doublecircle];\n")
	}
	for i := range t.Links {
		l := &t.Links[i]
		b.WriteString("  " + quote(l.From) + " -- " + quote(l.To) + " [label=" +
			quote(l.Rate.String()+"\n"+l.Delay.String()) + "];\n")
	}
	b.WriteString("}\n")
	return b.String()
}
