package xagg

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
)

// TestHeight checks the paper's inequality for every w and k that it covers.
func TestHeight(t *testing.T) {
	for k := 2; k <= 5; k++ {
		for w := 2; w <= 64; w++ {
			h := treeHeight(k, w)
			if low, high := math.Pow(float64(k), float64(h-2)), math.Pow(float64(k), float64(h-1)); float64(w) <= low ||
				float64(w) > high {
				t.Errorf("k %d, w %d: height %d has %g < w ≤ %g", k, w, h, low, high)
			}
		}
	}
}

func some(workers, servers int) (w []Worker, s []Candidate) {
	for i := range workers {
		w = append(w, Worker{Name: fmt.Sprint("w", i)})
	}
	for i := range servers {
		s = append(s, Candidate{Name: fmt.Sprint("s", i), Idle: 100 * olaf.Gbps})
	}
	return w, s
}

// TestBuild checks that with enough servers a tree has the height of the inequality, that each node has 2 to k
// children, and that every worker appears once.
func TestBuild(t *testing.T) {
	for k := 2; k <= 5; k++ {
		for w := 1; w <= 64; w++ {
			workers, servers := some(w, 64)
			tree, err := BuildTree(k, workers, servers)
			if err != nil {
				t.Fatal(err)
			}
			checkTree(t, tree, w)
			if levels := measureDepth(tree); levels != tree.Height {
				t.Errorf("k %d, w %d: %d levels, want %d", k, w, levels, tree.Height)
			}
			if n := len(tree.Top) + len(tree.Workers); n > k {
				t.Errorf("k %d, w %d: the root has %d children", k, w, n)
			}
		}
	}
}

// checkTree checks the properties of every tree.
func checkTree(t interface{ Fatalf(string, ...any) }, tree *Tree, workers int) {
	seen := make([]int, workers)
	for _, w := range tree.Workers {
		seen[w]++
	}
	for i, n := range tree.Nodes {
		if c := len(n.Workers) + len(n.Nodes); c < 2 || c > tree.K {
			t.Fatalf("node %d has %d children", i, c)
		}
		if (n.Parent == Root) != slices.Contains(tree.Top, i) {
			t.Fatalf("node %d is below %d, and the top is %v", i, n.Parent, tree.Top)
		}
		for _, below := range n.Nodes {
			if tree.Nodes[below].Parent != i || below >= i {
				t.Fatalf("node %d is above %d, which is below %d", i, below, tree.Nodes[below].Parent)
			}
		}
		for _, w := range n.Workers {
			seen[w]++
		}
	}
	if slices.ContainsFunc(seen, func(n int) bool { return n != 1 }) {
		t.Fatalf("workers are in the tree so often: %v", seen)
	}
}

// measureDepth returns the number of levels, including the workers and the root.
func measureDepth(tree *Tree) int {
	most := 0
	for i := range tree.Nodes {
		d := 1
		for at := i; at != Root; at = tree.Nodes[at].Parent {
			d++
		}
		most = max(most, d)
	}
	return max(most, 1) + 1
}

// TestTreeOfAnyServersIsValid checks that a tree of any servers is valid and that a slower server gets fewer children.
func TestTreeOfAnyServersIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers, servers := some(rapid.IntRange(1, 40).Draw(t, "workers"), rapid.IntRange(0, 20).Draw(t, "servers"))
		for i := range servers {
			servers[i].Idle = olaf.Rate(rapid.Int64Range(1, 100).Draw(t, "rate")) * olaf.Gbps
		}
		for i := range workers {
			workers[i].Takes = olaf.Duration(rapid.Int64Range(0, 9).Draw(t, "takes"))
		}
		tree, err := BuildTree(rapid.IntRange(2, 6).Draw(t, "k"), workers, servers)
		if err != nil {
			t.Fatal(err)
		}
		checkTree(t, tree, len(workers))
	})
}

// TestChildrenAreProportional checks the published rounding: children in proportion to the first server's, and at most
// k.
func TestChildrenAreProportional(t *testing.T) {
	workers, servers := some(12, 3)
	for i, gbps := range []olaf.Rate{100, 50, 300} {
		servers[i].Idle = gbps * olaf.Gbps
	}
	tree, err := BuildTree(4, workers, servers)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{4, 2, 4} {
		if n := len(tree.Nodes[i].Workers); n != want {
			t.Errorf("server %d has %d children, want %d", i, n, want)
		}
	}
}

func TestTreeRefusals(t *testing.T) {
	workers, servers := some(3, 1)
	if _, err := BuildTree(1, workers, servers); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
	if _, err := BuildTree(2, nil, servers); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
}
