package lab

import (
	"strings"
	"testing"
)

func TestWorkersWithOneNumberAreNamed(t *testing.T) {
	s := &State{Nodes: []NodeState{{Name: "s0", Counts: map[string]uint64{"misidentified": 192, "consumed": 1}}, {Name: "w0"}}}
	s.remark()
	if len(s.Remarks) != 1 || !strings.HasPrefix(s.Remarks[0], "s0: 192 packets named another worker") {
		t.Errorf("remarks %q", s.Remarks)
	}
}
