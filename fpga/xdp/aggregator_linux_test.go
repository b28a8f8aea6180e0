package xdp

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/xagg"
)

// data is one packet of XAgg, written independently from docs/notes/kernel.md.
type data struct {
	job, child, epoch uint16
	fragment          uint32
	count             uint16
	gen               uint64
	lanes             []int32
}

// encode writes a packet's frame, which is an OLAF frame except for its magic and its last header field.
func (p *data) encode(t testing.TB, source [4]byte) []byte {
	t.Helper()
	u := olaf.Update{Cluster: olaf.ClusterID(p.job), Worker: olaf.WorkerID(p.child), Seq: p.fragment, Count: p.count, GenNS: p.gen,
		Lanes: uint16(len(p.lanes))}
	frame := make([]byte, u.Size())
	a := olaf.Addresses{SrcIP: source, DstIP: [4]byte{10, 255, 0, 1}}
	if _, err := olaf.EncodeUpdate(frame, &a, &u, p.lanes); err != nil {
		t.Fatal(err)
	}
	frame[42] = 'X'
	binary.BigEndian.PutUint32(frame[60:], uint32(p.epoch)<<16)
	return frame
}

// decode decodes a packet and checks the rest of the frame with the parser for OLAF frames.
func decode(t testing.TB, frame []byte) (data, olaf.Addresses) {
	t.Helper()
	epoch := binary.BigEndian.Uint16(frame[60:])
	frame[42] = 'O'
	f, err := olaf.ParseFrame(frame)
	if err != nil {
		t.Fatal(err)
	}
	u := f.Update()
	p := data{job: uint16(u.Cluster), child: uint16(u.Worker), epoch: epoch, fragment: u.Seq, count: u.Count, gen: u.GenNS,
		lanes: make([]int32, u.Lanes)}
	f.Lanes(p.lanes)
	return p, f.Addresses()
}

// slowAggregator is a simple XAgg: it stores the packets of every child for a fragment, and computes the sum on demand.
type slowAggregator struct {
	children int
	wrapping bool
	inside   map[uint32][]data
	counts   map[string]uint64
	log      []dataplane.Decision // decisions since the last comparison with the kernel's log
}

func (s *slowAggregator) receive(p data) (class string, sum *data) {
	held := s.inside[p.fragment]
	if len(held) > 0 && held[0].epoch != p.epoch {
		if int16(p.epoch-held[0].epoch) < 0 {
			return "late", nil
		}
		if len(held) < s.children {
			s.counts["abandoned"] += uint64(len(held))
		}
		held = nil
	}
	for _, h := range held {
		if h.child == p.child {
			return "duplicate", nil
		}
	}
	if len(held) > 0 && len(held[0].lanes) != len(p.lanes) {
		return "mismatched", nil
	}
	before := s.saturations(held)
	held = append(held, p)
	s.inside[p.fragment] = held
	s.counts["lane_saturations"] += s.saturations(held) - before
	if len(held) < s.children {
		return "consumed", nil
	}
	return "completed", s.sum(held)
}

// sum adds the packets in order of arrival.
func (s *slowAggregator) sum(held []data) *data {
	sum := held[0]
	sum.lanes = append([]int32(nil), held[0].lanes...)
	for _, h := range held[1:] {
		sum.count += h.count
		if (h.gen-sum.gen)&(1<<48-1) < 1<<47 {
			sum.gen = h.gen
		}
		for i := range sum.lanes {
			exact := int64(sum.lanes[i]) + int64(h.lanes[i])
			if !s.wrapping {
				exact = max(math.MinInt32, min(math.MaxInt32, exact))
			}
			sum.lanes[i] = int32(exact)
		}
	}
	return &sum
}

// saturations returns the number of additions in a sum that left the range.
func (s *slowAggregator) saturations(held []data) (n uint64) {
	if s.wrapping {
		return 0
	}
	for k := 1; k < len(held); k++ {
		so := s.sum(held[:k])
		for i := range so.lanes {
			if exact := int64(so.lanes[i]) + int64(held[k].lanes[i]); exact != int64(int32(exact)) {
				n++
			}
		}
	}
	return n
}

