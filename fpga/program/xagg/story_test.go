package xagg

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/programtest"
)

// crowd returns a function that draws packets that three children, the parent or a stranger may send to a model of four
// fragments. Most are fragments of the current epoch, which wraps at 16 bits, or of epochs next to it; some are control
// packets of each kind.
func crowd(jobs int) func(*rand.Rand) (program.Port, program.Packet) {
	sent := 0
	return func(r *rand.Rand) (program.Port, program.Packet) {
		sent++
		return draw(r, jobs, uint16(65534+sent/20))
	}
}

func draw(r *rand.Rand, jobs int, epoch uint16) (program.Port, program.Packet) {
	from := program.Port(r.IntN(3))
	if r.IntN(20) == 0 {
		from = program.Port(3 + r.IntN(2))
	}
	p := program.Packet{
		Kind: program.Data, Job: olaf.ClusterID(r.IntN(jobs)), Worker: olaf.WorkerID(from), Seg: uint64(r.IntN(2)),
		Count: uint16(1 + r.IntN(3)),
		Round: epoch, Lanes: uint16(2 + r.IntN(9)/8),
	}
	if r.IntN(10) == 0 {
		p.Seg = uint64(r.IntN(6))
	}
	if r.IntN(8) == 0 {
		p.Round += uint16(r.IntN(3) - 1)
	}
	switch what := r.IntN(20); {
	case what < 2:
		from = program.Uplink
		p.Kind, p.Count = program.Result, 5
	case what < 8:
		p.Kind, p.Lanes, p.Action = program.Control, 0, uint8(1+r.IntN(11))
		if r.IntN(2) == 0 {
			p.Action = []uint8{Ready, Finished, Ask, Ask}[r.IntN(4)]
		}
		p.Bitmap, p.Value = uint64(r.IntN(16)), uint64(r.IntN(9))
		if p.Action == Ask {
			p.Value = uint64(p.Round - uint16(r.IntN(3)))
		}
		if r.IntN(4) == 0 {
			from, p.Action = program.Uplink, []uint8{Rate, Lost, Checked}[r.IntN(3)]
		}
	case what == 8:
		p.Kind = []program.Kind{program.Other, program.Ack, program.Result}[r.IntN(3)]
	case what == 9:
		p.Job = 5
	}
	return from, p
}

func TestStories(t *testing.T) {
	two := []program.Job{{ID: 0, Members: programtest.NewMembers(3), Slots: 2, In: 12},
		{ID: 1, Members: programtest.NewMembers(2), Base: 2, Slots: 2}}
	sparse := []program.Member{{Worker: 2, Port: 2}, {Worker: 0, Port: 0}}
	tree := []program.Job{{ID: 0, Members: sparse, Base: 1, Parent: true, In: 9, Out: 5}}
	grouped := Describe()
	grouped.New = func(cfg program.Config) (program.Program, error) {
		s, err := New(cfg)
		if err != nil {
			return nil, err
		}
		return s, s.SetGroup(2)
	}
	programtest.RunStories(t, grouped,
		programtest.Story{Name: "root", Config: program.Config{Slots: 4, LaneMemory: 3}, Jobs: two, Packets: 400, Draw: crowd(2)},
		programtest.Story{Name: "tree", Config: program.Config{Slots: 4, LaneMemory: 3, Profile: Wrapping, Lanes: 48}, Jobs: tree,
			Packets: 300, Draw: crowd(1)},
		programtest.Story{Name: "without-lanes", Config: program.Config{Slots: 4}, Jobs: two, Packets: 80, Draw: crowd(2)},
	)
}

