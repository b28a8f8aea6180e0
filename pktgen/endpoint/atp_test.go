package endpoint

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/atp"
)

// TestAIMD compares the window with that of the compiled released client: from 100 frames, under these marks.
func TestAIMD(t *testing.T) {
	for _, c := range []struct {
		marks string
		want  []int
	}{
		{"0010000001", []int{100, 100, 50, 54, 58, 62, 66, 70, 74, 37}},
		{"11111111", []int{50, 25, 12, 6, 3, 1, 1, 1}},
	} {
		a := newAIMD(atpFrame, aimdStep, 100)
		var have []int
		for _, mark := range c.marks {
			have = append(have, a.Adjust(mark == '1'))
		}
		if !slices.Equal(have, c.want) {
			t.Errorf("under %s the window is %d, want %d", c.marks, have, c.want)
		}
	}
}

// TestAggregators compares the choice of aggregators with that of the compiled released client.
func TestAggregators(t *testing.T) {
	for job, want := range map[olaf.ClusterID][]uint32{
		1: {9190, 5475, 7757, 16808, 18705, 13332, 11738, 19135},
		2: {168, 6573, 11235, 4870, 18911, 1594, 4436, 14353},
	} {
		a := newAggregators(&ATP{Profile: atp.Released, Aggregators: atp.DefaultSlots, Window: len(want)}, job)
		for i, index := range want {
			for round := range uint64(2) {
				if have := a.of(1 + uint64(i) + round*uint64(len(want))); have != index {
					t.Errorf("job %d: packet %d goes to aggregator %d, want %d", job, i, have, index)
				}
			}
		}
	}
}

// TestEveryWindowPlaceHasAnAggregator checks that every place of a window as long as the number of aggregators has a
// different one, although hashes miss some.
func TestEveryWindowPlaceHasAnAggregator(t *testing.T) {
	a := newAggregators(&ATP{Profile: atp.Released, Aggregators: atp.MaxSlots, Window: atp.MaxSlots}, 5)
	slices.Sort(a.table)
	for i, at := range a.table {
		if at != uint32(i) {
			t.Fatalf("place %d has aggregator %d", i, at)
		}
	}
}

// TestAggregatorsOfAJobDiffer checks that a job never collides with itself, whatever the server proposes, and that
// workers with the same proposals agree.
func TestAggregatorsOfAJobDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "aggregators")
		o := &ATP{Profile: atp.Released, Aggregators: n, Base: rapid.IntRange(0, 100).Draw(t, "base"), Window: rapid.IntRange(1, n).Draw(t, "window")}
		a, b := newAggregators(o, 3), newAggregators(o, 3)
		for range rapid.IntRange(0, 100).Draw(t, "proposals") {
			seq, at := rapid.Uint64Range(1, 500).Draw(t, "seq"), rapid.Uint32Range(0, 200).Draw(t, "proposal")
			a.remap(seq, at)
			b.remap(seq, at)
		}
		held := map[uint32]bool{}
		for seq := uint64(1); seq <= uint64(o.Window); seq++ {
			index := a.of(seq)
			if held[index] || b.of(seq) != index || int(index) < o.Base || int(index) >= o.Base+n {
				t.Fatalf("packet %d goes to aggregator %d of %d to %d, by another worker to %d", seq, index, o.Base, o.Base+n-1, b.of(seq))
			}
			held[index] = true
		}
	})
}

// atpWorkerOf returns one of two workers, with a computed vector of packets of two values.
func atpWorkerOf(t *testing.T, o ATP, packets int, values []uint32) (*desk, Endpoint) {
	t.Helper()
	d := new(desk)
	e, err := NewATPWorker(Config{Job: 1, Workers: 2, Layout: Layout{Values: 2 * packets, PerPacket: 2}, Updates: 1}, o, d)
	if err != nil {
		t.Fatal(err)
	}
	e.Start(0)
	e.OnComputed(0, values)
	return d, e
}

func acknowledged(seq uint64) *program.Packet { return &program.Packet{Kind: program.Ack, Seg: seq} }

// seqs returns the sequence numbers of sent packets, negative for those marked as repeats.
func seqs(sent []program.Packet) (numbers []int) {
	for i := range sent {
		n := int(sent[i].Seg)
		if sent[i].Flags&program.Resend != 0 {
			n = -n
		}
		numbers = append(numbers, n)
	}
	return numbers
}

