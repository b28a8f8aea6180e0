package xagg

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/programtest"
)

// tree is a slow, simple server with its agents. It stores, for each fragment, the newest epoch and its senders, and
// for a root the last sum. It computes rates by considering all children again each time. Its epochs do not wrap.
type tree struct {
	slots, group, children int
	parent                 bool
	epoch                  []int // by fragment; 0 before its first packet
	inside                 []map[int]bool
	sum                    []int // at a root, the epoch of the last sum
	pace                   pace
	looks, missed, again   int
	out                    []string
}

func newTree(slots, group int, j program.Job) *tree {
	n := len(j.Members)
	return &tree{
		slots: slots, group: group, children: n, parent: j.Parent, epoch: make([]int, slots), inside: make([]map[int]bool, slots),
		sum:  make([]int, slots),
		pace: pace{in: int(j.In), out: int(j.Out), most: map[int]int{}, done: map[int]bool{}, told: map[int]int{}, children: n},
	}
}

func (t *tree) say(to string, what string, epoch int, names ...int) {
	t.out = append(t.out, fmt.Sprint(to, " ", what, " of ", epoch, " ", names))
}

func port(child int) string { return fmt.Sprint("port:", child) }

func (t *tree) whole(f, epoch int) bool { return t.epoch[f] == epoch && len(t.inside[f]) == t.children }

// lacks reports whether nothing from a child arrived for an epoch, as far as that can be known.
func (t *tree) lacks(child, f, epoch int) bool {
	return t.epoch[f] < epoch || t.epoch[f] == epoch && !t.inside[f][child]
}

// look does an agent's work for the fragments from first to before end: each child with missing fragments is told, in
// packets that name as many as fit.
func (t *tree) look(child, epoch, first, end int) (all bool) {
	t.looks++
	all = true
	for ; first < end; first += NameSpan {
		var names []int
		for f := first; f < min(first+NameSpan, end); f++ {
			if t.lacks(child, f, epoch) {
				names = append(names, f)
			}
		}
		all = t.lost(child, epoch, names) && all
	}
	return all
}

// lost tells a child which fragments to send again. It reports whether there are none.
func (t *tree) lost(child, epoch int, names []int) bool {
	if t.missed += len(names); len(names) > 0 {
		t.say(port(child), "lost", epoch, names...)
	}
	return len(names) == 0
}

func (t *tree) data(child, f, epoch int) {
	switch {
	case f >= t.slots || epoch < t.epoch[f]:
		return
	case epoch > t.epoch[f]:
		t.epoch[f], t.inside[f] = epoch, map[int]bool{}
	}
	if again := t.inside[f][child]; !again {
		t.inside[f][child] = true
		if t.whole(f, epoch) && t.parent {
			t.say("up", "data", epoch, f)
		} else if t.whole(f, epoch) {
			t.sum[f] = epoch
			t.say("down", "result", epoch, f)
		}
	}
	if f%t.group == t.group-1 || f == t.slots-1 {
		t.look(child, epoch, f-f%t.group, f+1)
	}
}

func (t *tree) finished(child, epoch, sent int) {
	sent = min(sent, t.slots)
	if !t.look(child, epoch, 0, sent) {
		return
	}
	t.pace.done[child] = true
	t.divide(-1, epoch)
	t.say(port(child), "checked", epoch)
	all := true
	for f := range sent {
		all = all && t.whole(f, epoch)
	}
	if t.parent && all {
		t.say("up", fmt.Sprint("finished ", sent), epoch)
	}
}

// ask handles a request from a worker that lacks names, and whose vector used epochs first, first + 2 and so on up to
// the last.
func (t *tree) ask(child, epoch, first int, names []int) {
	var lost, on []int
	for _, f := range names {
		switch {
		case f >= t.slots:
		case !t.parent && t.sum[f] >= first && t.sum[f] <= epoch && (t.sum[f]-first)%2 == 0:
			t.say(port(child), "result", t.sum[f], f)
			t.again++
		case t.lacks(child, f, epoch):
			lost = append(lost, f)
			if t.parent && first != epoch {
				on = append(on, f)
			}
		case t.parent && t.whole(f, epoch):
			t.say("up", "data", epoch, f)
			t.again++
			on = append(on, f)
		case t.parent && (t.epoch[f] != epoch || first != epoch):
			on = append(on, f)
		}
	}
	t.lost(child, epoch, lost)
	if len(on) > 0 {
		t.say("up", fmt.Sprint("ask from ", first), epoch, on...)
	}
}

