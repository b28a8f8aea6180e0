package endpoint

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/iswitch"
)

// desk is a host that records requests.
type desk struct {
	computes, messages, applies int
	sent                        []program.Packet
	to                          []Peer
}

func (d *desk) Compute(uint32)   { d.computes++ }
func (d *desk) Message()         { d.messages++ }
func (d *desk) Apply(*Aggregate) { d.applies++ }
func (d *desk) Send(to Peer, p *program.Packet, _ []uint32) olaf.Time {
	d.sent, d.to = append(d.sent, *p), append(d.to, to)
	return 0
}

// takeSent returns the packets since the last call.
func (d *desk) takeSent() []program.Packet {
	sent := d.sent
	d.sent, d.to = nil, nil
	return sent
}

// TestLayout checks that a vector's packets contain all of its values, and the number of messages.
func TestLayout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Layout{Values: rapid.IntRange(1, 5000).Draw(t, "values"), PerPacket: rapid.IntRange(1, 400).Draw(t, "per packet")}
		l.Messages = rapid.IntRange(0, min(l.Packets(), 5)).Draw(t, "messages")
		values := make([]uint32, l.Values)
		sum, opened := 0, 0
		for i := range l.Packets() {
			if n := len(l.cut(values, i)); n != l.Lanes(i) || n < 1 || n > l.PerPacket {
				t.Fatalf("packet %d has %d values", i, n)
			}
			sum += l.Lanes(i)
			if l.opens(i) {
				opened++
			}
		}
		if sum != l.Values || opened > max(1, l.Messages) || opened < 1 || !l.opens(0) {
			t.Fatalf("%d of %d values, %d of %d messages", sum, l.Values, opened, l.Messages)
		}
	})
}

// TestRingChunks checks that the chunks of a ring are the whole vector, and that a worker expects the chunk that its
// predecessor sends.
func TestRingChunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(2, 9).Draw(t, "workers")
		ring := make([]*ringWorker, workers)
		for w := range ring {
			e, err := NewRing(Config{Workers: workers, Worker: olaf.WorkerID(w), Layout: Layout{Values: workers + rapid.IntRange(0, 50).Draw(t, "more"), PerPacket: 4}, Updates: 1}, new(desk))
			if err != nil {
				t.Fatal(err)
			}
			ring[w] = e.(*ringWorker)
		}
		end := 0
		for c := range workers {
			l, first := ring[0].chunk(c)
			if first != end || l.Values < 1 {
				t.Fatalf("chunk %d begins at %d with %d values, after %d", c, first, l.Values, end)
			}
			end += l.Values
		}
		if end != ring[0].cfg.Values {
			t.Fatalf("chunks hold %d of %d values", end, ring[0].cfg.Values)
		}
		for w := range ring {
			for step := range 2 * (workers - 1) {
				if next := ring[(w+1)%workers]; ring[w].sentChunk(step) != next.receivedChunk(step) {
					t.Fatalf("step %d: worker %d passes chunk %d, the next expects %d", step, w, ring[w].sentChunk(step), next.receivedChunk(step))
				}
			}
		}
	})
}

// TestRingStoresEarlyPackets checks that packets that arrive early are stored until a worker's first gradient is ready.
func TestRingStoresEarlyPackets(t *testing.T) {
	d := new(desk)
	e, err := NewRing(Config{Workers: 2, Layout: Layout{Values: 6, PerPacket: 3}, Updates: 1}, d)
	if err != nil {
		t.Fatal(err)
	}
	e.Receive(0, &program.Packet{Kind: program.Data}, nil)
	if len(d.sent) != 0 {
		t.Fatalf("it sends %+v", d.sent)
	}
	e.Start(1)
	e.OnComputed(1, nil)
	if sent := d.takeSent(); len(sent) != 2 || sent[0].Index != 0 || sent[1].Index != 1 || d.applies != 0 {
		t.Fatalf("it sends %+v and applies %d sums", sent, d.applies)
	}
	if e.Receive(2, &program.Packet{Kind: program.Data, Index: 1}, nil); d.applies != 1 {
		t.Errorf("it applies %d sums", d.applies)
	}
}

func newSyncISwitch(t *testing.T, isw ISwitch) (*desk, Endpoint) {
	t.Helper()
	d := new(desk)
	e, err := NewISwitchSync(Config{Workers: 2, Layout: Layout{Values: 6, PerPacket: 2}, Updates: 2}, isw, d)
	if err != nil {
		t.Fatal(err)
	}
	e.Start(0)
	e.OnComputed(0, nil)
	return d, e
}