// TestATPWindow checks that the window moves with acknowledgements in order; one out of order (the third in the paper's
// profile) resends the missing packets once.
func TestATPWindow(t *testing.T) {
	for _, c := range []struct {
		profile string
		after   map[uint64][]int // packets sent after an acknowledgement
		order   []uint64
	}{
		{atp.Released, map[uint64][]int{1: {5}, 3: {-2}, 4: nil, 2: {6, 7, 8}}, []uint64{1, 3, 4, 2}},
		{atp.Paper, map[uint64][]int{1: {5}, 3: nil, 4: nil, 5: {-2}, 2: {6, 7, 8, 9}}, []uint64{1, 3, 4, 5, 2}},
	} {
		d, e := atpWorkerOf(t, ATP{Profile: c.profile, Window: 4}, 20, nil)
		if first := seqs(d.takeSent()); !slices.Equal(first, []int{1, 2, 3, 4}) {
			t.Fatalf("%s begins with %d", c.profile, first)
		}
		if want := olaf.Time(0).Add(ATPFirstTimeout); e.Next() != want {
			t.Errorf("%s waits until %s for the first acknowledgement, want %s", c.profile, e.Next(), want)
		}
		for _, seq := range c.order {
			e.Receive(1000, acknowledged(seq), nil)
			if sent := seqs(d.takeSent()); !slices.Equal(sent, c.after[seq]) {
				t.Errorf("%s: after acknowledgement %d it sends %d, want %d", c.profile, seq, sent, c.after[seq])
			}
		}
		if want := olaf.Time(1000).Add(ATPTimeout); e.Next() != want {
			t.Errorf("%s waits until %s, want %s", c.profile, e.Next(), want)
		}
		e.Timer(e.Next())
		if sent := seqs(d.takeSent()); len(sent) != 1 || sent[0] != -int(c.order[len(c.order)-2]+1) {
			t.Errorf("%s: after silence it sends %d", c.profile, sent)
		}
	}
}

// TestATPSilent checks that a silent worker has no timer.
func TestATPSilent(t *testing.T) {
	d, e := atpWorkerOf(t, ATP{Window: 4, Silent: true}, 20, nil)
	d.takeSent()
	e.Receive(1, acknowledged(3), nil)
	if sent := d.takeSent(); e.Next() != Never || len(sent) != 0 {
		t.Errorf("it sends %d, and again at %s", seqs(sent), e.Next())
	}
}

// TestATPCongestion checks that a marked acknowledgement at the end of a window halves the next one.
func TestATPCongestion(t *testing.T) {
	d, e := atpWorkerOf(t, ATP{Window: 8, Congestion: true}, 100, nil)
	sent := len(d.takeSent())
	ack := func(seq uint64, flags program.Flags) {
		p := acknowledged(seq)
		p.Flags = flags
		e.Receive(1, p, nil)
		sent += len(d.takeSent())
	}
	for seq := uint64(1); seq <= 7; seq++ {
		ack(seq, program.ECN) // only the last mark in a window counts
	}
	if sent != 15 {
		t.Fatalf("%d packets are sent before the window's last acknowledgement, want 15", sent)
	}
	ack(8, program.ECN)
	for seq := uint64(9); seq <= 12; seq++ {
		ack(seq, 0)
	}
	// Half of 8; after 4 frames and 1500 bytes the window is 8 again.
	if sent != 20 {
		t.Errorf("%d packets are sent, want 20", sent)
	}
}

// words returns floats as 32-bit words.
func words(values ...float32) (w []uint32) {
	for _, v := range values {
		w = append(w, math.Float32bits(v))
	}
	return w
}

// pair is two workers and their server without a switch: packets go to the server, and acknowledgements to both.
type pair struct {
	workers [2]Endpoint
	server  Endpoint
	sums    [2][]uint32
	queue   []func()
	asked   int
}

type pairHost struct {
	p  *pair
	at int // 2 is the server
}

func (h pairHost) Compute(uint32) {}
func (h pairHost) Message()       {}
func (h pairHost) Apply(a *Aggregate) {
	h.p.sums[h.at] = slices.Clone(a.Values)
}

func (h pairHost) Send(_ Peer, p *program.Packet, lanes []uint32) olaf.Time {
	packet, words := *p, slices.Clone(lanes)
	if h.at < 2 {
		h.p.queue = append(h.p.queue, func() { h.p.server.Receive(1, &packet, words) })
		return 0
	}
	if p.Flags&(program.Overflow|program.Resend) == program.Overflow {
		h.p.asked++
	}
	for w := range h.p.workers {
		h.p.queue = append(h.p.queue, func() { h.p.workers[w].Receive(1, &packet, words) })
	}
	return 0
}

// play makes two workers add their values.
func play(t *testing.T, o ATP, a, b []uint32) *pair {
	t.Helper()
	p := new(pair)
	cfg := Config{Job: 1, Workers: 2, Layout: Layout{Values: len(a), PerPacket: 2}, Updates: 1}
	var err error
	if p.server, err = NewATPServer(cfg, o, pairHost{p, 2}); err != nil {
		t.Fatal(err)
	}
	for w, values := range [][]uint32{a, b} {
		cfg.Worker = olaf.WorkerID(w)
		if p.workers[w], err = NewATPWorker(cfg, o, pairHost{p, w}); err != nil {
			t.Fatal(err)
		}
		p.workers[w].Start(0)
		p.workers[w].OnComputed(0, values)
	}
	for len(p.queue) > 0 {
		next := p.queue[0]
		p.queue = p.queue[1:]
		next()
		if len(p.queue) == 0 && p.server.Next() != Never {
			p.server.Timer(p.server.Next())
		}
	}
	return p
}

