package netsim

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/splitmix"
)

// lossyTopology returns one switch with short queues, whose links lose frames.
func lossyTopology(link, access float64, control bool) *Topology {
	const ms = olaf.Millisecond
	t := oneSwitch("fifo", 100, ms/10, Clusters{Workers: 4, Period: 10 * ms, Phase: Span{0, 5 * ms},
		Access: Access{Rate: olaf.Gbps, Delay: ms, Loss: access}})
	t.Duration, t.Links[0].Loss = 20*olaf.Second, link
	if control {
		t.Control = Control{Enabled: true, Threshold: olaf.Hour, Slope: "threshold", Count: CountClusters, Window: olaf.Second}
	}
	return t
}

// TestLinksLoseByCounter checks that a link loses the frames whose numbers are drawn, in both directions, and that
// every update is accounted for.
func TestLinksLoseByCounter(t *testing.T) {
	topology := lossyTopology(0.2, 0, false)
	topology.Clusters[0].Workers = 1
	var got []uint32
	r := mustRun(t, topology, Options{Observer: observer(func(o *olaf.Observation) { got = append(got, o.Update.Seq) })})
	share, salt := 0.2, splitmix.MixBits(topology.Seed^1<<32)
	var want []uint32
	for seq := range uint32(r.Of("window_sent")) {
		if splitmix.MixBits(salt+uint64(seq)+1)>>1 >= uint64(share*(1<<63)) {
			want = append(want, seq)
		}
	}
	if len(want)-len(got) > 1 || !slices.Equal(got, want[:len(got)]) { // the last may be in flight
		t.Errorf("%d updates came through, %d were drawn to", len(got), len(want))
	}
	lost, heard := float64(r.Ports[0].Values.Of("lost_on_link")), float64(r.Of("acks"))
	near(t, "share lost", lost/float64(r.Of("window_sent")), share, 0.15)
	near(t, "ACKs that came down", heard/float64(r.Of("window_delivered_frames")), 1-share, 0.05)
	near(t, "ACKs in all", heard+float64(r.Of("acks_lost")), float64(r.Of("window_delivered_frames")), 0.01)
	if flushed := r.Totals.Of("flushed"); float64(flushed) != lost || r.Of("window_dropped_frames") != 0 {
		t.Errorf("%d frames are accounted as lost, the link lost %v; queues dropped %v", flushed, lost, r.Of("window_dropped_frames"))
	}
}

// TestAccessLinksLoseFrames checks that workers' links lose frames too, with and without transmission control, and that
// each worker misses different ACKs.
func TestAccessLinksLoseFrames(t *testing.T) {
	for _, control := range []bool{false, true} {
		topology := lossyTopology(0, 0.25, control)
		r := mustRun(t, topology, Options{Workers: true})
		sent, workers := float64(r.Of("window_sent")), float64(topology.Clusters[0].Workers)
		near(t, "share delivered", float64(r.Of("window_delivered_frames"))/sent, 0.75, 0.03)
		near(t, "copies of ACKs that were lost", float64(r.Of("acks_lost"))/float64(r.Of("acks"))/workers, 0.25, 0.05)
		if lost := float64(r.Totals.Of("flushed")); lost < sent*0.2 || r.Ports[0].Values.Of("lost_on_link") != 0 {
			t.Errorf("%v of %v updates are accounted as lost, %v by the switch's link", lost, sent,
				r.Ports[0].Values.Of("lost_on_link"))
		}
		for i := range r.Workers {
			if w := &r.Workers[i]; w.Received < w.Sent*6/10 || w.Received > w.Sent*9/10 {
				t.Errorf("worker %d: %d of %d updates came through", i, w.Received, w.Sent)
			}
		}
	}
}

// TestNearZeroLossEqualsLossless checks that links with a loss of nearly zero give the same numbers as lossless links,
// so that workers with individual ACK states decide like those with a shared one.
func TestNearZeroLossEqualsLossless(t *testing.T) {
	for _, name := range []string{"multihop", "fat-tree", "single"} {
		plain := mustPreset(t, name, Scale{})
		plain.Control.Enabled, plain.Duration = true, min(plain.Duration, 5*olaf.Second)
		never := *plain
		never.Clusters = slices.Clone(plain.Clusters)
		for i := range never.Clusters {
			never.Clusters[i].Access.Loss = 1e-300
		}
		if want, got := mustRun(t, plain, Options{}), mustRun(t, &never, Options{}); !reflect.DeepEqual(want, got) {
			t.Errorf("%s: %v\nwithout a loss %v", name, got.Values, want.Values)
		}
	}
}

