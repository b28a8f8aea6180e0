// Package ktree builds aggregation trees: which servers stand above which workers, so that none has more than k children and
// each is used by what its link carries (Zhang et al., XAgg, §V).
package ktree

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/olafctl/olaf"
)

// ErrConfig is the kind of every refused tree.
var ErrConfig = olaf.NewError(olaf.Usage, "bad aggregation tree")

// MaxK is the most children that a node may have here: the bits of a server's bitmap. The paper chooses 2 to 5.
const MaxK = 64

// Worker is what is known of a worker: in the first round, on a plain parameter server, it took so long in all.
type Worker struct {
	Name  string
	Takes olaf.Duration
}

// Server is a server that could aggregate.
type Server struct {
	Name         string
	Idle         olaf.Rate // of its link
	Cores        int       // that are idle
	Memory, Used olaf.Size
}

// PerCore is what one core adds up and forwards (paper, §VI-B, in whole tens of Gbps).
const PerCore = 10 * olaf.Gbps

// memoryShare is how much of a server's memory may be used with the model in it.
const memoryShare = 0.8

// Candidates are the servers that can take a model, the best first: by bandwidth, then cores, then memory. One whose idle
// cores cannot carry its idle bandwidth is none (paper, §V).
func Candidates(servers []Server, model olaf.Size) []Server {
	var able []Server
	for _, s := range servers {
		fits := float64(s.Used+model) <= memoryShare*float64(s.Memory)
		if fits && s.Idle <= PerCore*olaf.Rate(s.Cores) {
			able = append(able, s)
		}
	}
	slices.SortStableFunc(able, func(a, b Server) int {
		return cmp.Or(cmp.Compare(b.Idle, a.Idle), cmp.Compare(b.Cores, a.Cores), cmp.Compare(b.Memory-b.Used, a.Memory-a.Used))
	})
	return able
}

// Height is the least h with k^(h−2) < w ≤ k^(h−1), in levels with the workers' and the root's (paper, Inequality 2); a lone
// worker below the root makes 2. k and workers must be at least 2 and 1.
func Height(k, workers int) int {
	h := 2
	for most := k; most < workers; most *= k {
		h++
	}
	return h
}

// Root is the place of the parameter server, to which a tree's top nodes belong.
const Root = -1

// Node is a server in a tree, with its children.
type Node struct {
	Server  string
	Parent  int   // place of the node above, or Root
	Workers []int // places of workers
	Nodes   []int // places of nodes below
}

// Tree says who stands above whom.
type Tree struct {
	K, Height int
	Nodes     []Node
	Top       []int // nodes below the root
	Workers   []int // workers below the root
}

// Build puts servers above workers, layer by layer from below, so that no node has more than k children. Workers are taken in
// the order of how long they take, so that those of one parent are alike; servers in the order given. A server whose link is
// slower than the first one's gets fewer children in proportion, and one that would have a single child gets none. Where
// servers run out, what is left is the root's. The error matches ErrConfig.
func Build(k int, workers []Worker, servers []Server) (*Tree, error) {
	switch {
	case k < 2 || k > MaxK:
		return nil, fmt.Errorf("%w: k is %d; a node has 2 to %d children", ErrConfig, k, MaxK)
	case len(workers) < 1:
		return nil, fmt.Errorf("%w: it has no workers", ErrConfig)
	}
	t := &Tree{K: k, Height: Height(k, len(workers))}
	order := make([]int, len(workers))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(workers[a].Takes, workers[b].Takes) })
	layer := make([]child, len(order))
	for i, w := range order {
		layer[i] = child{worker: w, node: Root}
	}
	for len(layer) > k && len(servers) > 0 {
		layer, servers = t.raise(layer, servers)
	}
	for _, c := range layer {
		if c.node == Root {
			t.Workers = append(t.Workers, c.worker)
		} else {
			t.Top = append(t.Top, c.node)
		}
	}
	return t, nil
}

// child is a worker, or a node where node is not Root.
type child struct{ worker, node int }

// raise puts servers above a layer and gives the layer that results.
func (t *Tree) raise(layer []child, servers []Server) (above []child, left []Server) {
	var reference float64 // rate of a child
	for len(layer) > 1 && len(servers) > 0 {
		s := servers[0]
		n := t.K
		if reference == 0 {
			reference = float64(s.Idle) / float64(t.K)
		} else if reference > 0 {
			n = min(t.K, int(math.Ceil(float64(s.Idle)/reference-0.5)))
		}
		servers = servers[1:]
		n = min(n, len(layer))
		if n < 2 {
			continue
		}
		above = append(above, child{node: t.add(s.Name, layer[:n])})
		layer = layer[n:]
	}
	return append(above, layer...), servers
}

// add makes a node of a server and its children.
func (t *Tree) add(server string, children []child) int {
	at := len(t.Nodes)
	n := Node{Server: server, Parent: Root}
	for _, c := range children {
		if c.node == Root {
			n.Workers = append(n.Workers, c.worker)
		} else {
			n.Nodes = append(n.Nodes, c.node)
			t.Nodes[c.node].Parent = at
		}
	}
	t.Nodes = append(t.Nodes, n)
	return at
}
