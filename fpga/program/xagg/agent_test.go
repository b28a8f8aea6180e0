package xagg

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf/fpga/program"
)

// elsewhere is a data path as agents access it: a separate server that receives only data.
type elsewhere struct{ *Server }

func (m elsewhere) Fragment(i int, lanes []uint32) Fragment {
	t := &m.slots[i]
	copy(lanes, m.buffer(i))
	return Fragment{Epoch: t.epoch, Lanes: t.lanes, Bitmap: t.bitmap, NewestNS: t.trace.NewestNS, Inside: int(t.inside),
		Count: int(t.count)}
}

func (m elsewhere) Fragments(n int) (all []Fragment) {
	for i := range n {
		all = append(all, m.Fragment(i, nil))
	}
	return all
}

// said records what was emitted, without sums of the data path if quiet is set.
type said struct {
	quiet bool
	lines []string
}

func (s *said) Emit(to program.Dest, p *program.Packet, lanes []uint32) {
	if s.quiet && p.Kind == program.Data {
		return
	}
	s.lines = append(s.lines, fmt.Sprint(to, p.Kind, p.Action, p.Seg, p.Round, p.Bitmap, p.Value, p.Count, p.Lanes, lanes))
}

// TestAgent checks that agents with a separate model emit the same packets as a server that contains data path and
// agents, whatever arrives.
func TestAgent(t *testing.T) {
	const group = 32
	rapid.Check(t, func(t *rapid.T) {
		slots, children := rapid.SampledFrom([]int{70, 3}).Draw(t, "slots"), rapid.IntRange(1, 3).Draw(t, "children")
		cfg := program.Config{Slots: slots, LaneMemory: 2}
		job := program.Job{ID: 5, Parent: true, In: 1000, Out: 700}
		for i := range children {
			job.Members = append(job.Members, program.Member{Port: program.Port(i)})
		}
		made := func(s *Server, err error) *Server {
			if err = errors.Join(err, s.SetGroup(group), s.Configure(job)); err != nil {
				t.Fatal(err)
			}
			return s
		}
		whole, path := made(New(cfg)), made(New(cfg))
		agent := made(NewAgent(cfg, elsewhere{path}))
		epoch := uint16(65534)
		for range rapid.IntRange(1, 300).Draw(t, "packets") {
			if rapid.IntRange(0, 40).Draw(t, "renew") == 0 {
				epoch++
			}
			p := program.Packet{
				Job: 5, Kind: program.Data, Seg: rapid.Uint64Range(0, uint64(slots-1)).Draw(t, "fragment"),
				Round: epoch - rapid.Uint16Range(0, 9).Draw(t, "behind")/9, Count: 1,
				Lanes: 2, Trace: program.Trace{Vectors: 1},
			}
			from := program.Port(rapid.IntRange(0, children-1).Draw(t, "child"))
			lanes := []uint32{uint32(p.Seg), uint32(from)}
			var want, got said
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				p.Kind, p.Action, p.Value = program.Control, Ready, rapid.Uint64Range(0, 900).Draw(t, "most")
			case 1:
				p.Kind, p.Action, p.Seg = program.Control, Finished, rapid.Uint64Range(0, uint64(slots+3)).Draw(t, "sent")
			case 2:
				p.Kind, p.Action, p.Seg = program.Control, Ask, p.Seg&^63
				p.Bitmap, p.Value = rapid.Uint64().Draw(t, "missing"), uint64(p.Round-2*rapid.Uint16Range(0, 1).Draw(t, "changed"))
			case 3:
				from = program.Uplink
				p.Kind, p.Action, p.Seg = program.Control, []uint8{Rate, Lost}[rapid.IntRange(0, 1).Draw(t, "says")], p.Seg&^63
				p.Bitmap, p.Value = rapid.Uint64().Draw(t, "missing"), rapid.Uint64Range(1, 900).Draw(t, "granted")
			case 4:
				from, p.Kind = program.Uplink, program.Result
			}
			if p.Kind != program.Data {
				lanes = nil
			}
			want.quiet = p.Kind == program.Data
			class := whole.Receive(0, from, &p, lanes, &want)
			if want.quiet {
				path.Receive(0, from, &p, lanes, &said{})
				if last := int(p.Seg); (last%group == group-1 || last == slots-1) && class != Late {
					agent.CheckGroup(5, int(from), p.Round, last, &got)
				}
			} else if c := agent.Receive(0, from, &p, lanes, &got); c != class {
				t.Fatalf("%+v is %d to the server, %d to the agent", p, class, c)
			}
			if fmt.Sprint(want.lines) != fmt.Sprint(got.lines) {
				t.Fatalf("%+v: the server says %v, the agent %v", p, want.lines, got.lines)
			}
		}
	})
}

