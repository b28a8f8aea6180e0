package aggregator

import (
	"errors"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/iswitch"
	"github.com/olafctl/olaf/fpga/program/pass"
)

type deliveries struct {
	updates []olaf.Update
	inside  [][]olaf.Contributor
}

func (d *deliveries) Deliver(p *engine.Departure) {
	d.updates = append(d.updates, p.Frame.Update)
	d.inside = append(d.inside, append([]olaf.Contributor(nil), p.Frame.Contributors...))
}

// into returns a sink that offers departing updates to a port.
func into(port *engine.Port) Sink {
	return func(now olaf.Time, u *olaf.Update, lanes []int32, inside []olaf.Contributor) {
		port.OfferMerged(now, u, lanes, inside)
	}
}

func update(worker olaf.WorkerID, seq uint32, gen uint64, cluster olaf.ClusterID) *olaf.Update {
	return &olaf.Update{GenNS: gen, Seq: seq, Cluster: cluster, Worker: worker, Count: 1, Lanes: 2, Reward: 1 << 8}
}

// TestSums checks that three updates of a cluster leave as one, which lists its contributors and has the stamp of the
// newest.
func TestSums(t *testing.T) {
	got := &deliveries{}
	port, err := engine.NewPort("fifo", engine.Config{Slots: 4, Clusters: 2, Provenance: true, LaneMemory: 2}, engine.Output{}, got)
	if err != nil {
		t.Fatal(err)
	}
	d := iswitch.Describe()
	a, err := New(&d, Config{Clusters: 2, H: 3, Lanes: 2, Up: into(port)})
	if err != nil {
		t.Fatal(err)
	}
	one := []int32{0x3f800000, 0x40000000} // 1 and 2
	for i, u := range []*olaf.Update{update(0, 0, 10, 1), update(1, 0, 30, 1), update(0, 0, 5, 0), update(2, 4, 20, 1)} {
		class := a.Offer(olaf.Time(i)*olaf.Time(olaf.Microsecond), u, 0, one)
		if want := "consumed"; i < 3 && d.ClassName(class) != want {
			t.Errorf("update %d is %s", i, d.ClassName(class))
		}
	}
	port.Drain()
	want := olaf.Update{GenNS: 30, Seq: 0, Cluster: 1, Worker: 1, Count: 3, Lanes: 2, Reward: 3 << 8}
	if len(got.updates) != 1 || got.updates[0] != want {
		t.Fatalf("left %+v, want %+v", got.updates, want)
	}
	if in := got.inside[0]; len(in) != 3 || in[0].Worker != 0 || in[1].Worker != 1 || in[2].Worker != 2 || in[2].Seq != 4 {
		t.Errorf("inside %+v", in)
	}
	if held := a.Program().CountOccupied(); held != 1 {
		t.Errorf("%d segments held, want the other cluster's", held)
	}
	p, ok := a.Partial(0)
	if _, more := a.Partial(1); !ok || more || p.Place != 0 || p.Count != 1 || p.Inside[0].GenNS != 5 ||
		p.Since != olaf.Time(2*olaf.Microsecond) {
		t.Errorf("partial sum %+v, %v, another one %v", p, ok, more)
	}
	a.Clear()
	counts := a.Program().Counts()
	cleared := counts[d.Ledger.Index("vectors_cleared")]
	if _, ok := a.Partial(0); ok || a.Program().CountOccupied() != 0 || cleared != 1 {
		t.Errorf("%d contributions cleared, something left %v", cleared, ok)
	}
	a.Offer(0, update(0, 9, 40, 0), 0, one)
	if p, ok := a.Partial(0); !ok || len(p.Inside) != 1 || p.Inside[0].Seq != 9 {
		t.Errorf("after the clear %+v", p)
	}
}

// TestDroppedUpdateIsNotAContributor checks that a dropped update is not listed as a contributor.
func TestDroppedUpdateIsNotAContributor(t *testing.T) {
	got := &deliveries{}
	port, err := engine.NewPort("fifo", engine.Config{Slots: 4, Clusters: 1, Provenance: true}, engine.Output{}, got)
	if err != nil {
		t.Fatal(err)
	}
	d := iswitch.Describe()
	a, err := New(&d, Config{Clusters: 1, H: 2, Up: into(port)})
	if err != nil {
		t.Fatal(err)
	}
	a.Offer(0, update(0, 0, 1, 0), 0, nil)
	short := update(1, 0, 2, 0)
	short.Lanes = 1
	if class := a.Offer(1, short, 0, nil); d.ClassName(class) != "mismatch" {
		t.Errorf("it is %s", d.ClassName(class))
	}
	a.Offer(2, update(2, 0, 3, 0), 0, nil)
	port.Drain()
	if len(got.inside) != 1 || len(got.inside[0]) != 2 || got.updates[0].Reward != 2<<8 {
		t.Errorf("left %+v with %+v inside", got.updates, got.inside)
	}
}

func TestRefusals(t *testing.T) {
	d, p := iswitch.Describe(), pass.Describe()
	if _, err := New(&d, Config{Clusters: 1}); !errors.Is(err, program.ErrConfig) {
		t.Errorf("H of 0: %v", err)
	}
	if _, err := New(&p, Config{Clusters: 1, H: 1}); !errors.Is(err, program.ErrConfig) {
		t.Errorf("a program that adds nothing: %v", err)
	}
}

func TestDoesNotAllocate(t *testing.T) {
	d := iswitch.Describe()
	port, err := engine.NewPort("fifo", engine.Config{Slots: 4, Clusters: 1}, engine.Output{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(&d, Config{Clusters: 1, H: 3, Up: into(port)})
	if err != nil {
		t.Fatal(err)
	}
	u := update(0, 0, 1, 0)
	now := olaf.Time(0)
	if n := testing.AllocsPerRun(1000, func() { now += 100_000; a.Offer(now, u, 0, nil) }); n != 0 {
		t.Errorf("%g allocations an update", n)
	}
}