// lostAbove handles a message from the parent that sums did not arrive.
func (t *tree) lostAbove(epoch int, names []int) {
	for _, f := range names {
		if f < t.slots && t.whole(f, epoch) {
			t.say("up", "data", epoch, f)
			t.again++
		}
	}
}

// pace divides rates: in is the rate of the children's link, out that of the parent's link; 0 means no limit.
type pace struct {
	in, out, granted, epoch, children, asked int
	most                                     map[int]int // by sending child
	done                                     map[int]bool
	told                                     map[int]int
}

func (p *pace) ready(child, epoch, most int) {
	if epoch > p.epoch {
		p.epoch, p.granted, p.most, p.done = epoch, 0, map[int]int{}, map[int]bool{}
	}
	delete(p.most, child)
	if p.done[child] = false; most > 0 {
		p.most[child] = most
	}
}

// shares divides the rate among the children that send, in order of the requested rate: each gets an equal part of the
// rest, or less if it requested less.
func (p *pace) shares() map[int]int {
	shares, left := map[int]int{}, p.in
	var rest []int
	for child := range p.children {
		if p.most[child] > 0 && !p.done[child] {
			rest = append(rest, child)
		}
	}
	for len(rest) > 0 {
		humble := slices.MinFunc(rest, func(a, b int) int { return p.most[a] - p.most[b] })
		shares[humble] = p.most[humble]
		if p.in > 0 {
			shares[humble] = min(p.most[humble], left/len(rest))
		}
		left -= shares[humble]
		rest = slices.DeleteFunc(rest, func(c int) bool { return c == humble })
	}
	return shares
}

func (p *pace) computing() bool {
	for child := range p.children {
		if p.most[child] == 0 && !p.done[child] {
			return true
		}
	}
	return false
}

// least returns a rate within a limit; 0 means no limit.
func least(rate, limit int) int {
	if limit == 0 {
		return rate
	}
	return min(rate, limit)
}

// divide sends new rates to the child that asked and to children whose share has changed. It requests the resulting
// rate of sums from the parent.
func (t *tree) divide(asker, epoch int) {
	p := &t.pace
	shares, flow := p.shares(), 0
	if len(shares) > 0 && !p.computing() {
		slowest := slices.Min(slices.Collect(maps.Values(shares)))
		flow = least(slowest, p.out)
		if let := least(flow, p.granted); let < slowest {
			for c := range shares {
				shares[c] = let
			}
		}
	}
	for c := range p.children {
		if s, sends := shares[c]; sends && (c == asker || s != p.told[c]) {
			p.told[c] = s
			t.say(port(c), fmt.Sprint("rate ", s), epoch)
		}
	}
	if flow != p.asked && t.parent {
		t.say("up", fmt.Sprint("ready ", flow), epoch)
	}
	if p.asked = flow; flow == 0 {
		p.granted = 0
	}
}

// words records a server's packets in the format of the slow server, with the epoch of the first packet as 1.
type words struct {
	first uint16
	lines []string
}

func (w *words) Emit(to program.Dest, p *program.Packet, _ []uint32) {
	what, names := p.Kind.String(), []int{int(p.Seg)}
	if p.Kind == program.Control {
		names = nil
		for bit := range NameSpan {
			if p.Bitmap>>bit&1 != 0 {
				names = append(names, int(p.Seg)+bit)
			}
		}
		value := fmt.Sprint(" ", p.Value)
		switch p.Action {
		case Finished:
			value = fmt.Sprint(" ", p.Seg)
		case Ask:
			value = fmt.Sprint(" from ", int16(uint16(p.Value)-w.first)+1)
		case Lost, Checked:
			value = ""
		}
		what = map[uint8]string{Lost: "lost", Checked: "checked", Rate: "rate", Ready: "ready", Finished: "finished",
			Ask: "ask"}[p.Action] + value
	}
	w.lines = append(w.lines, fmt.Sprint(to, " ", what, " of ", int16(p.Round-w.first)+1, " ", names))
}

// script drives both servers: children send sweeps from which some packets are lost, ask, finish and request rates.
type script struct {
	t     *testing.T
	r     *rand.Rand
	slow  *tree
	s     *Server
	words words
}