// TestAgentsIgnoreOtherGroups checks that agents leave data to their model, and that they do not know groups of others.
func TestAgentsIgnoreOtherGroups(t *testing.T) {
	m, err := New(program.Config{Slots: 4})
	if err != nil {
		t.Fatal(err)
	}
	a, err := NewAgent(program.Config{Slots: 4}, elsewhere{m})
	if err == nil {
		err = a.Configure(program.Job{ID: 1, Parent: true, Members: []program.Member{{}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	var out said
	if c := a.Receive(0, 0, &program.Packet{Kind: program.Data, Job: 1, Count: 1}, nil, &out); c != Stranger || a.CountOccupied() > 0 {
		t.Errorf("data is %d", c)
	}
	a.CheckGroup(2, 0, 0, 3, &out)
	a.CheckGroup(1, 1, 0, 3, &out)
	a.CheckGroup(1, -1, 0, 3, &out)
	a.CheckGroup(1, 0, 0, 4, &out)
	a.CheckGroup(1, 0, 0, -1, &out)
	if len(out.lines) > 0 {
		t.Errorf("it says %v", out.lines)
	}
	a.CheckGroup(1, 0, 7, 0, &out)
	a.CheckGroup(1, 0, 7, 3, &out)
	lost := func(bitmap uint64) string {
		return fmt.Sprint(program.Dest(0), program.Control, Lost, 0, 7, bitmap, 0, 0, 0, []uint32(nil))
	}
	if want := []string{lost(0b1), lost(0b1111)}; !slices.Equal(out.lines, want) {
		t.Errorf("of the first fragment and of all it says %q, want %q", out.lines, want)
	}
	for _, group := range []int{-1, 3, 48} {
		if err := a.SetGroup(group); !errors.Is(err, program.ErrConfig) {
			t.Errorf("groups of %d: %v", group, err)
		}
	}
}

// moving is a data path that changes while agents read it: it returns one fragment for the contributors and another for
// the sum.
type moving struct{ seen, read Fragment }

func (m *moving) Fragment(_ int, lanes []uint32) Fragment {
	if lanes == nil {
		return m.seen
	}
	copy(lanes, []uint32{8, 9, 10})
	return m.read
}

func (m *moving) Fragments(n int) []Fragment { return slices.Repeat([]Fragment{m.seen}, n) }

// TestAgentSendsCompleteSums checks that an agent that sends a sum that the model may have given up meanwhile sends
// what it has read, if that is complete.
func TestAgentSendsCompleteSums(t *testing.T) {
	whole := Fragment{Epoch: 3, Lanes: 2, Bitmap: 0b11, Inside: 2, Count: 2, NewestNS: 40}
	for _, c := range []struct {
		what  string
		read  Fragment
		lines []string
		again int64
	}{
		{"whole still", whole, []string{fmt.Sprint(program.Up, program.Data, 0, 1, 3, 0b11, 0, 2, 2, []uint32{8, 9})}, 1},
		{"of the next epoch, and whole", Fragment{Epoch: 4, Lanes: 1, Bitmap: 0b11, Inside: 2, Count: 5},
			[]string{fmt.Sprint(program.Up, program.Data, 0, 1, 4, 0b11, 0, 5, 1, []uint32{8})}, 1},
		{"of the next epoch, with one child", Fragment{Epoch: 4, Lanes: 2, Bitmap: 0b1, Inside: 1, Count: 1}, nil, 0},
		{"longer than the agent's memory", Fragment{Epoch: 3, Lanes: 5, Bitmap: 0b11, Inside: 2, Count: 2},
			[]string{fmt.Sprint(program.Up, program.Data, 0, 1, 3, 0b11, 0, 2, 5, []uint32{8, 9, 10})}, 1},
	} {
		a, err := NewAgent(program.Config{Slots: 4, LaneMemory: 3}, &moving{whole, c.read})
		if err == nil {
			err = a.Configure(program.Job{ID: 1, Parent: true, Members: []program.Member{{Port: 0}, {Port: 1}}})
		}
		if err != nil {
			t.Fatal(err)
		}
		var out said
		a.Receive(0, program.Uplink, &program.Packet{Kind: program.Control, Job: 1, Action: Lost, Round: 3, Bitmap: 0b10}, nil, &out)
		d := Describe()
		if again := d.CountsOf(a).Of("sums_resent"); !slices.Equal(out.lines, c.lines) || again != c.again {
			t.Errorf("%s: %d sent again, %q, want %d, %q", c.what, again, out.lines, c.again, c.lines)
		}
	}
}

// TestEpochRequests checks requests for the epoch of a job while a server gives none, when it gives one, and when there
// is none left.
func TestEpochRequests(t *testing.T) {
	s, err := New(program.Config{Slots: 4})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Configure(program.Job{ID: 5, Parent: true, Members: []program.Member{{Port: 0}, {Port: 1}}}); err != nil {
		t.Fatal(err)
	}
	question := func(p program.Packet) []string {
		var out said
		p.Kind, p.Job, p.Seg, p.Value = program.Control, 5, 77, 20
		if class := s.Receive(0, 1, &p, nil, &out); class != Controlled {
			t.Errorf("class %d", class)
		}
		return out.lines
	}
	asked := func() []string { return question(program.Packet{Action: Begin}) }
	if lines := asked(); len(lines) > 0 {
		t.Errorf("who gives none says %q", lines)
	}
	s.SetEpochs(func(child int, action uint8, vectors uint64, ticket uint32) (uint16, Answer) {
		if action == Still {
			return 12_078, Answered
		}
		return uint16(child*10_000) + uint16(vectors)*100 + uint16(ticket), Answered
	})
	want := fmt.Sprint(program.Dest(1), program.Control, First, 77, 0, 0, 12_077, 0, 0, []uint32(nil))
	if lines := asked(); len(lines) != 1 || lines[0] != want {
		t.Errorf("%q, want %q", lines, want)
	}
	if lines := question(program.Packet{Action: Still, Round: 12_077}); len(lines) != 1 ||
		lines[0] != strings.Replace(want, "12077", "12078", 1) {
		t.Errorf("of another epoch by now %q", lines)
	}
	if lines := question(program.Packet{Action: Still, Round: 12_078}); len(lines) > 0 {
		t.Errorf("of the same epoch still %q", lines)
	}
	s.SetEpochs(func(int, uint8, uint64, uint32) (uint16, Answer) { return 0, Unanswered })
	if lines := asked(); len(lines) > 0 {
		t.Errorf("a question that is not answered gets %q", lines)
	}
	s.SetEpochs(func(int, uint8, uint64, uint32) (uint16, Answer) { return 0, EpochsSpent })
	want = fmt.Sprint(program.Dest(1), program.Control, Refuse, 77, 0, 0, uint64(EpochsSpent), 0, 0, []uint32(nil))
	if lines := asked(); len(lines) != 1 || lines[0] != want {
		t.Errorf("without epochs left: %q, want the refusal %q", lines, want)
	}
}

// TestAgentNamesMissingChildren checks that the answer to a request for a fragment's result names the children that are
// missing from it, and that a server without agents does not answer.
func TestAgentNamesMissingChildren(t *testing.T) {
	s, err := New(program.Config{Slots: 4, LaneMemory: 2})
	if err != nil {
		t.Fatal(err)
	}
	job := program.Job{ID: 5, Members: []program.Member{{Port: 0}, {Port: 1}, {Port: 2}}}
	if err := s.Configure(job); err != nil {
		t.Fatal(err)
	}
	ask := func() []string {
		var out said
		s.Receive(0, 1, &program.Packet{Kind: program.Control, Action: Ask, Job: 5, Bitmap: 3, Round: 9, Value: 9}, nil, &out)
		return out.lines
	}
	lost := func(which int) string {
		return fmt.Sprint(program.Dest(1), program.Control, Lost, 0, 9, which, 0, 0, 0, []uint32(nil))
	}
	s.Receive(0, 1, &program.Packet{Kind: program.Data, Job: 5, Round: 9, Count: 1, Lanes: 2}, []uint32{1, 2}, &said{})
	if got := ask(); !slices.Equal(got, []string{lost(2)}) {
		t.Errorf("without agents the answer is %q, want %q", got, lost(2))
	}
	s.SetEpochs(func(int, uint8, uint64, uint32) (uint16, Answer) { return 0, Unanswered })
	want := fmt.Sprint(program.Dest(1), program.Control, Awaits, 0, 9, 5, 0, 0, 0, []uint32(nil))
	if got := ask(); !slices.Equal(got, []string{want, lost(2)}) {
		t.Errorf("the answer is %q, want children 0 and 2 missing and fragment 1 lost", got)
	}
}