// TestFullQueueDropsAcks checks that exactly the ACKs that find the queue of a slow direction full are lost.
func TestFullQueueDropsAcks(t *testing.T) {
	topology := lossyTopology(0, 0, false)
	topology.Links[0].AckRate = 1008 * 8 * 200 // half of 400 ACKs per second
	all := mustRun(t, topology, Options{})
	topology.Links[0].AckSlots = 3
	some := mustRun(t, topology, Options{})
	if all.Of("acks_lost") != 0 || some.Of("window_delivered_frames") != all.Of("window_delivered_frames") {
		t.Errorf("%v ACKs lost without a limit; %v and %v deliveries", all.Of("acks_lost"), all.Of("window_delivered_frames"),
			some.Of("window_delivered_frames"))
	}
	near(t, "ACKs heard", float64(some.Of("acks")), float64(all.Of("acks")), 0.01)
	near(t, "ACKs lost", float64(some.Of("acks_lost")), float64(some.Of("window_delivered_frames"))/2, 0.02)
}

// TestAccountsBalanceWithLosses checks that the account balances with any losses in the network, and that the same seed
// loses the same frames.
func TestAccountsBalanceWithLosses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		topology := drawTopology(t)
		topology.Timing = Exact
		loss := func(what string) float64 { return rapid.SampledFrom([]float64{0, 0.1, 1}).Draw(t, what) }
		for i := range topology.Links {
			l := &topology.Links[i]
			if l.Loss = loss("loss of a link"); l.AckRate > 0 {
				l.AckSlots = rapid.IntRange(0, 3).Draw(t, "ack slots")
			}
		}
		for i := range topology.Clusters {
			topology.Clusters[i].Access.Loss = loss("loss of access")
		}
		if topology.Check() != nil {
			t.Skip("a period below one transmission")
		}
		one, err := Run(t.Context(), topology, Options{})
		if err != nil {
			t.Fatal(err)
		}
		again, err := Run(t.Context(), topology, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if first, second := fmt.Sprintf("%+v", one), fmt.Sprintf("%+v", again); first != second {
			t.Fatalf("the same again gives %s instead of %s", second, first)
		}
	})
}

// TestClosedLoopWorkersLoseFrames checks that a loss set on each link equals one set for all links, for closed-loop
// workers too.
func TestClosedLoopWorkersLoseFrames(t *testing.T) {
	run := func(set func(*Topology)) *Result {
		topology := mustPreset(t, "multihop", Scale{})
		topology.Duration, topology.Waiting = 5*olaf.Second, &Waiting{System: "switchml"}
		topology.Queue = "fifo"
		set(topology)
		return mustRun(t, topology, Options{})
	}
	none, every := run(func(*Topology) {}), run(func(t *Topology) { t.SetLoss(0.01) })
	each := run(func(t *Topology) {
		for i := range t.Links {
			t.Links[i].Loss = 0.01
		}
		for i := range t.Clusters {
			t.Clusters[i].Access.Loss = 0.01
		}
	})
	last := run(func(t *Topology) { t.Links[2].Loss = 0.01 })
	if none.Waited.Lost != 0 || last.Waited.Lost == 0 || last.Waited.Lost >= each.Waited.Lost {
		t.Errorf("%d frames lost where none is, %d on one link, %d on all", none.Waited.Lost, last.Waited.Lost, each.Waited.Lost)
	}
	if !reflect.DeepEqual(each.Values, every.Values) {
		t.Errorf("a loss of each link gives %v, the same of all at once %v", each.Values, every.Values)
	}
}

// TestRefusedLosses checks that impossible losses and queue sizes are rejected with their position.
func TestRefusedLosses(t *testing.T) {
	for want, set := range map[string]func(*Topology){
		"a loss of 1.5; it must be 0 to 1":     func(t *Topology) { t.Links[0].Loss = 1.5 },
		"a loss of -0.1; it must be 0 to 1":    func(t *Topology) { t.Clusters[0].Access.Loss = -0.1 },
		"ack_slots is -1; it must be 1 or":     func(t *Topology) { t.Links[0].AckSlots, t.Links[0].AckRate = -1, olaf.Mbps },
		"ack_slots is 2; it must be 1 or more": func(t *Topology) { t.Links[0].AckSlots = 2 },
	} {
		topology := lossyTopology(0, 0, false)
		set(topology)
		if err := topology.Check(); !errors.Is(err, ErrTopology) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	topology := lossyTopology(1, 1, false)
	topology.SetLoss(0)
	if topology.Links[0].Loss != 0 || topology.Clusters[0].Access.Loss != 0 {
		t.Error("a loss of nothing leaves one")
	}
}
