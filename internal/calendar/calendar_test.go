package calendar

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestEventQueueOrder checks that the queue returns events in the order of a sorted list, for any calendar.
func TestEventQueueOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := NewQueue(rapid.IntRange(0, 5000).Draw(t, "pending"), rapid.Int64Range(1, 1<<40).Draw(t, "horizon"))
		var want []Event
		now := int64(0)
		spread := rapid.SampledFrom([]int64{1, 100, 1 << 20, 1 << 34, 1 << 45}).Draw(t, "spread")
		for step := range rapid.IntRange(1, 400).Draw(t, "steps") {
			if len(want) > 0 && rapid.Bool().Draw(t, "pop") {
				slices.SortFunc(want, func(a, b Event) int {
					if a.before(&b) {
						return -1
					}
					return 1
				})
				got := q.Pop()
				if got != want[0] {
					t.Fatalf("step %d: popped %+v, want %+v", step, got, want[0])
				}
				now, want = got.At, want[1:]
				continue
			}
			e := Event{At: now + rapid.Int64Range(0, spread).Draw(t, "ahead"), Ord: rapid.Uint64Range(0, 3).Draw(t, "ord"),
				What: uint64(step)}
			q.Push(e)
			want = append(want, e)
		}
		if q.Len() != len(want) {
			t.Fatalf("length %d, want %d", q.Len(), len(want))
		}
	})
}

// TestEventQueueEnds checks that events at the ends of buckets, blocks and calendar, and just beyond, come out in
// order.
func TestEventQueueEnds(t *testing.T) {
	for _, pending := range []int{10, 2000, 100_000} {
		q := NewQueue(pending, 1<<40)
		width := int64(1) << q.shift
		block := int64(1) << q.block
		all := block * int64(len(q.blocks))
		q.Push(Event{At: 5 * width})
		at := q.Pop().At
		var distances []int64
		for _, edge := range []int64{1, block, 2 * block, all, all + block, all + 2*block, 2 * all, 3 * all} {
			distances = append(distances, edge-1, edge, edge+1)
		}
		for _, buckets := range distances { // one event at a time
			at += buckets * width
			q.Push(Event{At: at})
			if got := q.Pop().At; got != at {
				t.Fatalf("popped %d, want %d", got, at)
			}
		}
		var want []int64
		for _, buckets := range distances { // all events together
			want = append(want, at+buckets*width)
			q.Push(Event{At: at + buckets*width})
		}
		slices.Sort(want)
		for _, w := range want {
			if got := q.Pop().At; got != w {
				t.Fatalf("popped %d, want %d", got, w)
			}
		}
	}
}

func TestEventQueueDrainsCompletely(t *testing.T) {
	q := NewQueue(10, 1000)
	for i := range 100_000 {
		q.Push(Event{At: int64(i*7919) % 1_000_003, What: uint64(i)})
	}
	var last Event
	for i := 0; q.Len() > 0; i++ {
		e := q.Pop()
		if i > 0 && e.before(&last) {
			t.Fatalf("%+v after %+v", e, last)
		}
		last = e
	}
}

// BenchmarkEventQueue measures the hold model: pop one, push one at a random later time.
func BenchmarkEventQueue(b *testing.B) {
	for _, pending := range []int{100, 10_000, 1_000_000} {
		b.Run(fmt.Sprint(pending), func(b *testing.B) {
			const horizon = int64(1e11)
			r := rand.New(rand.NewPCG(1, 2))
			ahead := make([]int64, 1<<12)
			for i := range ahead {
				ahead[i] = r.Int64N(horizon)
			}
			q := NewQueue(pending, horizon)
			for i := range pending {
				q.Push(Event{At: r.Int64N(horizon), What: uint64(i)})
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				e := q.Pop()
				e.At += ahead[i&(1<<12-1)]
				i++
				q.Push(e)
			}
		})
	}
}
