package host

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/fpgatest"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/programs"
	"github.com/olafctl/olaf/fpga/realtime"
	"github.com/olafctl/olaf/fpga/xdp"
)

// open opens a card with all programs. It skips the test if rights are missing.
func open(t *testing.T) *realtime.Card {
	t.Helper()
	b := NewBackend(slices.DeleteFunc(programs.AllPrograms(), func(d program.Description) bool { return d.Code == 0 })...)
	b.AnyRate = true
	c, err := realtime.Open(b, realtime.Hosts{})
	if errors.Is(err, netlab.ErrRights) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestConformance runs the conformance tests of all cards on this card.
func TestConformance(t *testing.T) {
	c := open(t)
	t.Logf("carries %d frames/s", c.Carry())
	fpgatest.Run(t, func(*testing.T) fpga.Device { return c })
}

var build = dataplane.Build{Slots: 5, Clusters: 3, Lanes: 8, FrameLanes: 16, Senders: 8}

// both is a plane of each kind. Both get the same calls.
type both struct {
	*testing.T
	kernel *xdp.Queue
	host   *plane
}

// TestEqualsKernelPlane gives random frames to this plane and to the kernel's plane and checks that answers, bytes of
// frames and counters are equal.
func TestEqualsKernelPlane(t *testing.T) {
	for _, discipline := range engine.DisciplineNames() {
		t.Run(discipline, func(t *testing.T) {
			kernel, err := xdp.LoadQueue(discipline, build)
			if errors.Is(err, netlab.ErrRights) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer kernel.Close()
			host, err := loadPlane(discipline, build)
			if err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(5, 5))
			b := both{t, kernel, host}
			for range 20 {
				b.begin(rng)
				for range 150 {
					b.event(rng)
				}
				b.latch(rng.IntN(2) == 0)
			}
		})
	}
}

// begin empties both planes and configures them anew.
func (b both) begin(rng *rand.Rand) {
	b.Helper()
	s := dataplane.Settings{Depth: 1 + rng.IntN(4), FreeSlotOnStart: rng.IntN(2) == 0, RewardFilter: rng.IntN(2) == 0,
		RewardThreshold: int32(rng.IntN(300))}
	var senders []dataplane.Sender
	for i := range 6 { // the last cluster is beyond the built number
		senders = append(senders, dataplane.Sender{Address: address(i), Cluster: olaf.ClusterID(i % 4), Worker: olaf.WorkerID(i)})
	}
	for _, p := range []dataplane.Plane{b.kernel, b.host} {
		if err := errors.Join(p.Run(false), p.Reset(), p.Configure(s), p.SetSenders(senders), p.Run(true)); err != nil {
			b.Fatal(err)
		}
	}
}

func address(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}) }

func (b both) event(rng *rand.Rand) {
	b.Helper()
	switch rng.IntN(10) {
	case 0, 1:
		b.turn(rng.IntN(2) == 0, rng.IntN(4) > 0)
	case 2:
		if rng.IntN(20) == 0 {
			b.same("flush", first(b.kernel.Flush()), first(b.host.Flush()))
		}
	case 3:
		at := rng.IntN(5)
		b.same("inspect", first(b.kernel.Inspect(at, make([]byte, 200))), first(b.host.Inspect(at, nil)))
	default:
		b.arrive(rng)
	}
}

func first(x dataplane.Exchange, err error) dataplane.Exchange {
	if err != nil {
		panic(err) // fails the test with a stack trace
	}
	return x
}

func (b both) turn(release, start bool) {
	b.Helper()
	frames := [2][]byte{make([]byte, 300), make([]byte, 300)}
	k, kf, errK := b.kernel.Turn(release, start, frames[0])
	h, hf, errH := b.host.Turn(release, start, frames[1])
	if errK != nil || errH != nil {
		b.Fatal(errK, errH)
	}
	b.same("turn", k, h)
	if !bytes.Equal(kf, hf) {
		b.Fatalf("frames differ:\n%x\n%x", kf, hf)
	}
}

// same checks that two answers are equal, except for times.
func (b both) same(what string, k, h dataplane.Exchange) {
	b.Helper()
	for _, x := range []*dataplane.Exchange{&k, &h} {
		x.AtNS, x.AppendedNS, x.OccupancyNS, x.Bank = 0, 0, 0, 0
		if what == "latch" || what == "flush" { // these concern no slot
			x.Slot = 0
		}
	}
	if k != h {
		b.Fatalf("%s:\nkernel %+v\nhost   %+v", what, k, h)
	}
}

