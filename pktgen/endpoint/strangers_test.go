package endpoint

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/atp"
	"github.com/olafctl/olaf/fpga/program/iswitch"
	"github.com/olafctl/olaf/fpga/program/programtest"
	"github.com/olafctl/olaf/fpga/program/xagg"
	"github.com/olafctl/olaf/internal/test/golden"
)

// maker builds one kind of endpoint. The update is complete when each data packet was answered with a packet of kind
// answers; Other marks endpoints that are not handled in this way.
type maker struct {
	name    string
	make    func(Config, Host) (Endpoint, error)
	answers program.Kind
}

// makers lists all kinds of endpoints with different answers.
func makers() []maker {
	isw := func(o ISwitch) func(Config, Host) (Endpoint, error) {
		return func(c Config, h Host) (Endpoint, error) { return NewISwitchSync(c, o, h) }
	}
	ps := func(sync bool) func(Config, Host) (Endpoint, error) {
		return func(c Config, h Host) (Endpoint, error) { return NewPSServer(c, sync, h) }
	}
	return []maker{
		{"iswitch-help", isw(ISwitch{}), program.Result},
		{"iswitch-exactly", isw(ISwitch{Profile: iswitch.Exactly}), program.Result},
		{"iswitch-force", isw(ISwitch{Recovery: RecoverForce}), program.Result},
		{"iswitch-async", func(c Config, h Host) (Endpoint, error) { return NewISwitchAsync(c, Async{}, h) }, program.Result},
		{"switchml", func(c Config, h Host) (Endpoint, error) { return NewSwitchML(c, SwitchML{Slots: 2, Base: 1}, h) }, program.Result},
		{"switchml-floats", func(c Config, h Host) (Endpoint, error) { return NewSwitchML(c, SwitchML{Slots: 2, Floats: true}, h) }, program.Result},
		{"atp", func(c Config, h Host) (Endpoint, error) { return NewATPWorker(c, ATP{Window: 2}, h) }, program.Ack},
		{"atp-server", func(c Config, h Host) (Endpoint, error) { return NewATPServer(c, ATP{Window: 2}, h) }, program.Other},
		{"atp-server-batch", func(c Config, h Host) (Endpoint, error) {
			return NewATPServer(c, ATP{Profile: atp.Paper, Window: 2, Batch: 2, PerRack: 1}, h)
		}, program.Other},
		{"p4inc", func(c Config, h Host) (Endpoint, error) { return NewP4INC(c, P4INC{Base: 1, Size: 2}, h) }, program.Result},
		{"xagg", func(c Config, h Host) (Endpoint, error) { return NewXAgg(c, XAgg{}, h) }, program.Result},
		{"xagg-rates", func(c Config, h Host) (Endpoint, error) {
			c.Line = olaf.Gbps
			return NewXAgg(c, XAgg{Epoch: 5}, h)
		}, program.Other},
		{"ps", NewPSWorker, program.Result},
		{"ps-server-sync", ps(true), program.Other},
		{"ps-server-async", ps(false), program.Other},
		{"ring", NewRing, program.Other},
		{"olaf", func(c Config, h Host) (Endpoint, error) { return NewOpenWorker(c, Olaf{Timeout: olaf.Millisecond}, h) }, program.Other},
		{"olaf-server", func(c Config, h Host) (Endpoint, error) { return NewOpenServer(c, Olaf{}, h) }, program.Other},
	}
}

// clerk is a host that records each request in a word or two.
type clerk struct {
	said []string
	owes int              // number of requested updates
	data []program.Packet // data packets that were sent
}

func (c *clerk) Compute(vector uint32) { c.said = append(c.said, fmt.Sprint("compute ", vector)) }
func (c *clerk) Message()              { c.said = append(c.said, "message") }
func (c *clerk) Apply(a *Aggregate) {
	c.owes++
	c.said = append(c.said, fmt.Sprintf("apply %d of %d, torn %t", a.Number, a.Vectors, a.Torn))
}

func (c *clerk) Send(to Peer, p *program.Packet, lanes []uint32) olaf.Time {
	c.said = append(c.said, fmt.Sprintf("to %d %s", to, programtest.FormatPacket(program.Wrapping, p, lanes)))
	if p.Kind == program.Data {
		c.data = append(c.data, *p)
	}
	return 0
}

// Stages of an endpoint with one update.
const (
	computing = iota
	hasSent
	hasOne // has received one packet of the sum
	isDone
)