func TestBounds(t *testing.T) {
	n := programtest.NewMembers
	programtest.TestBounds(t, Describe(), []program.Config{
		{Slots: 8}, {}, {Profile: Wrapping}, {Profile: "lockless"}, {Slots: 1, Lanes: 48}, {Slots: -1}, {Slots: maxSlots + 1},
		{Slots: 1, LaneMemory: olaf.MaxLanes}, {Slots: 1, LaneMemory: olaf.MaxLanes + 1}, {Slots: 1, LaneMemory: -1}, {Wrap: true},
	}, []program.Job{
		{ID: 1, Base: -1, Members: n(1)}, {ID: 1, Base: 8, Members: n(1)}, {ID: 1, Slots: 9, Members: n(1)}, {ID: 1},
		{ID: 1, Members: n(64)}, {ID: 1, Members: n(65)},
		{ID: 1, Fan: 2, Members: n(2)}, {ID: 1, Fan: 3, Members: n(2)}, {ID: 1, In: -1, Members: n(1)}, {ID: 1, Out: -1, Members: n(1)},
		{ID: 1, Members: []program.Member{{Port: 0}, {Port: -1}}}, {ID: 2, Members: n(1)}, {ID: 1, Base: 2, Slots: 3, Members: n(2)},
		{ID: 2, Base: 5, Slots: 3, Members: n(1)}, {ID: 3, Slots: 2, Members: n(1)}, {ID: 3, Slots: 3, Members: n(1)},
	})
}

// told records the control packets that leave.
type told []program.Packet

func (s *told) Emit(_ program.Dest, p *program.Packet, _ []uint32) {
	if p.Kind == program.Control {
		*s = append(*s, *p)
	}
}

// fragments returns the fragments that packets with an action name.
func (s *told) fragments(action uint8) (named []uint64) {
	for _, p := range *s {
		for bit := range uint64(NameSpan) {
			if p.Action == action && p.Bitmap>>bit&1 != 0 {
				named = append(named, p.Seg+bit)
			}
		}
	}
	return named
}

func (s *told) actions() (actions []uint8) {
	for _, p := range *s {
		actions = append(actions, p.Action)
	}
	return actions
}

func server(t interface{ Fatal(...any) }, slots int, j program.Job) *Server {
	s, err := New(program.Config{Slots: slots})
	if err = errors.Join(err, s.Configure(j)); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestMissingPartsAreNamed checks that all missing fragments of a child are named and no others, and that the parent is
// informed when none is missing any more.
func TestMissingPartsAreNamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(1, 200).Draw(t, "slots")
		s := server(t, slots, program.Job{Parent: true, Members: programtest.NewMembers(1)})
		sent := rapid.IntRange(0, slots+1).Draw(t, "sent")
		lost := rapid.SliceOfDistinct(rapid.Uint64Range(0, uint64(slots-1)), func(i uint64) uint64 { return i }).Draw(t, "lost")
		missing := slices.DeleteFunc(slices.Sorted(slices.Values(lost)), func(i uint64) bool { return i >= uint64(sent) })
		p := program.Packet{Kind: program.Data, Round: 3, Count: 1, Lanes: 1}
		for p.Seg = range uint64(min(sent, slots)) {
			if !slices.Contains(missing, p.Seg) {
				s.Receive(0, 0, &p, nil, nobody{})
			}
		}
		var said told
		s.Receive(0, 0, &program.Packet{Kind: program.Control, Action: Finished, Round: 3, Seg: uint64(sent)}, nil, &said)
		if have := said.fragments(Lost); !slices.Equal(have, missing) {
			t.Fatalf("%v are named of %d, %v are missing", have, sent, missing)
		}
		if want := []uint8{Checked, Finished}; len(missing) == 0 && !slices.Equal(said.actions(), want) {
			t.Fatalf("it says %v, want %v", said, want)
		}
	})
}

// TestPublishedGroup checks that by default the server looks for missing fragments at every 1,024th packet of a child,
// even if none is requested.
func TestPublishedGroup(t *testing.T) {
	s := server(t, 2*Group+2, program.Job{Parent: true, Members: programtest.NewMembers(1)})
	if err := s.SetGroup(0); err != nil {
		t.Fatal(err)
	}
	for i, p := 0, (program.Packet{Kind: program.Data, Round: 3, Lanes: 1}); i < s.Slots(); i++ {
		var said told
		p.Seg = uint64(i)
		if i%1000 != 1 { // 1, 1001 and 2001 are missing
			s.Receive(0, 0, &p, nil, &said)
		}
		want := map[int][]uint64{1023: {1, 1001}, 2047: {2001}}[i]
		if have := said.fragments(Lost); !slices.Equal(have, want) {
			t.Fatalf("fragment %d: %v are named, want %v", i, have, want)
		}
	}
}

