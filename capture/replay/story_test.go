package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/internal/golden"
)

// crowd is a seeded capture: many workers and clusters, bursts and pauses, repeats, merged frames, ACKs and broken ones.
func crowd(seed uint64, n int, merged bool) (all []arrival) {
	r := rand.New(rand.NewPCG(seed, 6))
	at := int64(1000 * seed)
	seq := map[[2]int]int{}
	for range n {
		at += int64(r.IntN(40))
		if r.IntN(20) == 0 {
			at += 2000
		}
		a := arrival{atNS: at, cluster: r.IntN(4), worker: r.IntN(3), lane: int32(r.IntN(100))}
		key := [2]int{a.cluster, a.worker}
		a.seq = seq[key]
		seq[key]++
		switch what := r.IntN(20); {
		case what == 0:
			a = arrival{atNS: at, raw: []byte("something else altogether, long enough for a frame of Ethernet, IPv4 and UDP")}
		case what == 1:
			a.ack = true
		case what == 2 && merged:
			a.count = 1 + r.IntN(4)
		}
		all = append(all, a)
	}
	return all
}

// What becomes of captures in every kind of queue is as it was when somebody last read it.
func TestStories(t *testing.T) {
	var b bytes.Buffer
	for i, c := range []struct {
		name   string
		cfg    Config
		merged bool
		n      int
	}{
		{"olaf", olafQueue(3), false, 400},
		{"olaf with merged arrivals", olafQueue(3), true, 200},
		{"olaf that costs cycles", Config{Queue: "olaf", Engine: engine.Config{Slots: 2, FreeSlotOnStart: true}, Output: engine.Output{Rate: 10 << 24, DequeueCycles: 7, MergeCycles: 3, OverheadBytes: 24}}, false, 200},
		{"fifo", Config{Queue: "fifo", Engine: engine.Config{Slots: 4}, Output: engine.Output{Rate: 10 << 23}, Lanes: true}, true, 200},
		{"without an arrival", olafQueue(2), false, 0},
		{"one arrival", olafQueue(2), false, 1},
	} {
		var got gathered
		res, err := Run(context.Background(), decoder(t, file(t, crowd(uint64(i), c.n, c.merged))), c.cfg, &got)
		text, failed := json.MarshalIndent(res, "", " ")
		if failed != nil {
			t.Fatal(failed)
		}
		fmt.Fprintf(&b, "== %s: %v\n%s\n", c.name, err, text)
		for k, d := range got {
			if k%5 == 0 || k < 20 {
				fmt.Fprintf(&b, "%d %d %+v %v from %v %v\n", d.At, d.Queued, d.Update, d.Contributors, d.Addresses.SrcIP, d.Lanes)
			}
		}
	}
	golden.Equal(t, "stories.txt", b.Bytes())
}

// A queue that can't be built is refused before anything is read.
func TestRefusedQueues(t *testing.T) {
	for _, cfg := range []Config{{Queue: "lifo", Engine: engine.Config{Slots: 1}}, {Queue: "olaf"}, {Queue: "olaf", Engine: engine.Config{Slots: -2}}} {
		if res, err := Run(context.Background(), decoder(t, file(t, nil)), cfg, nil); !errors.Is(err, engine.ErrConfig) || res != nil {
			t.Errorf("%+v: %+v, %v", cfg, res, err)
		}
	}
}
