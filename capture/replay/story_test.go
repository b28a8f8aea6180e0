package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/internal/test/golden"
)

// crowd returns a capture drawn from a seed: many workers and clusters, bursts and pauses, repeats, merged frames, ACKs
// and broken frames.
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

// TestStories checks the results of captures in all kinds of queues against golden files.
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
		{"olaf that costs cycles", Config{Queue: "olaf", Engine: engine.Config{Slots: 2, FreeSlotOnStart: true},
			Output: engine.Output{Rate: 10 << 24, DequeueCycles: 7, MergeCycles: 3, OverheadBytes: 24}}, false, 200},
		{"fifo", Config{Queue: "fifo", Engine: engine.Config{Slots: 4}, Output: engine.Output{Rate: 10 << 23},
			Lanes: true}, true, 200},
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
	for _, c := range []struct {
		name string
		in   []arrival
	}{{"one update", []arrival{{atNS: 7, cluster: 1, worker: 40000}}},
		{"ACKs alone", []arrival{{atNS: 7, ack: true}, {atNS: 9, ack: true}}},
		{"large numbers", []arrival{{atNS: 7, cluster: 1}, {atNS: 8, cluster: 32769},
			{atNS: 9, cluster: 1, worker: 40000}, {atNS: 10, cluster: 65535, worker: 65535}}}} {
		res, err := Run(context.Background(), decoder(t, file(t, c.in)), olafQueue(2), nil)
		text, failed := json.MarshalIndent(res, "", " ")
		if failed != nil {
			t.Fatal(failed)
		}
		fmt.Fprintf(&b, "== %s: %v\n%s\n", c.name, err, text)
	}
	res, err := Run(context.Background(), decoder(t, elsewhere(t, crowd(9, 100, false), 0)), olafQueue(3), nil)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&b, "== a capture of a host's clock\n%s\n", written(t, res))
	golden.Equal(t, "stories.txt", b.Bytes())
}

// TestReplayRejectsImpossibleQueues checks that a queue that cannot be built is rejected before anything is read.
func TestReplayRejectsImpossibleQueues(t *testing.T) {
	for _, cfg := range []Config{{Queue: "lifo", Engine: engine.Config{Slots: 1}}, {Queue: "olaf"},
		{Queue: "olaf", Engine: engine.Config{Slots: -2}}} {
		if res, err := Run(context.Background(), decoder(t, file(t, nil)), cfg, nil); !errors.Is(err,
			engine.ErrConfig) || res != nil {
			t.Errorf("%+v: %+v, %v", cfg, res, err)
		}
	}
}

// TestUnrelatedClocksWithholdAges checks that with unrelated clocks there are no ages, neither for arrivals nor behind
// the queue.
func TestUnrelatedClocksWithholdAges(t *testing.T) {
	for _, early := range []time.Duration{time.Hour, -time.Second} {
		res, err := Run(context.Background(), decoder(t, elsewhere(t, crowd(9, 20, false), early)), olafQueue(3), nil)
		if err != nil {
			t.Fatal(err)
		}
		if why := res.Arriving.Reason; res.SameClock || why == "" || res.Ages.Reason != why {
			t.Errorf("generated %v before they arrived: one clock %t, arriving %q, behind the queue %q", early,
				res.SameClock, why, res.Ages.Reason)
		}
	}
}

// elsewhere returns a classic capture stamped by a host's wall clock; the updates were generated earlier by the
// given time.
func elsewhere(t *testing.T, arrivals []arrival, early time.Duration) []byte {
	t.Helper()
	const origin = 1_700_000_000_000_000_000
	var b bytes.Buffer
	w, err := capture.NewWriter(&b, capture.PCAP, origin)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range arrivals {
		if a.raw != nil || a.ack {
			continue
		}
		u, addr := a.update(), address(a.worker)
		u.GenNS = uint64(origin+a.atNS-early.Nanoseconds()) & (1<<48 - 1)
		if err := w.WriteUpdate(olaf.Time(a.atNS*1000+500_000), &addr, &u, a.lanes()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// stopper ends the context at the first delivery.
type stopper struct{ stop func() }

func (s stopper) Deliver(*Delivery) error { s.stop(); return nil }

// TestStoppedReplays checks that a replay that is stopped, or whose sink fails, returns the result so far, including
// queued frames.
func TestStoppedReplays(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	res, err := Run(ctx, decoder(t, file(t, crowd(3, 3*checkEvery, false))), olafQueue(3), stopper{stop})
	if sent := res.Counts.Of("sent"); !errors.Is(err, context.Canceled) || !res.Partial || sent == 0 ||
		sent > 2*checkEvery {
		t.Errorf("%d of %d packets, %v", sent, 3*checkEvery, err)
	}
	var burst []arrival
	for i := range 12 {
		burst = append(burst, arrival{atNS: int64(i), cluster: i % 3, worker: i, seq: 0})
	}
	burst = append(burst, arrival{atNS: 40, cluster: 7})
	res, err = Run(context.Background(), decoder(t, file(t, burst)), olafQueue(8), &brokenSink{0})
	if !errors.Is(err, errSink) || !res.Partial {
		t.Fatal(err)
	}
	if queued, inside := res.Counts.Of("queued"), res.Counts.Of("count_queued"); queued == 0 || inside <= queued {
		t.Errorf("%d frames of %d updates wait", queued, inside)
	}
}

// TestInvalidResultsHaveReasons checks that an invalid result gives its reason.
func TestInvalidResultsHaveReasons(t *testing.T) {
	res, err := Run(context.Background(), decoder(t, file(t, crowd(1, 50, false))), olafQueue(3), nil)
	if err != nil || !res.Valid || res.Reason != "" {
		t.Fatal(res, err)
	}
	lost := *res
	lost.Valid, lost.Capture.CaptureDropped = false, 1
	if lost.judge(); lost.Valid || lost.Reason != "the capture lost 1 packet" {
		t.Errorf("%t, %q", lost.Valid, lost.Reason)
	}
	damaged := *res
	damaged.Valid, damaged.Capture.LinkErrors = false, 2
	if damaged.judge(); damaged.Valid || damaged.Reason != "2 packets of the capture arrived with a link error" {
		t.Errorf("%t, %q", damaged.Valid, damaged.Reason)
	}
	broken := *res
	broken.Valid, broken.Counts = false, res.Counts.Clone()
	broken.Counts.Add("in", 1)
	if broken.judge(); broken.Valid || broken.Reason == "" {
		t.Errorf("%t, %q", broken.Valid, broken.Reason)
	}
}