func result(seg int) *program.Packet { return &program.Packet{Kind: program.Result, Seg: uint64(seg)} }

// TestSyncRequestTiming checks that a worker asks late if nothing has arrived, soon otherwise, and only for missing
// packets, each in a published frame.
func TestSyncRequestTiming(t *testing.T) {
	d, e := newSyncISwitch(t, ISwitch{})
	if sent := d.takeSent(); len(sent) != 3 || d.messages != 1 {
		t.Fatalf("%d packets in %d messages", len(sent), d.messages)
	}
	if want := olaf.Time(patience * defaultTimeout); e.Next() != want {
		t.Errorf("it asks at %s, want %s: somebody computes for longer", e.Next(), want)
	}
	now := olaf.Time(olaf.Microsecond)
	e.Receive(now, result(1), nil)
	if want := now.Add(defaultTimeout); e.Next() != want {
		t.Errorf("it asks at %s, want %s", e.Next(), want)
	}
	e.Timer(e.Next())
	asked := d.takeSent()
	if len(asked) != 2 || asked[0].Action != iswitch.Help || asked[0].Seg != 0 || asked[1].Seg != 2 {
		t.Fatalf("it asks %+v", asked)
	}
	e.Timer(e.Next()) // no answer: worker 0 restarts all
	if again := d.takeSent(); len(again) != 6 || again[0].Action != iswitch.Reset || again[2].Kind != program.Data {
		t.Fatalf("it sends %+v", again)
	}
	e.Receive(now, result(0), nil)
	e.Receive(now, result(0), nil)
	e.Receive(now, result(2), nil)
	if d.applies != 1 || e.Next() != Never {
		t.Errorf("%d sums, asks at %s", d.applies, e.Next())
	}
	if repeated := e.Counts()[repeated]; repeated != 1 {
		t.Errorf("%d repeats", repeated)
	}
}

// TestSyncAnswers checks that a worker answers requests for its own round, under isw-x also for the previous round, and
// at the end for the last round.
func TestSyncAnswers(t *testing.T) {
	d, e := newSyncISwitch(t, ISwitch{Profile: iswitch.Exactly})
	d.takeSent()
	ask := func(round uint16) []program.Packet {
		e.Receive(1, &program.Packet{Kind: program.Control, Action: iswitch.Help, Worker: 1, Seg: 1, Round: round}, nil)
		return d.takeSent()
	}
	if sent := ask(0); len(sent) != 1 || sent[0].Kind != program.Data {
		t.Fatalf("without a sum it sends %+v, want its own part", sent)
	}
	for seg := range 3 {
		e.Receive(1, result(seg), nil)
	}
	e.OnApplied(1)
	if sent := ask(0); len(sent) != 1 || sent[0].Kind != program.Result || sent[0].Round != 0 {
		t.Fatalf("a round ahead it sends %+v", sent)
	}
	if sent := ask(1); len(sent) != 0 {
		t.Fatalf("before it has computed it sends %+v", sent)
	}
}

// TestPool checks that a result permits sending the packet one pool later, and that the timeout doubles.
func TestPool(t *testing.T) {
	d := new(desk)
	e, err := NewSwitchML(Config{Workers: 2, Layout: Layout{Values: 10, PerPacket: 2}, Updates: 1}, SwitchML{Slots: 2}, d)
	if err != nil {
		t.Fatal(err)
	}
	e.Start(0)
	e.OnComputed(0, nil)
	if sent := d.takeSent(); len(sent) != 2 || sent[1].Index != 1 {
		t.Fatalf("it begins with %+v", sent)
	}
	e.Receive(1, &program.Packet{Kind: program.Result, Seg: 1, Index: 1}, nil)
	if sent := d.takeSent(); len(sent) != 1 || sent[0].Seg != 3 || sent[0].Index != 1 || sent[0].Flags&program.Set1 == 0 {
		t.Fatalf("after the result of packet 1 it sends %+v, want packet 3 into the other set of slot 1", sent)
	}
	e.Receive(1, &program.Packet{Kind: program.Result, Seg: 3, Index: 1}, nil) // a result for the wrong set
	if sent := d.takeSent(); len(sent) != 0 {
		t.Fatalf("a result of another set made it send %+v", sent)
	}
	now := e.Next()
	for range 2*doubling + 1 {
		now = e.Next()
		e.Timer(now)
	}
	if wait := e.Next().Sub(now); wait < 2*defaultTimeout {
		t.Errorf("after %d timeouts it waits %s", e.Counts()[resent], wait)
	}
}

