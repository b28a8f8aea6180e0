package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
)

// box models the output as the logic has it, cycle by cycle, with the remaining bytes of the frame and the bytes until
// its next beat in 8.24 fixed point, and with the user of the memory's port. It shares only the discipline with Port.
type box struct {
	queue engine.Discipline
	out   engine.Output

	sending      bool
	leaving      engine.Slot
	debt, toBeat int64
	left         int64 // beats to fetch
	pay, owed    int

	busy   int64 // cycles in which a merge occupies the port, including this one
	age    int   // cycles in which newest cannot be read, including this one
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

// pass simulates the output in a cycle before anything arrives.
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
		if b.debt-rate <= 0 { // the frame ends one cycle after its last beat
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

// arrive presents the updates that arrive in a cycle.
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

// flush empties the box; a merge in progress still occupies the port.
func (b *box) flush() {
	b.queue.Flush()
	b.sending, b.pay, b.owed, b.debt = false, 0, 0, 0
}

// takes returns the time that the departed frames took on the wire.
func (b *box) takes() olaf.Duration {
	bytes := int64(0)
	for i := range b.departures {
		bytes += int64(int(b.departures[i].Update.Size()) + b.out.OverheadBytes)
	}
	return olaf.Duration(bytes << 24 * int64(olaf.Cycle) / int64(b.out.Rate))
}

// TestReadPorts compares a port that contends for the gradient memory with a model of the logic that is stepped cycle
// by cycle.
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
		fresh := func() *box {
			queue, _ := engine.New("olaf", cfg)
			return &box{queue: queue, out: out}
		}
		ref := fresh()
		longest := rapid.SampledFrom([]uint16{0, 1, 17, 48, 200, 2243}).Draw(t, "lanes")
		now, together := int64(0), []olaf.Update(nil)
		for range rapid.IntRange(1, 60).Draw(t, "arrivals") {
			gap := rapid.SampledFrom([]int64{4, 4, 5, 8, 30, 143}).Draw(t, "gap")
			u := olaf.Update{
				Cluster: olaf.ClusterID(rapid.IntRange(0, 3).Draw(t, "cluster")),
				Worker:  olaf.WorkerID(rapid.IntRange(0, 2).Draw(t, "worker")),
				Count:   1, Lanes: longest,
			}
			for range gap {
				ref.arrive(now, together)
				if port.StallCycles() != ref.stalls {
					t.Fatalf("cycle %d: %d stalls, the logic has %d", now, port.StallCycles(), ref.stalls)
				}
				together = nil
				now++
				ref.pass(now)
				due, left := at(0), len(got)
				if next, busy := port.Next(); busy {
					due = next
				}
				if port.Advance(at(now)); len(got) > left && due != at(now) {
					t.Fatalf("it left in cycle %d and was expected at %v", now, due)
				}
			}
			switch rapid.SampledFrom([]string{"", "", "", "", "", "", "", "", "flush", "reset"}).Draw(t, "end") {
			case "flush":
				port.Flush(at(now))
				ref.flush()
			case "reset":
				port.Reset()
				now, got, ref = 0, nil, fresh()
			}
			port.Offer(olaf.Time(now)*olaf.Time(olaf.Cycle), &u, nil)
			together = append(together, u)
		}
		for ref.arrive(now, together); ref.sending || ref.pay > 0; ref.arrive(now, nil) {
			now++
			ref.pass(now)
		}
		port.Drain()
		if d := cmp.Diff(ref.departures, got, equateEmpty); d != "" {
			t.Errorf("-logic +port:\n%s", d)
		}
		if port.Busy() != ref.takes() || port.MayContend() != (out.ReadPorts == 1) {
			t.Errorf("busy %v, the logic %v; contends %t", port.Busy(), ref.takes(), port.MayContend())
		}
		if port.StallCycles() != ref.stalls {
			t.Errorf("%d stalls, the logic has %d", port.StallCycles(), ref.stalls)
		}
	})
}

