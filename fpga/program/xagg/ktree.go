package xagg

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/olafctl/olaf"
)

// ErrConfig is matched by errors about trees that cannot be built.
var ErrConfig = olaf.NewError(olaf.Usage, "bad aggregation tree")

// maxK is the maximum number of children per node. A server's bitmap has one bit per child. The paper chooses 2 to 5.
const maxK = 64

// Worker describes a worker by the total time that its first round took with a plain parameter server.
type Worker struct {
	Name  string
	Takes olaf.Duration
}

// Candidate describes a server that may be used for aggregation.
type Candidate struct {
	Name string
	Idle olaf.Rate // idle rate of the link
}

// treeHeight returns the height of a tree, which is the smallest h with k^(h−2) < workers ≤ k^(h−1) (paper, Inequality
// 2). The levels of the workers and of the root are counted. A single worker below the root has height 2. k must be at
// least 2, and workers at least 1.
func treeHeight(k, workers int) int {
	h := 2
	for most := k; most < workers; most *= k {
		h++
	}
	return h
}

// Root is the parent index of a tree's top nodes. It represents the parameter server.
const Root = -1

// Node is a server in a tree, with its children.
type Node struct {
	Server  string
	Parent  int   // index of the parent node, or Root
	Workers []int // indexes of workers
	Nodes   []int // indexes of child nodes
}

// Tree is an aggregation tree of servers above workers (Zhang et al., XAgg, §V). No node has more than k children, and
// each server has as many children as its link can carry.
type Tree struct {
	K, Height int
	Nodes     []Node
	Top       []int // child nodes of the root
	Workers   []int // workers directly below the root
}

// BuildTree puts servers above workers, layer by layer from below, so that no node has more than k children. It sorts
// workers by time, so that siblings have similar times, and uses servers in the given order. A server whose link is
// slower than that of the first server gets proportionally fewer children, and is skipped if it would get only one. If
// there are not enough servers, the remaining nodes become children of the root. The error matches ErrConfig.
func BuildTree(k int, workers []Worker, servers []Candidate) (*Tree, error) {
	switch {
	case k < 2 || k > maxK:
		return nil, fmt.Errorf("%w: k is %d; a node has 2 to %d children", ErrConfig, k, maxK)
	case len(workers) < 1:
		return nil, fmt.Errorf("%w: it has no workers", ErrConfig)
	}
	t := &Tree{K: k, Height: treeHeight(k, len(workers))}
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
		layer, servers = t.raiseLayer(layer, servers)
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

// child is a child of a node. It is another node, or a worker if node is Root.
type child struct{ worker, node int }

// raiseLayer puts servers above a layer. It returns the new layer and the servers that were not used.
func (t *Tree) raiseLayer(layer []child, servers []Candidate) (above []child, left []Candidate) {
	var reference float64 // link rate per child on the first server
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
		above = append(above, child{node: t.addNode(s.Name, layer[:n])})
		layer = layer[n:]
	}
	return append(above, layer...), servers
}

// addNode adds a node for a server and its children and returns its index.
func (t *Tree) addNode(server string, children []child) int {
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