// made returns an endpoint at a stage. It is one of two, with a vector of three packets.
func (m maker) made(t *testing.T, stage int) (*clerk, Endpoint) {
	t.Helper()
	c := new(clerk)
	e, err := m.make(Config{Job: 1, Worker: 1, Workers: 2, Layout: Layout{Values: 3, PerPacket: 1}, Updates: 1}, c)
	if err != nil {
		t.Fatal(err)
	}
	e.Start(0)
	if stage > computing {
		e.OnComputed(1000, []uint32{1, 2, 3})
	}
	for e.Next() <= 1000 {
		e.Timer(1000)
	}
	for stage > hasSent && len(c.data) > 0 {
		p := c.data[0]
		c.data, p.Kind = c.data[1:], m.answers
		e.Receive(2000, &p, []uint32{9})
		if stage == hasOne {
			break
		}
	}
	if stage == isDone {
		e.OnApplied(2000)
	}
	if (stage == isDone) != e.Done() {
		t.Fatalf("%s is done at stage %d: %t", m.name, stage, e.Done())
	}
	c.said = nil
	return c, e
}

// edges returns packets at and far beyond every limit that an endpoint with three packets checks.
func edges() (all []program.Packet) {
	segs := []uint64{0, 1, 2, 3, 4, 1 << 32, 1<<63 - 1, 1 << 63, math.MaxUint64}
	one := program.NewTrace(0, 0, 7)
	for _, seg := range segs {
		for _, index := range []uint32{0, 1, 2, 3, math.MaxUint32} {
			for _, round := range []uint16{0, 1, math.MaxUint16} {
				all = append(all, program.Packet{Kind: program.Result, Seg: seg, Index: index, Round: round, Lanes: 1, Trace: one})
			}
			for _, worker := range []olaf.WorkerID{0, 1, 2, math.MaxUint16} {
				all = append(all, program.Packet{Kind: program.Data, Seg: seg, Index: index, Worker: worker, Count: 1, Bitmap: 1<<rackShift | 1, Lanes: 1, Trace: one})
			}
		}
		for _, count := range []uint16{1, 2} {
			for _, flags := range []program.Flags{0, program.Overflow, program.Overflow | program.Resend, program.Collision} {
				all = append(all, program.Packet{Kind: program.Ack, Seg: seg, Worker: 1, Count: count, Flags: flags, Lanes: 1, Trace: one},
					program.Packet{Kind: program.Data, Seg: seg, Count: count, Flags: flags, Bitmap: 3<<rackShift | 3, Lanes: 1, Trace: one})
			}
		}
		for action := range uint8(9) {
			for _, round := range []uint16{0, 1, 5, math.MaxUint16} {
				for _, value := range []uint64{0, 1, 1 << 15} {
					all = append(all, program.Packet{Kind: program.Control, Action: action, Seg: seg, Round: round, Value: value, Bitmap: 5})
				}
			}
		}
	}
	return append(all, program.Packet{Kind: program.Other})
}

// outcome describes the effect of one packet, including the update that it completes and the timer that it sets, as
// requests, counters and the next timer.
func outcome(c *clerk, e Endpoint, p *program.Packet) string {
	var lanes []uint32
	if p.Lanes > 0 {
		lanes = []uint32{40}
	}
	before, wakes := slices.Clone(e.Counts()), e.Next()
	c.owes = 0
	e.Receive(3000, p, lanes)
	if c.owes > 0 {
		e.OnApplied(4000)
	}
	next := e.Next()
	if next != wakes && next != Never {
		e.Timer(next)
	}
	words := slices.Clone(c.said)
	for i, n := range e.Counts() {
		if n != before[i] {
			words = append(words, fmt.Sprintf("%s %+d", Describe().Counters[i].Name, int64(n-before[i])))
		}
	}
	if next != wakes {
		words = append(words, fmt.Sprint("wakes at ", next))
	}
	return cmp.Or(strings.Join(words, "; "), "nothing")
}

// TestPacketsAtAllLimits checks the effects of packets at all limits on every kind of endpoint while it computes, after
// it has sent, and when it is done. Common effects are only counted.
func TestPacketsAtAllLimits(t *testing.T) {
	var text bytes.Buffer
	for _, m := range makers() {
		for stage, name := range []string{"computes", "has sent", "has one packet", "is done"} {
			if stage > hasSent && m.answers == program.Other {
				continue
			}
			by := map[string][]string{}
			for _, p := range edges() {
				c, e := m.made(t, stage)
				what := outcome(c, e, &p)
				p.Trace = program.Trace{}
				by[what] = append(by[what], programtest.FormatPacket(program.Wrapping, &p, nil))
			}
			fmt.Fprintf(&text, "%s %s\n", m.name, name)
			for _, what := range slices.Sorted(maps.Keys(by)) {
				fmt.Fprintf(&text, "  %d: %s\n", len(by[what]), what)
				if len(by[what]) <= 16 {
					fmt.Fprintf(&text, "    %s\n", strings.Join(by[what], "\n    "))
				}
			}
		}
	}
	golden.Equal(t, "edges.txt", text.Bytes())
}