// TestWithoutLanes checks that a server that does not store lanes does not emit any.
func TestWithoutLanes(t *testing.T) {
	s := server(t, 1, program.Job{Members: programtest.NewMembers(1)})
	s.Receive(0, 0, &program.Packet{Kind: program.Data, Lanes: 1}, []uint32{7}, nobody{})
	if lanes := s.Slot(0).Lanes; lanes != nil {
		t.Errorf("%v", lanes)
	}
}

// TestMemory checks that a root needs memory for the lanes twice, because it stores each fragment's last result in
// addition to the current sum, and that other servers do not.
func TestMemory(t *testing.T) {
	for parent, want := range map[bool]olaf.Size{true: 5 * (8 + 48*4), false: 5 * (8 + 2*48*4)} {
		s, err := New(program.Config{Slots: 5, Lanes: 48})
		if err = errors.Join(err, s.Configure(program.Job{Parent: parent, Members: programtest.NewMembers(1)})); err != nil {
			t.Fatal(err)
		}
		if have := s.Memory(); have != want {
			t.Errorf("below a parent %t: %d bytes, want %d", parent, have, want)
		}
	}
}

// counted records the numbers of updates in sums and results.
type counted []uint16

func (c *counted) Emit(_ program.Dest, p *program.Packet, _ []uint32) {
	if p.Kind != program.Control {
		*c = append(*c, p.Count)
	}
}

// TestCountsEndWithTheirField checks that a sum's number of updates saturates at 16 bits instead of wrapping to 0, both
// when the sum leaves and when it is sent again.
func TestCountsEndWithTheirField(t *testing.T) {
	ends := rapid.SampledFrom([]uint16{0, 1, 2, 1<<15 - 1, 1 << 15, 1<<16 - 2, 1<<16 - 1})
	rapid.Check(t, func(t *rapid.T) {
		children := rapid.SliceOfN(ends, 1, 4).Draw(t, "updates")
		parent := rapid.Bool().Draw(t, "parent")
		s := server(t, 1, program.Job{Parent: parent, Members: programtest.NewMembers(len(children))})
		var left counted
		total := 0
		for child, n := range children {
			s.Receive(0, program.Port(child), &program.Packet{Kind: program.Data, Round: 3, Count: n, Lanes: 1}, nil, &left)
			total += int(n)
		}
		s.Receive(0, 0, &program.Packet{Kind: program.Control, Action: Ask, Round: 3, Value: 3, Bitmap: 1}, nil, &left)
		want := uint16(min(total, 1<<16-1))
		if !slices.Equal(left, counted{want, want}) {
			t.Fatalf("of %v it says %v, want %d twice", children, left, want)
		}
	})
}

// TestServerFinishesWithLastChild checks that a server has finished when every fragment of the epoch that its child
// finished is complete.
func TestServerFinishesWithLastChild(t *testing.T) {
	s := server(t, 3, program.Job{Parent: true, Members: programtest.NewMembers(2)})
	for child := range program.Port(2) {
		for seg := range uint64(3) {
			s.Receive(0, child, &program.Packet{Kind: program.Data, Seg: seg, Round: 3, Lanes: 1}, nil, nobody{})
		}
		var said told
		s.Receive(0, child, &program.Packet{Kind: program.Control, Action: Finished, Round: 3, Seg: 3}, nil, &said)
		if want := []uint8{Checked, Finished}[:1+child]; !slices.Equal(said.actions(), want) {
			t.Errorf("after child %d it says %v, want %v", child, said, want)
		}
	}
}

