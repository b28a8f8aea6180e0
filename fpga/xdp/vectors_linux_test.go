package xdp

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/engine/enginetest"
)

// TestGoldenVectors runs every golden vector of the engine through the kernel. Vectors whose slots have the same shape
// share loaded programs.
func TestGoldenVectors(t *testing.T) {
	files, err := filepath.Glob("../engine/testdata/vectors/*.txt")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d vectors, %v", len(files), err)
	}
	vectors := make([]*enginetest.Vector, len(files))
	known := map[identity]netip.Addr{}
	var senders []dataplane.Sender
	for i, file := range files {
		vectors[i] = parse(t, file)
		for _, ev := range vectors[i].Events {
			who := identity{ev.Update.Cluster, ev.Update.Worker}
			if _, ok := known[who]; !ok && ev.Kind == enginetest.In {
				known[who] = addressOf(len(known))
				senders = append(senders, dataplane.Sender{Address: known[who], Cluster: who.cluster, Worker: who.worker})
			}
		}
	}
	loaded := map[string]*Queue{}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			shape := fmt.Sprint(v.Engine, v.Config.LaneMemory)
			if loaded[shape] == nil {
				loaded[shape] = loadFor(t, v, senders)
			}
			got, err := enginetest.ReplayOn(newDiscipline(t, loaded[shape], v.Config, known), v)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(write(t, v), write(t, got)); d != "" {
				t.Fatalf("-vector +kernel:\n%s", d)
			}
		})
	}
	for _, k := range loaded {
		_ = k.Close()
	}
}

func loadFor(t *testing.T, v *enginetest.Vector, senders []dataplane.Sender) *Queue {
	t.Helper()
	k := load(t, v.Engine, dataplane.Build{Slots: 9, Clusters: 9, Lanes: v.Config.LaneMemory, FrameLanes: olaf.MaxLanes, Senders: len(senders),
		LogBytes: 1 << 16})
	if err := k.SetSenders(senders); err != nil {
		t.Fatal(err)
	}
	return k
}

func parse(t *testing.T, file string) *enginetest.Vector {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	v, err := enginetest.ParseVector(f)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func write(t *testing.T, v *enginetest.Vector) string {
	t.Helper()
	var text bytes.Buffer
	if err := enginetest.WriteVector(&text, v); err != nil {
		t.Fatal(err)
	}
	return text.String()
}
