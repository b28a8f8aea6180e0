package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
)

// box is the output as the logic has it, cycle by cycle: bytes that are left of the frame and until its next beat, in 8.24, and
// who takes the memory's port. It shares nothing with Port but the discipline.
type box struct {
	queue engine.Discipline
	out   engine.Output

	sending      bool
	leaving      engine.Slot
	debt, toBeat int64
	left         int64 // beats to fetch
	pay, owed    int

	busy   int64 // cycles, this one included, in which a merge takes the port
	age    int   // cycles, this one included, in which newest can't be read
	newest engine.Slot

	stalls     uint64
	departures []departed
}

// taker is a sink.
type taker func(*engine.Departure)

func (f taker) Deliver(d *engine.Departure) { f(d) }

type departed struct {
	Cycle  int64
	Update olaf.Update
}

// pass is what the output does in a cycle before anything arrives.
func (b *box) pass(now int64) {
	lock := false
	switch {
	case b.sending:
		lock = b.serialise(now)
	case b.pay > 0:
		b.pay--
		lock = b.pay == 0
	}
	if lock {
		b.lock(min(b.debt, 0))
	}
}

func (b *box) serialise(now int64) (lock bool) {
	rate := int64(b.out.Rate)
	wanted := b.left > 0 && b.toBeat-rate <= 0
	if wanted && b.out.ReadPorts == 1 && (b.busy > 0 || b.age > 0 && b.newest == b.leaving) {
		b.stalls++
		return false
	}
	if wanted {
		b.left--
		b.toBeat += 64 << 24
		if b.debt-rate <= 0 { // it is over a cycle after its last beat
			b.debt = 2 * rate
		}
	}
	b.debt -= rate
	b.toBeat -= rate
	if b.debt > 0 {
		return false
	}
	var f engine.Frame
	b.queue.View(b.leaving, &f)
	b.departures = append(b.departures, departed{now, f.Update})
	b.queue.Release(b.leaving)
	b.sending = false
	b.pay = b.owed + b.out.DequeueCycles
	b.stalls += uint64(b.pay)
	b.owed = 0
	return b.pay == 0
}

func (b *box) lock(carry int64) {
	slot, size, ok := b.queue.Lock()
	if !ok {
		b.debt = 0
		return
	}
	b.sending, b.leaving = true, slot
	b.debt = carry + int64(int(size)+b.out.OverheadBytes)<<24
	b.toBeat = carry + 64<<24
	b.left = int64(size+63)/64 - 1
}

// arrive presents what arrives in a cycle.
func (b *box) arrive(at int64, updates []olaf.Update) {
	busy, age := max(0, b.busy-1), max(0, b.age-1)
	for i := range updates {
		u := &updates[i]
		o := b.queue.Offer(olaf.Time(at)*olaf.Time(olaf.Cycle), u, nil, nil)
		if o.Merged && b.pay > 0 {
			b.pay += b.out.MergeCycles
			b.stalls += uint64(b.out.MergeCycles)
		} else if o.Merged {
			b.owed += b.out.MergeCycles
		}
		if o.Class == engine.Aggregated {
			busy += int64(u.Size()+63)/64 - 1
		}
		if o.Slot != engine.NoSlot {
			b.newest, age = o.Slot, 4
		}
		if o.Ready && !b.sending && b.pay == 0 {
			b.lock(0)
		}
	}
	b.busy, b.age = busy, age
}

// TestReadPorts compares a port that contends for the memory of gradients with the logic stepped cycle by cycle.
func TestReadPorts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := engine.Config{Slots: rapid.IntRange(1, 6).Draw(t, "slots"), Clusters: 4}
		out := engine.Output{
			Rate:          engine.Increment(rapid.SampledFrom([]float64{64, 63.9, 40, 20, 10, 7.3, 2.5}).Draw(t, "rate") * (1 << 24)),
			OverheadBytes: rapid.SampledFrom([]int{0, 24}).Draw(t, "overhead"),
			DequeueCycles: rapid.IntRange(0, 2).Draw(t, "dequeue"),
			MergeCycles:   rapid.IntRange(0, 2).Draw(t, "merge"),
			ReadPorts:     rapid.IntRange(1, 2).Draw(t, "ports"),
		}
		var got []departed
		port, err := engine.NewPort("olaf", cfg, out, taker(func(d *engine.Departure) {
			got = append(got, departed{int64(d.At) / int64(olaf.Cycle), d.Frame.Update})
		}))
		if err != nil {
			t.Fatal(err)
		}
		queue, _ := engine.New("olaf", cfg)
		ref := &box{queue: queue, out: out}
		longest := rapid.SampledFrom([]uint16{0, 1, 17, 48, 200, 2243}).Draw(t, "lanes")
		now, together := int64(0), []olaf.Update(nil)
		for range rapid.IntRange(1, 60).Draw(t, "arrivals") {
			gap := rapid.SampledFrom([]int64{4, 4, 5, 8, 30, 143}).Draw(t, "gap")
			u := olaf.Update{
				Cluster: olaf.ClusterID(rapid.IntRange(0, 3).Draw(t, "cluster")), Worker: olaf.WorkerID(rapid.IntRange(0, 2).Draw(t, "worker")),
				Count: 1, Lanes: longest,
			}
			for range gap {
				ref.arrive(now, together)
				if port.StallCycles() != ref.stalls {
					t.Fatalf("cycle %d: %d stalls, the logic has %d", now, port.StallCycles(), ref.stalls)
				}
				together = nil
				now++
				ref.pass(now)
				port.Advance(olaf.Time(now) * olaf.Time(olaf.Cycle))
			}
			port.Offer(olaf.Time(now)*olaf.Time(olaf.Cycle), &u, nil)
			together = append(together, u)
		}
		for ref.arrive(now, together); ref.sending || ref.pay > 0; ref.arrive(now, nil) {
			now++
			ref.pass(now)
		}
		port.Drain()
		if d := cmp.Diff(ref.departures, got); d != "" {
			t.Errorf("-logic +port:\n%s", d)
		}
		if port.StallCycles() != ref.stalls {
			t.Errorf("%d stalls, the logic has %d", port.StallCycles(), ref.stalls)
		}
	})
}