// TestTimersWithoutPackets checks the timers of every kind of endpoint, and their effects, when no packet arrives.
// Equal timers in a row are only counted.
func TestTimersWithoutPackets(t *testing.T) {
	checked := &program.Packet{Kind: program.Control, Action: xagg.Checked}
	var text bytes.Buffer
	for _, m := range makers() {
		for _, first := range []*program.Packet{nil, checked} {
			c, e := m.made(t, hasSent)
			if first != nil {
				checked.Round = 0
				e.Receive(1000, first, nil)
				c.said = nil
			}
			fmt.Fprintln(&text, m.name, first != nil)
			now, last, times := olaf.Time(1000), "", 0
			for range 20 {
				next := e.Next()
				if next == Never {
					break
				}
				e.Timer(next)
				line := fmt.Sprint(olaf.Duration(next-now), " later: ", strings.Join(c.said, "; "))
				now, c.said = next, nil
				if line != last && times > 0 {
					fmt.Fprintf(&text, "  %d times %s\n", times, last)
					times = 0
				}
				last = line
				times++
			}
			fmt.Fprintf(&text, "  %d times %s\n  wakes at %d\n", times, last, e.Next())
		}
	}
	golden.Equal(t, "silences.txt", text.Bytes())
}

// TestEarlyWakes checks early timer calls for endpoints that check the time themselves.
func TestEarlyWakes(t *testing.T) {
	for _, m := range makers() {
		if !slices.Contains([]string{"olaf", "xagg", "switchml"}, m.name) {
			continue
		}
		c, e := m.made(t, hasSent)
		next := e.Next()
		if e.Timer(next - 1); len(c.said) > 0 || e.Next() != next {
			t.Errorf("%s, woken early: %q, next at %s, want %s", m.name, c.said, e.Next(), next)
		}
		if e.Timer(next); len(c.said) == 0 {
			t.Errorf("%s does nothing in time", m.name)
		}
		c, e = m.made(t, computing)
		if e.Timer(next); len(c.said) > 0 || e.Next() != Never {
			t.Errorf("%s, woken without anything on its way: %q, next at %s", m.name, c.said, e.Next())
		}
	}
}

// TestPoolPatience checks that the timeout doubles every hundred timeouts, up to twenty times.
func TestPoolPatience(t *testing.T) {
	m := maker{make: func(c Config, h Host) (Endpoint, error) { return NewSwitchML(c, SwitchML{Slots: 1, Timeout: 3}, h) }}
	_, e := m.made(t, hasSent)
	now := olaf.Time(0)
	for k := range 2300 {
		if have, want := olaf.Duration(e.Next()-max(now, 1000)), olaf.Duration(3)<<min(k/100, 20); have != want {
			t.Fatalf("after %d timeouts it waits %s, want %s", k, have, want)
		}
		now = e.Next()
		e.Timer(now)
	}
}

// TestXAggRequestsMissingResults checks that XAgg requests missing results, beginning with the first, 64 per packet and
// at most 16 packets at a time.
func TestXAggRequestsMissingResults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20*xagg.NameSpan).Draw(t, "packets")
		d := new(desk)
		e, err := NewXAgg(Config{Workers: 1, Layout: Layout{Values: n, PerPacket: 1}, Updates: 1}, XAgg{}, d)
		if err != nil {
			t.Fatal(err)
		}
		e.Start(0)
		e.OnComputed(0, nil)
		e.Timer(0)
		missing := map[uint64]bool{}
		for i := range uint64(n) {
			missing[i] = true
		}
		here := rapid.SliceOf(rapid.IntRange(0, n-1)).Draw(t, "here")
		for i := range rapid.IntRange(0, n).Draw(t, "all below") {
			here = append(here, i)
		}
		for _, i := range here {
			if len(missing) > 1 {
				delete(missing, uint64(i))
				e.Receive(1, &program.Packet{Kind: program.Result, Seg: uint64(i)}, nil)
			}
		}
		var want []uint64
		first := slices.Min(slices.Collect(maps.Keys(missing))) / xagg.NameSpan
		for i := range uint64(n) {
			if missing[i] && i/xagg.NameSpan < first+16 {
				want = append(want, i)
			}
		}
		e.Receive(1, &program.Packet{Kind: program.Control, Action: xagg.Checked}, nil)
		d.takeSent()
		w := e.(*treeWorker)
		w.ask()
		var have []uint64
		for _, p := range d.takeSent() {
			for bit := range uint64(xagg.NameSpan) {
				if p.Bitmap>>bit&1 == 1 {
					have = append(have, p.Seg+bit)
				}
			}
			if p.Seg%xagg.NameSpan != 0 || p.Bitmap == 0 || p.Action != xagg.Ask {
				t.Fatalf("%+v", p)
			}
		}
		if w.idle() { // one packet is enough to show a loss
			want = want[:min(len(want), xagg.NameSpan)]
		}
		if !slices.Equal(have, want) {
			t.Fatalf("of %d packets without %d, %d are asked for, not %d", n, len(missing), len(have), len(want))
		}
	})
}