// TestLostPacketKeepsItsSlot loses the result of a vector's first packet, in vectors of one packet to two pools whose
// scales follow the values, and delivers all others. No other packet takes the slot of the lost one, so that it is sent
// again.
func TestLostPacketKeepsItsSlot(t *testing.T) {
	const slots = 4
	for packets := 1; packets <= 2*slots; packets++ {
		d := new(desk)
		e, err := NewSwitchML(Config{Workers: 2, Layout: Layout{Values: 2 * packets, PerPacket: 2}, Updates: 1},
			SwitchML{Slots: slots, Floats: true}, d)
		if err != nil {
			t.Fatal(err)
		}
		e.Start(0)
		e.OnComputed(0, make([]uint32, 2*packets))
		for sent := d.takeSent(); len(sent) > 0; sent = d.takeSent() {
			for _, p := range sent {
				if p.Seg == 0 {
					continue
				}
				if p.Index == 0 {
					t.Errorf("%d packets in a pool of %d: packet %d takes the slot of packet 0, whose result is missing", packets, slots, p.Seg)
				}
				p.Kind = program.Result
				e.Receive(1, &p, make([]uint32, 2))
			}
		}
		e.Timer(e.Next())
		if again := d.takeSent(); len(again) != 1 || again[0].Seg != 0 {
			t.Errorf("%d packets in a pool of %d: after the timeout it sends %+v, want packet 0", packets, slots, again)
		}
	}
}

// TestServerRefusesPacketsAfterAWholeVector sends a parameter server two packets of a worker after the last packet of
// its vector. It does not count the worker as another one, and waits for the vector of the other worker.
func TestServerRefusesPacketsAfterAWholeVector(t *testing.T) {
	for _, sync := range []bool{true, false} {
		d := new(desk)
		s, err := NewPSServer(Config{Workers: 2, Layout: Layout{Values: 6, PerPacket: 2, Varies: true}, Updates: 1}, sync, d)
		if err != nil {
			t.Fatal(err)
		}
		first := program.Packet{Kind: program.Data, Lanes: 2, Flags: program.Last}
		after, last := first, first
		after.Seg, after.Flags = 1, 0
		last.Seg = 2
		want := map[bool]int{true: 0, false: 1}[sync]
		for _, p := range []program.Packet{first, after, last} {
			s.Receive(0, &p, make([]uint32, 2))
		}
		if !sync {
			s.OnApplied(0) // the answer to the first vector
		}
		if d.applies != want || s.Counts()[repeated] != 2 {
			t.Errorf("sync %v: the server applies %d vectors and counts %v, want %d and 2 repeated packets", sync, d.applies,
				s.Counts(), want)
		}
	}
}

func TestRefusals(t *testing.T) {
	good := Config{Workers: 2, Layout: Layout{Values: 6, PerPacket: 2}, Updates: 1}
	for name, build := range map[string]func() (Endpoint, error){
		"no workers":        func() (Endpoint, error) { c := good; c.Workers = 0; return NewPSWorker(c, nil) },
		"no values":         func() (Endpoint, error) { c := good; c.Values = 0; return NewPSServer(c, true, nil) },
		"too many messages": func() (Endpoint, error) { c := good; c.Messages = 4; return NewPSWorker(c, nil) },
		"no updates":        func() (Endpoint, error) { c := good; c.Updates = 0; return NewPSWorker(c, nil) },
		"a recovery":        func() (Endpoint, error) { return NewISwitchSync(good, ISwitch{Recovery: "hope"}, nil) },
		"a profile":         func() (Endpoint, error) { return NewISwitchSync(good, ISwitch{Profile: "isw-9"}, nil) },
		"a short table":     func() (Endpoint, error) { return NewISwitchSync(good, ISwitch{Ahead: 2}, nil) },
		"rounds that wrap": func() (Endpoint, error) {
			return NewISwitchSync(good, ISwitch{Ahead: 2, Wrap: true, Profile: iswitch.Exactly}, nil)
		},
		"a bound":            func() (Endpoint, error) { return NewISwitchAsync(good, Async{Bound: -1}, nil) },
		"a table too short":  func() (Endpoint, error) { return NewISwitchAsync(good, Async{Slots: 2}, nil) },
		"no pool":            func() (Endpoint, error) { return NewSwitchML(good, SwitchML{}, nil) },
		"a negative timeout": func() (Endpoint, error) { return NewSwitchML(good, SwitchML{Slots: 1, Timeout: -1}, nil) },
		"a ring of one":      func() (Endpoint, error) { c := good; c.Workers = 1; return NewRing(c, nil) },
	} {
		if _, err := build(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