func loadAggregator(t testing.TB, b AggregatorBuild, children int) *Aggregator {
	t.Helper()
	a, err := LoadAggregator(b)
	loaded(t, err)
	t.Cleanup(func() { _ = a.Close() })
	var senders []dataplane.Sender
	for i := range children {
		senders = append(senders, dataplane.Sender{Address: addressOf(i), Cluster: 7, Worker: olaf.WorkerID(i)})
	}
	err = errors.Join(a.SetSenders(senders), a.Run(true), a.Configure(Parent{
		Job: 7, Children: children, Child: 3,
		Source: olaf.Addresses{SrcMAC: [6]byte{2, 0, 0, 0, 0, 1}, DstMAC: [6]byte{2, 0, 0, 0, 0, 2}, SrcIP: [4]byte{10, 9, 0, 1},
			DstIP: [4]byte{10, 9, 0, 2}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestAggregator sends random packets of children through the kernel and the slow aggregator, including duplicates,
// packets of past or new epochs, packets of other lengths, and packets that are out of range.
func TestAggregator(t *testing.T) {
	cases := []struct {
		children, lanes int
		wrapping        bool
	}{{4, 256, false}, {4, 256, true}, {1, 33, false}, {64, 7, true}, {9, 48, false}}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%dx%d wrapping=%v", c.children, c.lanes, c.wrapping), func(t *testing.T) {
			const fragments = 20
			a := loadAggregator(t, AggregatorBuild{Fragments: fragments, Lanes: c.lanes, Wrapping: c.wrapping, Senders: 64,
				LogBytes: 1 << 17}, c.children)
			slow := &slowAggregator{children: c.children, wrapping: c.wrapping, inside: map[uint32][]data{},
				counts: map[string]uint64{}}
			for _, name := range a.CounterNames() {
				slow.counts[name] = 0
			}
			rng := rand.New(rand.NewPCG(1, uint64(c.children)))
			epoch := uint16(65533)
			for i := range *events / len(cases) {
				if i%500 == 499 {
					compareDecisions(t, a, slow)
					epoch++
				}
				p := data{job: 7, child: uint16(rng.IntN(c.children)), epoch: epoch, fragment: uint32(rng.IntN(fragments)),
					count: uint16(1 + rng.IntN(3)), gen: uint64(rng.IntN(1000)), lanes: make([]int32, c.lanes)}
				if rng.IntN(30) == 0 {
					p.epoch += uint16(rng.IntN(3)) - 1
				}
				if rng.IntN(40) == 0 {
					p.lanes = p.lanes[:1+rng.IntN(c.lanes)]
				}
				for k := range p.lanes {
					p.lanes[k] = int32(rng.Uint32()) >> rng.IntN(3)
				}
				exchangeBoth(t, a, slow, p)
			}
			compareDecisions(t, a, slow)
			compareAggregators(t, a, slow)
		})
	}
}

func exchangeBoth(t *testing.T, a *Aggregator, slow *slowAggregator, p data) {
	t.Helper()
	frame := p.encode(t, addressOf(int(p.child)).As4())
	class, want := slow.receive(p)
	slow.counts[class]++
	slow.log = append(slow.log, dataplane.Decision{
		Class: engine.Class(slices.Index(a.CounterNames(), class)), Slot: engine.Slot(p.fragment),
		Update: olaf.Update{GenNS: p.gen, Seq: p.fragment, Reward: int32(p.epoch), Cluster: 7, Worker: olaf.WorkerID(p.child),
			Count: p.count, Lanes: uint16(len(p.lanes))},
	})
	slow.counts["in_bytes"] += uint64(len(frame))
	verdict, err := a.Arrive(frame)
	if err != nil {
		t.Fatal(err)
	}
	if (verdict == Send) != (want != nil) || verdict != Send && verdict != Drop {
		t.Fatalf("%+v: verdict %d, %s", p, verdict, class)
	}
	if want == nil {
		return
	}
	got, addr := decode(t, frame)
	want.job, want.child = 7, 3
	if d := gocmp.Diff(*want, got, gocmp.AllowUnexported(data{})); d != "" {
		t.Fatalf("sum (-slow +kernel):\n%s", d)
	}
	if addr.SrcIP != [4]byte{10, 9, 0, 1} || addr.DstMAC != [6]byte{2, 0, 0, 0, 0, 2} {
		t.Fatalf("the sum goes from %v to %v", addr.SrcIP, addr.DstMAC)
	}
}

// compareDecisions drains the kernel's log, as a testbed does while packets arrive, and compares it with the slow
// aggregator's.
func compareDecisions(t *testing.T, a *Aggregator, slow *slowAggregator) {
	t.Helper()
	var log []dataplane.Decision
	err := a.Decisions(func(d *dataplane.Decision) {
		d.Number, d.AtNS, d.Saturated = 0, 0, 0 // Number depends on the fragment, and Saturated is checked by its count
		log = append(log, *d)
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := gocmp.Diff(slow.log, log); d != "" {
		t.Fatalf("decisions (-slow +kernel):\n%s", d)
	}
	slow.log = nil
}

// compareAggregators compares bitmaps, sums and counters.
func compareAggregators(t *testing.T, a *Aggregator, slow *slowAggregator) {
	lanes := make([]uint32, a.build.Lanes)
	for i := range a.build.Fragments {
		got, err := a.Fragment(i, lanes)
		if err != nil {
			t.Fatal(err)
		}
		held := slow.inside[uint32(i)]
		if len(held) == 0 {
			continue
		}
		sum := slow.sum(held)
		want := xagg.Fragment{Epoch: sum.epoch, Lanes: uint16(len(sum.lanes)), NewestNS: sum.gen, Inside: len(held),
			Count: int(sum.count)}
		for _, h := range held {
			want.Bitmap |= 1 << h.child
		}
		if d := gocmp.Diff(want, got); d != "" {
			t.Fatalf("fragment %d (-slow +kernel):\n%s", i, d)
		}
		if d := gocmp.Diff(sum.lanes, signed(lanes[:got.Lanes])); d != "" {
			t.Fatalf("sum of fragment %d (-slow +kernel):\n%s", i, d)
		}
	}
	got, err := a.Latch()
	if err != nil {
		t.Fatal(err)
	}
	if d := gocmp.Diff(slow.counts, got); d != "" {
		t.Fatalf("counters (-slow +kernel):\n%s", d)
	}
	t.Log(got)
}

// signed returns the values of two's-complement words.
func signed(words []uint32) (values []int32) {
	for _, v := range words {
		values = append(values, int32(v))
	}
	return values
}

// TestRace shows a race that the paper's algorithm leaves open, and checks that a lock prevents it. A packet of one
// child stops after reading the bitmap and before adding itself, while a packet of another child passes. Without a
// lock, the first packet then overwrites the second one's bit: the sum is never complete, and the repeated second
// packet is added twice.
func TestRace(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("needs two processors")
	}
	one := &data{job: 7, child: 0, count: 1, lanes: []int32{1, 1}}
	two := &data{job: 7, child: 1, count: 1, lanes: []int32{10, 10}}
	for _, c := range []struct {
		name     string
		unlocked bool
		bitmap   uint64
		resent   int32 // lane of the sum after the second child's packet was resent
	}{{"as published", true, 0b01, 1 + 2*10}, {"with a lock", false, 0b11, 1 + 10}} {
		t.Run(c.name, func(t *testing.T) {
			for range 10 {
				a := loadAggregator(t, AggregatorBuild{Fragments: 1, Lanes: 2, Senders: 2, unlocked: c.unlocked, gated: true}, 2)
				if !interleave(t, a, one, two) {
					continue // the machine was too busy for the second packet to pass in time
				}
				expectFragment(t, a, c.bitmap, 11)
				arrive(t, a, two)
				expectFragment(t, a, 0b11, c.resent)
				return
			}
			t.Skip("the machine is too busy")
		})
	}
}

// interleave lets packet two pass while packet one waits at the gate, and reports whether one waited there until then.
func interleave(t *testing.T, a *Aggregator, one, two *data) bool {
	t.Helper()
	closeGate(t, a, one)
	done := make(chan error, 1)
	go func() {
		_, err := a.collection.Programs["arrive"].Run(&ebpf.RunOptions{Data: one.encode(t, addressOf(0).As4())})
		done <- err
	}()
	g := a.collection.Maps["gate"]
	for gateWord(t, g, 4) == 0 {
		select {
		case err := <-done:
			if gateWord(t, g, 4) == 0 {
				t.Fatalf("nothing stood at the gate: %v", err)
			}
			done <- err
		default:
			runtime.Gosched()
		}
	}
	arrive(t, a, two)
	expired := gateWord(t, g, 12)
	if err := g.Put(uint32(0), encodeWords(1, 1, 1, expired)); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return expired == 0
}

func closeGate(t *testing.T, a *Aggregator, p *data) {
	t.Helper()
	if err := a.collection.Maps["gate"].Put(uint32(0), encodeWords(uint32(p.child)+1, 0, 0, 0)); err != nil {
		t.Fatal(err)
	}
}

func gateWord(t *testing.T, g *ebpf.Map, at int) uint32 {
	t.Helper()
	b, err := g.LookupBytes(uint32(0))
	if err != nil {
		t.Fatal(err)
	}
	return binary.NativeEndian.Uint32(b[at:])
}

func arrive(t *testing.T, a *Aggregator, p *data) {
	t.Helper()
	if _, err := a.Arrive(p.encode(t, addressOf(int(p.child)).As4())); err != nil {
		t.Fatal(err)
	}
}

func expectFragment(t *testing.T, a *Aggregator, bitmap uint64, lane int32) {
	t.Helper()
	lanes := make([]uint32, 2)
	s, err := a.Fragment(0, lanes)
	if err != nil {
		t.Fatal(err)
	}
	if s.Bitmap != bitmap || int32(lanes[0]) != lane {
		t.Errorf("bitmap %b, sum %d; want %b, %d", s.Bitmap, int32(lanes[0]), bitmap, lane)
	}
}

// asked is an aggregator as its agents access it, together with the packets that they send.
type asked struct {
	*testing.T
	*Aggregator
	lost []int
}

func (k *asked) Fragment(i int, lanes []uint32) xagg.Fragment {
	f, err := k.Aggregator.Fragment(i, lanes)
	if err != nil {
		k.Fatal(err)
	}
	return f
}

func (k *asked) Fragments(n int) []xagg.Fragment {
	all, err := k.Aggregator.Fragments(n)
	if err != nil {
		k.Fatal(err)
	}
	for i, f := range all {
		if one := k.Fragment(i, nil); f != one {
			k.Errorf("fragment %d of %d is %+v, alone %+v", i, n, f, one)
		}
	}
	return all
}

func (k *asked) Emit(to program.Dest, p *program.Packet, _ []uint32) {
	if to != 1 || p.Action != xagg.Lost {
		k.Errorf("%v hears %+v", to, p)
	}
	for which := p.Bitmap; which != 0; which &= which - 1 {
		k.lost = append(k.lost, int(p.Seg)+bits.TrailingZeros64(which))
	}
}

// TestMissingFragmentReports checks the fragments that agents report missing at the ends of groups against the lost
// ones, for groups of the published and of other sizes. Fragments of another epoch are also missing.
func TestMissingFragmentReports(t *testing.T) {
	for _, group := range []int{0, 64} {
		size := cmp.Or(group, DefaultGroup)
		k := &asked{T: t, Aggregator: loadAggregator(t, AggregatorBuild{Fragments: 2*size + 5, Lanes: 2, Senders: 2, Group: group}, 2)}
		agent, err := xagg.NewAgent(program.Config{Slots: k.build.Fragments, LaneMemory: 2}, k)
		if err == nil {
			err = errors.Join(agent.SetGroup(group),
				agent.Configure(program.Job{ID: 7, Parent: true, Members: []program.Member{{Port: 0}, {Port: 1}}}))
		}
		if err != nil {
			t.Fatal(err)
		}
		lost := []int{3, size - 2, size + 1, 2*size + 2}
		for f := range k.build.Fragments {
			epoch := uint16(1)
			if f == size+1 {
				epoch = 0
			}
			if !slices.Contains(lost, f) || epoch == 0 {
				arrive(t, k.Aggregator, &data{job: 7, child: 1, epoch: epoch, fragment: uint32(f), count: 1, lanes: []int32{1, 2}})
			}
		}
		checks := 0
		for ; ; checks++ {
			c, ok, err := k.NextCheck()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			agent.CheckGroup(7, int(c.Child), c.Epoch, int(c.Fragment), k)
		}
		if d := gocmp.Diff(lost, k.lost); d != "" || checks != 3 {
			t.Errorf("groups of %d: %d checks, missing (-want +got):\n%s", size, checks, d)
		}
	}
	if _, err := LoadAggregator(AggregatorBuild{Fragments: 1, Lanes: 1, Group: 48}); err == nil {
		t.Error("groups of 48 were taken")
	}
}

// TestMovedChildrenPass sends a child's frames to addresses other than the aggregator's. It checks that they pass,
// change no sum and are counted as bypassed, and that an aggregator without addresses adds them.
func TestMovedChildrenPass(t *testing.T) {
	a := loadAggregator(t, AggregatorBuild{Fragments: 1, Lanes: 2, Senders: 2}, 2)
	own, other := netip.MustParseAddr("10.255.0.1"), netip.MustParseAddr("10.255.1.1") // encode uses own as the destination
	child := data{job: 7, child: 1, count: 1, lanes: []int32{1, 1}}
	for _, c := range []struct {
		addresses []netip.Addr
		want      Verdict
	}{{[]netip.Addr{other, other}, Pass}, {[]netip.Addr{own, other}, Pass}, {[]netip.Addr{other, own}, Drop}, {nil, Drop}} {
		if err := a.Configure(Parent{Job: 7, Children: 2, Addresses: c.addresses}); err != nil {
			t.Fatal(err)
		}
		child.epoch++
		if got, err := a.Arrive(child.encode(t, addressOf(1).As4())); err != nil || got != c.want {
			t.Errorf("own addresses %v: verdict %d, %v; want %d", c.addresses, got, err, c.want)
		}
	}
	got, err := a.Latch()
	if err != nil || got["bypassed"] != 2 || got["consumed"] != 2 {
		t.Errorf("%v, %v", got, err)
	}
	if err := a.Configure(Parent{Job: 7, Children: 3, Addresses: []netip.Addr{own, own}}); err == nil ||
		!strings.Contains(err.Error(), "2 addresses for 3 children") {
		t.Errorf("addresses for some of the children: %v", err)
	}
}