// TestFlushInTheMiddle flushes a port in each cycle while merges delay its frames, and then repeats the traffic. It
// checks that the waiting time until the flush is still counted and that no other state is left.
func TestFlushInTheMiddle(t *testing.T) {
	cfg := engine.Config{Slots: 3, Clusters: 3}
	out := engine.Output{Rate: engine.Line, DequeueCycles: 1, MergeCycles: 1, ReadPorts: 1}
	for end := int64(1); end < 180; end++ {
		port, err := engine.NewPort("olaf", cfg, out, nil)
		if err != nil {
			t.Fatal(err)
		}
		queue, _ := engine.New("olaf", cfg)
		ref := &box{queue: queue, out: out}
		now := int64(0)
		for _, stop := range []int64{end, end + 400} {
			for began := now; now < stop; {
				var u []olaf.Update
				if n := now - began; n >= 20 && n < 140 && n%4 == 0 {
					u = append(u, olaf.Update{Cluster: olaf.ClusterID(min(n/4-5, 1)), Worker: olaf.WorkerID(n % 3), Count: 1,
						Lanes: 200})
					port.Offer(at(now), &u[0], nil)
				}
				ref.arrive(now, u)
				if port.StallCycles() != ref.stalls {
					t.Fatalf("flushed in %d, cycle %d: %d stalls, the logic has %d", end, now, port.StallCycles(), ref.stalls)
				}
				now++
				ref.pass(now)
				port.Advance(at(now))
			}
			port.Flush(at(now))
			ref.flush()
		}
		if port.Busy() != ref.takes() {
			t.Fatalf("flushed in %d: busy %v, the logic %v", end, port.Busy(), ref.takes())
		}
	}
}

// TestReadPortsInPicoseconds checks that a port that counts picoseconds agrees with a port that counts cycles, at rates
// that both represent exactly. Arrivals that do not start the output occupy the memory from the next cycle on, so they
// may arrive within a cycle.
func TestReadPortsInPicoseconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gbps := rapid.SampledFrom([]int{128, 40, 20, 5, 3}).Draw(t, "rate")
		rate := olaf.Rate(gbps) * olaf.Gbps
		increment, err := engine.FromRate(rate)
		if err != nil || !increment.IsExact(rate) {
			t.Fatalf("%v: %v", rate, err)
		}
		out := engine.Output{
			Rate: increment, OverheadBytes: rapid.SampledFrom([]int{0, 24}).Draw(t, "overhead"),
			DequeueCycles: rapid.IntRange(0, 2).Draw(t, "dequeue"), MergeCycles: rapid.IntRange(0, 2).Draw(t, "merge"),
			ReadPorts: rapid.IntRange(1, 2).Draw(t, "ports"),
		}
		var left [2][]departed
		var ports [2]*engine.Port
		for i := range ports {
			ports[i], err = engine.NewPort("olaf", engine.Config{Slots: 3, Clusters: 4}, out, taker(func(d *engine.Departure) {
				left[i] = append(left[i], departed{(int64(d.At) + int64(olaf.Cycle) - 1) / int64(olaf.Cycle), d.Frame.Update})
			}))
			if err != nil {
				t.Fatal(err)
			}
		}
		ports[1].SetClock(engine.PicosecondClock(rate, olaf.Size(out.OverheadBytes)))
		lanes := rapid.SampledFrom([]uint16{0, 17, 48, 200, 2243}).Draw(t, "lanes")
		now := int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "arrivals") {
			for range rapid.SampledFrom([]int64{0, 0, 3, 4, 29, 142}).Draw(t, "gap") {
				now++
				for _, p := range ports {
					p.Advance(at(now))
				}
				if a, b := ports[0].StallCycles(), ports[1].StallCycles(); a != b {
					t.Fatalf("cycle %d: %d stalls in cycles, %d in picoseconds", now, a, b)
				}
			}
			now++
			early := olaf.Time(0)
			if next, busy := ports[1].Next(); busy && next > at(now) {
				early = olaf.Time(rapid.SampledFrom([]int64{0, 1, 2000, 3999}).Draw(t, "early"))
			}
			u := olaf.Update{
				Cluster: olaf.ClusterID(rapid.IntRange(0, 3).Draw(t, "cluster")),
				Worker:  olaf.WorkerID(rapid.IntRange(0, 2).Draw(t, "worker")),
				Count:   1, Lanes: lanes,
			}
			ports[0].Offer(at(now), &u, nil)
			ports[1].Offer(at(now)-early, &u, nil)
		}
		for _, p := range ports {
			p.Drain()
		}
		if d := cmp.Diff(left[0], left[1]); d != "" {
			t.Errorf("-in cycles +in picoseconds:\n%s", d)
		}
		if a, b := ports[0].StallCycles(), ports[1].StallCycles(); a != b {
			t.Errorf("%d stalls in cycles, %d in picoseconds", a, b)
		}
	})
}