// TestATPFloats checks that gradients are sent as integers, and that values too large for them, alone or as a sum, are
// added as floats, exactly once.
func TestATPFloats(t *testing.T) {
	fixed := Fixed{Scale: ATPScale}
	for name, c := range map[string]struct {
		a, b, want []uint32
		asked      bool
	}{
		"integers":  {words(0.5, -1.25, 3, 4), words(0.25, 1, 5, 6), words(0.75, -0.25, 8, 10), false},
		"too large": {words(0.5, -1.25, 1000, 4), words(0.25, 1, 5, 6), words(0.75, -0.25, 1005, 10), true},
		"a mix":     {words(1, 1, 1e9, 4), words(1, 1, 1e-9, 6), words(2, 2, 1e9, 10), true},
	} {
		for _, batch := range []int{1, 8} {
			p := play(t, ATP{Window: 2, Fixed: fixed, Batch: batch}, c.a, c.b)
			for w := range p.sums {
				if !slices.Equal(p.sums[w], c.want) {
					t.Errorf("%s, batches of %d: worker %d has %x, want %x", name, batch, w, p.sums[w], c.want)
				}
			}
			if (p.asked > 0) != c.asked || !p.server.Done() {
				t.Errorf("%s: asked for floats %d times, done %v", name, p.asked, p.server.Done())
			}
		}
	}
	// Two values fit, but their sum overflows at this larger scale.
	p := play(t, ATP{Window: 2, Fixed: Fixed{Scale: 1e7}}, words(200, 1), words(200, 1))
	if want := words(400, 2); !slices.Equal(p.sums[0], want) || p.asked == 0 {
		t.Errorf("a sum beyond the integers is %x, want %x; asked for floats %d times", p.sums[0], want, p.asked)
	}
}

// TestGroupRounding checks that groups of eight are rounded and the rest is truncated, so that results depend on the
// index modulo eight.
func TestGroupRounding(t *testing.T) {
	for n := range 40 {
		values := make([]uint32, n)
		for i := range values {
			values[i] = math.Float32bits(1.7e-6)
		}
		for truncates, behind := range map[bool]uint32{false: 2, true: 1} {
			for i, have := range (Fixed{Scale: ATPScale, Truncates: truncates}).integers(nil, values) {
				want := behind
				if i < n/8*8 {
					want = 2
				}
				if have != want {
					t.Errorf("truncates %v: place %d of %d: 1.7 becomes %d, want %d", truncates, i, n, have, want)
				}
			}
		}
	}
}

// TestExponents checks that SwitchML's exponents and scales leave room for the sum of all workers.
func TestExponents(t *testing.T) {
	for v, want := range map[float32]int8{0: -126, 1: 1, 0.75: 0, 0.5: 0, 3: 2, -3: 2, 1e30: 100, math.MaxFloat32: 127, math.SmallestNonzeroFloat32: -126} {
		if have := exponent(words(v)); have != want {
			t.Errorf("the exponent of %g is %d, want %d", v, have, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(1, 32).Draw(t, "workers")
		v := rapid.Float32Range(-1e30, 1e30).Draw(t, "value")
		scale := blockScale(workers, exponent(words(v)))
		one := int64(int32(scaleValues(nil, words(v), scale)[0]))
		if sum := one * int64(workers); sum > math.MaxInt32+int64(workers) || sum < math.MinInt32-int64(workers) {
			t.Fatalf("%d times %g as %d do not fit", workers, v, one)
		}
	})
}

func TestATPRefusals(t *testing.T) {
	cfg := Config{Job: 1, Workers: 4, Layout: Layout{Values: 6, PerPacket: 2}, Updates: 1}
	many := cfg
	many.Workers = 33
	for name, c := range map[string]struct {
		cfg Config
		o   ATP
	}{
		"a profile":                    {cfg, ATP{Profile: "p5"}},
		"a window beyond aggregators":  {cfg, ATP{Window: 101, Aggregators: 100}},
		"an index beyond 16 bits":      {cfg, ATP{Base: 65_000, Aggregators: 1000}},
		"more workers than bits":       {many, ATP{}},
		"a fan-in above 31":            {Config{Job: 1, Workers: 32, Layout: cfg.Layout, Updates: 1}, ATP{Profile: atp.Paper}},
		"two levels of the released":   {cfg, ATP{PerRack: 2}},
		"a negative timeout":           {cfg, ATP{Timeout: -1}},
		"racks with too many below":    {Config{Job: 1, Workers: 64, Layout: cfg.Layout, Updates: 1}, ATP{Profile: atp.Paper, PerRack: 32}},
		"a negative number of workers": {Config{Workers: -1, Layout: cfg.Layout, Updates: 1}, ATP{}},
	} {
		if _, err := NewATPWorker(c.cfg, c.o, nil); !errors.Is(err, ErrConfig) {
			t.Errorf("a worker, %s: %v", name, err)
		}
		if _, err := NewATPServer(c.cfg, c.o, nil); !errors.Is(err, ErrConfig) {
			t.Errorf("a server, %s: %v", name, err)
		}
	}
}
