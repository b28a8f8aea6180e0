package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
)

// TestSlotsDoNotOverlap fills every slot with gradients of each length around a cache line and checks that they are
// unchanged.
func TestSlotsDoNotOverlap(t *testing.T) {
	for memory := 1; memory <= 40; memory++ {
		d, err := engine.New("fifo", engine.Config{Slots: 3, Clusters: 3, LaneMemory: memory})
		if err != nil {
			t.Fatal(err)
		}
		for c := range 3 {
			lanes := slices.Repeat([]int32{int32(c + 1)}, memory)
			d.Offer(0, &olaf.Update{Cluster: olaf.ClusterID(c), Count: 1, Lanes: uint16(memory)}, lanes, nil)
		}
		for c := range 3 {
			slot, _, ok := d.Lock()
			var f engine.Frame
			if d.View(slot, &f); !ok || !slices.Equal(f.Lanes, slices.Repeat([]int32{int32(c + 1)}, memory)) {
				t.Errorf("%d lanes: slot %d holds %v", memory, slot, f.Lanes)
			}
			d.Release(slot)
		}
	}
}

// TestLockRefusesInFull locks every slot of a queue in turn. It checks that no other frame can be locked meanwhile, and
// that Lock then returns NoSlot and size 0.
func TestLockRefusesInFull(t *testing.T) {
	d, err := engine.New("fifo", engine.Config{Slots: 2, Clusters: 1})
	if err != nil {
		t.Fatal(err)
	}
	if slot, size, ok := d.Lock(); ok || slot != engine.NoSlot || size != 0 {
		t.Errorf("of an empty queue: %v, %v, %v", slot, size, ok)
	}
	d.Offer(0, &olaf.Update{Count: 1}, nil, nil)
	for range 5 { // past the end of the ring
		d.Offer(0, &olaf.Update{Count: 1}, nil, nil)
		first, _, ok := d.Lock()
		if slot, size, again := d.Lock(); !ok || again || slot != engine.NoSlot || size != 0 {
			t.Errorf("beside slot %d: %v, %v, %v", first, slot, size, again)
		}
		d.Release(first)
	}
}

// TestFlushForgetsProvenance empties a queue with provenance in all possible ways and checks that it starts anew.
func TestFlushForgetsProvenance(t *testing.T) {
	for name, empty := range map[string]func(engine.Discipline){"flush": engine.Discipline.Flush, "reset": engine.Discipline.Reset} {
		d, err := engine.New("olaf", engine.Config{Slots: 4, Clusters: 4, Provenance: true})
		if err != nil {
			t.Fatal(err)
		}
		for round := range 3 {
			for w := range 6 {
				d.Offer(0, &olaf.Update{Cluster: olaf.ClusterID(w % 2), Worker: olaf.WorkerID(w), Seq: uint32(round), Count: 1}, nil,
					nil)
			}
			d.Queued(func(s engine.Slot, _ bool) bool {
				var f engine.Frame
				d.View(s, &f)
				var who []olaf.WorkerID
				for _, c := range f.Contributors {
					if c.Seq != uint32(round) {
						t.Errorf("%s, round %d: slot %d remembers round %d", name, round, s, c.Seq)
					}
					who = append(who, c.Worker)
				}
				c := olaf.WorkerID(f.Update.Cluster)
				if !slices.Equal(who, []olaf.WorkerID{c, c + 2, c + 4}) {
					t.Errorf("%s, round %d: cluster %d of %v", name, round, c, who)
				}
				return true
			})
			if err := engine.AuditDiscipline(d); err != nil {
				t.Error(err)
			}
			empty(d)
		}
	}
}

// TestCounters checks the names of the queue's counters for documents and cards, their order, and the rules between
// them.
func TestCounters(t *testing.T) {
	var out strings.Builder
	for _, l := range []*olaf.Ledger{engine.FlowLedger(), engine.SumsLedger()} {
		for _, c := range l.Counters {
			fmt.Fprintf(&out, "%s | %s | %s | %s | %s | aside %v sparse %v | %s | %s\n", c.Name, c.Title, c.Unit, c.Register, c.Column,
				c.Aside, c.Sparse, c.Paper, c.Doc)
		}
		fmt.Fprintf(&out, "output %v merged %v parts %v inside %v\n", l.Output, l.Merged, l.Parts, l.Inside)
		for _, i := range l.Identities {
			fmt.Fprintf(&out, "%v = %v\n", i.Left, i.Right)
		}
	}
	golden := filepath.Join("testdata", "counters.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), out.String()); d != "" {
		t.Error(d)
	}
}

// TestQueuedFrameGoesFirst checks that the first turn of a port goes to the queued frame if a queued and a bypassing
// frame wait.
func TestQueuedFrameGoesFirst(t *testing.T) {
	p, err := engine.NewPort("fifo", engine.Config{Slots: 2, Clusters: 1}, engine.Output{BypassSlots: 1}, discard{})
	if err != nil {
		t.Fatal(err)
	}
	p.SetLink(0, false)
	p.Bypass(0, 64, 1)
	p.Offer(0, &olaf.Update{Count: 1}, nil)
	p.SetLink(0, true)
	if slot, sending := p.Sending(); !sending || slot == engine.NoSlot {
		t.Errorf("slot %v, sending %v", slot, sending)
	}
}