func (b both) arrive(rng *rand.Rand) {
	b.Helper()
	u := olaf.Update{Cluster: olaf.ClusterID(rng.IntN(4)), Worker: olaf.WorkerID(rng.IntN(6)), Seq: rng.Uint32(),
		GenNS:  rng.Uint64() % olaf.GenModulus,
		Reward: int32(rng.IntN(2000) - 1000), Count: uint16(1 + rng.IntN(2)), Lanes: uint16(4 + rng.IntN(2))}
	lanes := make([]int32, u.Lanes)
	for i := range lanes {
		lanes[i] = int32(rng.Uint32())
	}
	a := olaf.Addresses{SrcIP: address(rng.IntN(8)).As4(), DstIP: [4]byte{10, 9, 9, 9}}
	frame := make([]byte, u.Size())
	if _, err := olaf.EncodeUpdate(frame, &a, &u, lanes); err != nil {
		b.Fatal(err)
	}
	if rng.IntN(10) == 0 {
		frame[rng.IntN(len(frame))] ^= 1 << rng.IntN(8)
	}
	b.host.arrive(frame)
	if _, err := b.kernel.Arrive(frame); err != nil {
		b.Fatal(err)
	}
}

func (b both) latch(clearing bool) {
	b.Helper()
	k, kernel, errK := b.kernel.Latch(clearing)
	h, host, errH := b.host.Latch(clearing)
	if errK != nil || errH != nil {
		b.Fatal(errK, errH)
	}
	b.same("latch", k, h)
	delete(kernel, "started_frames") // no register has this counter
	delete(kernel, "accepted_updates")
	if !maps.Equal(kernel, host) {
		b.Fatalf("counters:\nkernel %v\nhost   %v", kernel, host)
	}
	for cluster := range olaf.ClusterID(build.Clusters) {
		nk, errK := b.kernel.Cluster(cluster)
		nh, errH := b.host.Cluster(cluster)
		nk.LastDepartureNS, nh.LastDepartureNS = 0, 0
		if nk != nh || errK != nil || errH != nil {
			b.Fatalf("cluster %d:\nkernel %+v %v\nhost   %+v %v", cluster, nk, errK, nh, errH)
		}
	}
}

// TestMarkStatus sends ACKs back past a queue that contains updates of two clusters in three slots. It checks that the
// queue's status is written if the queue is the busiest on the path, and that updates are not changed.
func TestMarkStatus(t *testing.T) {
	p, err := loadPlane("olaf", build)
	if err != nil {
		t.Fatal(err)
	}
	var senders []dataplane.Sender
	for i := range 2 {
		senders = append(senders, dataplane.Sender{Address: address(i), Cluster: olaf.ClusterID(i), Worker: olaf.WorkerID(i)})
	}
	if err := errors.Join(p.Configure(dataplane.Settings{Depth: 3}), p.SetSenders(senders), p.Run(true)); err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, olaf.AckSize(8))
	for i := range 2 {
		n, err := olaf.EncodeUpdate(frame, &olaf.Addresses{SrcIP: address(i).As4()},
			&olaf.Update{Cluster: olaf.ClusterID(i), Worker: olaf.WorkerID(i), Count: 1, Lanes: 4}, nil)
		if err != nil || p.arrive(frame[:n]) {
			t.Fatal("an update was bypassed", err)
		}
	}
	own := olaf.QueueStatus{Occupancy: 2, ActiveClusters: 2, Slots: 3}
	for brings, want := range map[olaf.QueueStatus]olaf.QueueStatus{
		{}: own,
		{Occupancy: 9, ActiveClusters: 1, Slots: 2}: own,
		{Occupancy: 9, ActiveClusters: 9, Slots: 3}: {Occupancy: 9, ActiveClusters: 9, Slots: 3},
	} {
		n, err := olaf.EncodeAck(frame, &olaf.Addresses{}, &olaf.Update{Count: 1, Lanes: 2}, brings, nil)
		if err != nil {
			t.Fatal(err)
		}
		p.mark(frame[:n])
		f, err := olaf.ParseFrame(frame[:n])
		if err != nil || f.QueueStatus() != want {
			t.Errorf("an ACK that brought %+v has %+v, %v; want %+v", brings, f.QueueStatus(), err, want)
		}
		if !p.arrive(frame[:n]) {
			t.Error("an ACK is the queue's business")
		}
	}
}