func (s *script) hear(from program.Port, p program.Packet, slowly func()) {
	s.t.Helper()
	p.Job, s.words.lines, s.slow.out = 1, nil, nil
	s.s.Receive(0, from, &p, nil, &s.words)
	if slowly(); !slices.Equal(s.words.lines, s.slow.out) {
		s.t.Fatalf("%s from %d: %+v\nhave %q\nwant %q", p.Kind, from, p, s.words.lines, s.slow.out)
	}
}

// names draws some of the fragments that one packet can name. A few of them are beyond the model.
func (s *script) names() (first int, bitmap uint64, names []int) {
	first, bitmap = s.r.IntN(s.slow.slots), s.r.Uint64()
	if s.r.IntN(3) == 0 {
		first, bitmap = 0, ^uint64(0)
	}
	for bit := range NameSpan {
		if bitmap>>bit&1 != 0 {
			names = append(names, first+bit)
		}
	}
	return first, bitmap, names
}

func (s *script) step(epoch int) {
	round := func(e int) uint16 { return s.words.first + uint16(e-1) }
	of := max(1, epoch-s.r.IntN(6)/5)
	child := s.r.IntN(s.slow.children)
	from := program.Port(child)
	control := program.Packet{Kind: program.Control, Round: round(of)}
	switch what := s.r.IntN(12); {
	case what < 5: // a sweep
		first, loss := s.r.IntN(s.slow.slots), 2+s.r.IntN(9)
		if s.r.IntN(2) == 0 {
			first = 0
		}
		for f := first; f < s.slow.slots+s.r.IntN(2); f++ {
			if s.r.IntN(loss) > 0 {
				s.hear(from, program.Packet{Kind: program.Data, Seg: uint64(f), Round: round(of), Count: 1, Lanes: 1},
					func() { s.slow.data(child, f, of) })
			}
		}
	case what < 7:
		sent := s.r.IntN(s.slow.slots + 1)
		if s.r.IntN(2) == 0 {
			sent = s.slow.slots
		}
		control.Action, control.Seg = Finished, uint64(sent)
		s.hear(from, control, func() { s.slow.finished(child, of, sent) })
	case what < 9:
		first, bitmap, names := s.names()
		before := max(1, of-s.r.IntN(4))
		control.Action, control.Seg, control.Bitmap, control.Value = Ask, uint64(first), bitmap, uint64(round(before))
		s.hear(from, control, func() { s.slow.ask(child, of, before, names) })
	case what < 10:
		first, bitmap, names := s.names()
		control.Action, control.Seg, control.Bitmap = Lost, uint64(first), bitmap
		s.hear(program.Uplink, control, func() { s.slow.lostAbove(of, names) })
	case what < 11:
		most := s.r.IntN(12)
		control.Action, control.Value = Ready, uint64(most)
		s.hear(from, control, func() { s.slow.pace.ready(child, of, most); s.slow.divide(child, of) })
	default:
		granted := s.r.IntN(8)
		control.Action, control.Value = Rate, uint64(granted)
		s.hear(program.Uplink, control, func() { s.slow.pace.granted = granted; s.slow.divide(-1, of) })
	}
}

// TestAgainstSlowAgents drives servers in a tree, and roots, together with the slow server, for models that are not a
// multiple of the group or of the fragments that a packet names, and for epochs that wrap at 16 bits. It checks that
// both send the same packets in the same order and have the same counts.
func TestAgainstSlowAgents(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		slots, group := 1+r.IntN([]int{4, 70, 150}[seed%3]), 1<<r.IntN(8)
		job := program.Job{ID: 1, Parent: r.IntN(3) > 0, Members: programtest.NewMembers(1 + r.IntN(3)), In: olaf.Rate(r.IntN(20)),
			Out: olaf.Rate(r.IntN(9))}
		s := server(t, slots, job)
		if err := s.SetGroup(group); err != nil {
			t.Fatal(err)
		}
		life := script{t: t, r: r, slow: newTree(slots, group, job), s: s, words: words{first: 65533}}
		for step := range 60 {
			life.step(1 + step/10)
		}
		d := Describe()
		for name, want := range map[string]int{"groups_checked": life.slow.looks, "fragments_missed": life.slow.missed,
			"sums_resent": life.slow.again} {
			if have := d.CountsOf(s).Of(name); have != int64(want) {
				t.Errorf("seed %d: %s is %d, want %d", seed, name, have, want)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d: %d fragments in groups of %d: %+v", seed, slots, group, job)
		}
	}
}