// TestRequestsAreForwarded checks that a worker's request is forwarded to the switch that may have the results:
// requests for all fragments that are complete here go to the parent.
func TestRequestsAreForwarded(t *testing.T) {
	s := server(t, 4, program.Job{Parent: true, Members: programtest.NewMembers(1)})
	for seg := range uint64(3) {
		s.Receive(0, 0, &program.Packet{Kind: program.Data, Seg: seg, Round: 3, Lanes: 1}, nil, nobody{})
	}
	for _, first := range []uint64{3, 1} {
		var said told
		s.Receive(0, 0, &program.Packet{Kind: program.Control, Action: Ask, Round: 3, Value: first, Bitmap: 0b1111}, nil, &said)
		want := []uint64{0, 1, 2, 3}[:3+(3-first)/2]
		if have := said.fragments(Ask); !slices.Equal(have, want) || !slices.Equal(said.fragments(Lost), []uint64{3}) {
			t.Errorf("of epochs from %d it asks for %v, want %v, and says %v", first, have, want, said)
		}
	}
}

// TestResultOf checks that a result belongs to an epoch of the worker if it is one of every second epoch from the first
// to the last, also if they wrap at 16 bits.
func TestResultOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Uint16().Draw(t, "first")
		changes, at := rapid.IntRange(0, 5).Draw(t, "changes"), rapid.IntRange(-12, 12).Draw(t, "at")
		r := result{stored: true, epoch: uint16(int(first) + at)}
		want := at >= 0 && at <= 2*changes && at%2 == 0
		if have := r.inEpochs(first, first+uint16(2*changes)); have != want {
			t.Fatalf("%d changes after %d, %d on: %v", changes, first, at, have)
		}
		if r.stored = false; r.inEpochs(first, first+uint16(2*changes)) {
			t.Fatal("nothing is a result")
		}
	})
}

// TestResetForgetsResults checks that a server that was reset has no results to send and a new model.
func TestResetForgetsResults(t *testing.T) {
	s := server(t, 1, program.Job{Members: programtest.NewMembers(1)})
	send := func() program.Class {
		return s.Receive(0, 0, &program.Packet{Kind: program.Data, Round: 3, Lanes: 1}, nil, nobody{})
	}
	ask := program.Packet{Kind: program.Control, Action: Ask, Round: 3, Value: 3, Bitmap: 1}
	if c := send(); c != Completed {
		t.Fatalf("class %d", c)
	}
	var before, after said
	s.Receive(0, 0, &ask, nil, &before)
	s.Reset()
	s.Receive(0, 0, &ask, nil, &after)
	want := fmt.Sprint(program.Dest(0), program.Control, Lost, 0, 3, 1, 0, 0, 0, []uint32(nil))
	if len(before.lines) != 1 || before.lines[0] == want || len(after.lines) != 1 || after.lines[0] != want {
		t.Errorf("%q, and after the reset %q", before.lines, after.lines)
	}
	if c := send(); c != Completed {
		t.Errorf("after the reset class %d", c)
	}
}

// TestEpochsOfRates checks that the first child in a newer epoch ends the previous one, and that a child that is behind
// shares the rate and does not change the epoch. The rate granted by the parent lasts until nothing flows any more.
func TestEpochsOfRates(t *testing.T) {
	r := newRates(2, 0, 0)
	expect := func(what string, flow olaf.Rate, share ...olaf.Rate) {
		t.Helper()
		if have, _ := r.computeShares(); have != flow || !slices.Equal(r.share, share) {
			t.Errorf("%s: %v up, shares %v; want %v, %v", what, have, r.share, flow, share)
		}
	}
	r.setReady(0, 65535, 9)
	expect("the first", 0, 9, 0)
	r.setReady(1, 65535, 7)
	expect("both", 7, 9, 7)
	r.setGranted(4)
	expect("granted", 7, 4, 4)
	r.setReady(1, 65535, 0)
	expect("taken back", 0, 9, 0)
	r.setReady(1, 65534, 7)
	expect("behind, with nothing granted yet", 7, 9, 7)
	r.setGranted(4)
	r.setReady(0, 0, 9)
	expect("a newer epoch", 0, 9, 0)
	r.setReady(1, 0, 8)
	expect("both of the newer one", 8, 9, 8)
}
