package endpoint

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/atp"
	"github.com/olafctl/olaf/fpga/program/iswitch"
	"github.com/olafctl/olaf/fpga/program/p4inc"
	"github.com/olafctl/olaf/fpga/program/programtest"
	"github.com/olafctl/olaf/fpga/program/switchml"
	"github.com/olafctl/olaf/fpga/program/xagg"
	"github.com/olafctl/olaf/internal/test/golden"
)

// yard is a small network with one switch that records all requests of its endpoints. Depending on the seed, packets
// are lost and repeated, and stray packets arrive.
type yard struct {
	r              *rand.Rand
	text           bytes.Buffer
	now            olaf.Time
	queue          []event
	ends           []Endpoint // workers, then the server if there is one
	workers        int
	program        program.Program
	arithmetic     program.Arithmetic
	loss, doubling float64
	strays         int
	values         bool    // are carried
	floats         bool    // values are converted from float32 to integers
	marks          float64 // share of packets with a congestion mark at the server
	layout         Layout
	free           []olaf.Time // when each host's link is free
}

type event struct {
	at olaf.Time
	do func()
}

const microsecond = olaf.Microsecond

// at schedules an action; actions for the same time run in the order of their scheduling.
func (y *yard) at(t olaf.Time, do func()) {
	i := len(y.queue)
	for i > 0 && y.queue[i-1].at > t {
		i--
	}
	y.queue = slices.Insert(y.queue, i, event{t, do})
}

func (y *yard) say(format string, args ...any) { fmt.Fprintf(&y.text, format, args...) }

// run advances time until everything is done or nothing happens any more; endless timers are cut off.
func (y *yard) run() {
	for _, e := range y.ends {
		e.Start(0)
	}
	for range y.strays {
		y.at(olaf.Time(y.r.Int64N(int64(200*microsecond))), y.stray)
	}
	for range 3000 {
		who, due := -1, Never
		for i, e := range y.ends {
			if e.Next() < due {
				who, due = i, e.Next()
			}
		}
		switch {
		case len(y.queue) > 0 && y.queue[0].at <= due:
			next := y.queue[0]
			y.queue = y.queue[1:]
			y.now = next.at
			next.do()
		case due != Never:
			y.now = max(y.now, due)
			y.say("%s %d: timer\n", y.now, who)
			y.ends[who].Timer(y.now)
		default:
			return
		}
	}
	y.say("cut off\n")
}

// stray returns a packet that no endpoint sent.
func (y *yard) stray() {
	to := y.r.IntN(len(y.ends))
	kinds := []program.Kind{program.Control, program.Control, program.Control, program.Result, program.Result, program.Data, program.Ack, program.Other}
	actions := []uint8{iswitch.Help, iswitch.Help, iswitch.Reset, iswitch.Reset, uint8(y.r.IntN(9))}
	p := program.Packet{
		Kind: kinds[y.r.IntN(len(kinds))], Action: actions[y.r.IntN(len(actions))], Seg: uint64(y.r.IntN(y.layout.Packets() + 2)), Round: uint16(y.r.IntN(3)),
		Worker: olaf.WorkerID(y.r.IntN(y.workers + 1)), Lanes: 1, Flags: program.Flags(y.r.IntN(2)) * program.Set1,
		Trace: program.NewTrace(0, uint32(y.r.IntN(3)), 0),
	}
	if p.Index = uint32(p.Seg % 2); y.r.IntN(2) == 0 {
		p.Index = uint32(y.r.IntN(6))
	}
	y.say("%s %d: stray %s\n", y.now, to, programtest.FormatPacket(y.arithmetic, &p, nil))
	y.ends[to].Receive(y.now, &p, nil)
}

// renew simulates a change of the tree: the switch loses its contents, and workers resend.
func (y *yard) renew(t *testing.T, change uint64) {
	if err := y.program.Configure(program.Job{ID: 3, Members: programtest.NewMembers(y.workers)}); err != nil {
		t.Error(err)
	}
	for _, e := range y.ends {
		for range 2 {
			e.Receive(y.now, &program.Packet{Kind: program.Control, Action: xagg.Renew, Value: change}, nil)
		}
	}
}

// travel delivers a packet, unless it is lost.
func (y *yard) travel(leaves olaf.Time, to int, p *program.Packet, lanes []uint32) {
	copied, kept := *p, slices.Clone(lanes)
	if to == y.workers && y.marks > 0 && y.r.Float64() < y.marks {
		copied.Flags |= program.ECN
	}
	times := 1
	switch draw := y.r.Float64(); {
	case draw < y.loss:
		y.say("  lost to %d\n", to)
		times = 0
	case draw < y.loss+y.doubling:
		times = 2
	}
	for i := range times {
		y.at(leaves.Add(olaf.Duration(5+3*i)*microsecond), func() {
			y.ends[to].Receive(y.now, &copied, kept)
		})
	}
}

// Emit implements program.Out for the switch.
func (y *yard) Emit(to program.Dest, p *program.Packet, lanes []uint32) {
	y.say("%s switch to %s: %s\n", y.now, to, programtest.FormatPacket(y.arithmetic, p, lanes))
	if to == program.Up {
		y.travel(y.now, y.workers, p, lanes)
		return
	}
	for w := range y.workers {
		if to == program.Down || to == program.Dest(w) || to == program.Others && program.Dest(w) != program.Dest(p.Worker) {
			y.travel(y.now, w, p, lanes)
		}
	}
}

// host is the environment of one endpoint.
type host struct {
	y  *yard
	me int
}

func (h host) Compute(vector uint32) {
	y := h.y
	y.say("%s %d: compute %d\n", y.now, h.me, vector)
	var values []uint32
	if y.values {
		values = make([]uint32, y.layout.Values)
		for i := range values {
			if values[i] = uint32(100*h.me + int(vector) + i); y.arithmetic == program.Float32 || y.floats {
				values[i] = math.Float32bits(float32(values[i]))
			}
		}
	}
	y.at(y.now.Add(olaf.Duration(20+y.r.IntN(30))*microsecond), func() { y.ends[h.me].OnComputed(y.now, values) })
}

func (h host) Message() { h.y.say("%s %d: message\n", h.y.now, h.me) }

func (h host) Send(to Peer, p *program.Packet, lanes []uint32) olaf.Time {
	y := h.y
	name := map[Peer]string{Network: "network", Server: "server"}[to]
	if name == "" {
		name = fmt.Sprint(to)
	}
	y.say("%s %d to %s: %s\n", y.now, h.me, name, programtest.FormatPacket(y.arithmetic, p, lanes))
	y.free[h.me] = max(y.free[h.me], y.now).Add(microsecond)
	left := y.free[h.me]
	switch {
	case to == Server || to == Network && y.program == nil && h.me < y.workers:
		y.travel(left, y.workers, p, lanes)
	case to == Network && y.program == nil:
		for w := range y.workers {
			y.travel(left, w, p, lanes)
		}
	case to >= 0:
		y.travel(left, int(to), p, lanes)
	case y.r.Float64() < y.loss:
		y.say("  lost to the switch\n")
	default:
		copied, kept := *p, slices.Clone(lanes)
		from := program.Port(h.me)
		if h.me == y.workers {
			from = program.Uplink
		}
		y.at(left.Add(5*microsecond), func() { y.program.Receive(y.now, from, &copied, kept, y) })
	}
	return left
}

func (h host) Apply(a *Aggregate) {
	y := h.y
	p := program.Packet{Trace: a.Trace}
	shown := y.arithmetic
	if y.floats {
		shown = program.Float32
	}
	y.say("%s %d: apply %d of %d, torn %t: %s\n", y.now, h.me, a.Number, a.Vectors, a.Torn, programtest.FormatPacket(shown, &p, a.Values))
	if a.First != 0 || a.Vector != 0 || a.Reward != 0 {
		y.say("  from %d on, vector %d of worker %d in job %d, reward %d\n", a.First, a.Vector, a.Worker, a.Job, a.Reward)
	}
	y.at(y.now.Add(10*microsecond), func() { y.ends[h.me].OnApplied(y.now) })
}

// story is a job in a yard.
type story struct {
	name           string
	workers        int
	layout         Layout
	updates        uint32
	loss, doubling float64
	strays         int
	values, floats bool
	marks          float64
	squatters      int // aggregators permanently occupied by another job
	changes        int // changes of the tree; each worker is notified twice
	program        func(program.Job) (program.Program, error)
	arithmetic     program.Arithmetic
	worker         func(Config, Host) (Endpoint, error)
	server         func(Config, Host) (Endpoint, error)
	exactly        bool // every sum has one contribution from each worker, despite losses
}

func (s *story) tell(t *testing.T, seed uint64) *yard {
	t.Helper()
	y := &yard{
		r: rand.New(rand.NewPCG(seed, 14)), workers: s.workers, loss: s.loss, doubling: s.doubling, strays: s.strays, values: s.values, floats: s.floats, marks: s.marks,
		layout: s.layout, arithmetic: s.arithmetic, free: make([]olaf.Time, s.workers+1),
	}
	if s.program != nil {
		p, err := s.program(program.Job{ID: 3, Members: programtest.NewMembers(s.workers)})
		if err != nil {
			t.Fatal(err)
		}
		y.program = p
	}
	for i := range s.changes {
		y.at(olaf.Time(0).Add(olaf.Duration(50+90*i)*microsecond), func() { y.renew(t, uint64(i+1)) })
	}
	for i := range s.squatters {
		y.program.Receive(0, 0, &program.Packet{Kind: program.Data, Job: 4, Seg: 1, Index: uint32(i), Bitmap: 1, Fan: 2, Lanes: 1}, nil, y)
	}
	build := func(make func(Config, Host) (Endpoint, error), me int) {
		e, err := make(Config{Job: 3, Worker: olaf.WorkerID(me), Workers: s.workers, Layout: s.layout, Updates: s.updates}, host{y, me})
		if err != nil {
			t.Fatal(err)
		}
		y.ends = append(y.ends, e)
	}
	for w := range s.workers {
		build(s.worker, w)
	}
	if s.server != nil {
		build(s.server, s.workers)
	}
	y.run()
	ledger := Describe()
	for i, e := range y.ends {
		y.say("%d: done %t, next %t", i, e.Done(), e.Next() == Never)
		counts := olaf.NewCounts(ledger)
		for c, n := range e.Counts() {
			if counts.SetAt(c, int64(n)); n > 0 {
				y.say(" %s=%d", ledger.Counters[c].Name, n)
			}
		}
		y.say("\n")
		if err := counts.Balance(); err != nil {
			t.Error(err)
		}
		if bad := e.Counts()[inexact] + e.Counts()[torn]; s.exactly && (bad > 0 || !e.Done()) {
			t.Errorf("seed %d: worker %d is done: %t, with %d packets or updates that are no exact sum", seed, i, e.Done(), bad)
		}
	}
	return y
}

func stories() []story {
	sw := func(profile string, slots int, wrap bool) func(program.Job) (program.Program, error) {
		return func(j program.Job) (program.Program, error) {
			p, err := iswitch.New(program.Config{Profile: profile, Slots: slots, LaneMemory: 4, Wrap: wrap})
			if err != nil {
				return nil, err
			}
			return p, p.Configure(j)
		}
	}
	pool := func(j program.Job) (program.Program, error) {
		p, err := switchml.New(program.Config{Slots: 2, LaneMemory: 4})
		if err != nil {
			return nil, err
		}
		return p, p.Configure(j)
	}
	sync := func(o ISwitch) func(Config, Host) (Endpoint, error) {
		o.Timeout = 40 * microsecond
		return func(c Config, h Host) (Endpoint, error) { return NewISwitchSync(c, o, h) }
	}
	async := func(o Async) func(Config, Host) (Endpoint, error) {
		return func(c Config, h Host) (Endpoint, error) { return NewISwitchAsync(c, o, h) }
	}
	ml := func(c Config, h Host) (Endpoint, error) {
		return NewSwitchML(c, SwitchML{Slots: 2, Timeout: 40 * microsecond}, h)
	}
	segment := func(j program.Job) (program.Program, error) {
		p, err := p4inc.New(program.Config{Slots: 4, LaneMemory: 4})
		if err != nil {
			return nil, err
		}
		return p, p.Configure(j)
	}
	inc := func(window int) func(Config, Host) (Endpoint, error) {
		return func(c Config, h Host) (Endpoint, error) {
			return NewP4INC(c, P4INC{Size: 2, Window: window, Timeout: 40 * microsecond}, h)
		}
	}
	server := func(sync bool) func(Config, Host) (Endpoint, error) {
		return func(c Config, h Host) (Endpoint, error) { return NewPSServer(c, sync, h) }
	}
	table := func(profile string) func(program.Job) (program.Program, error) {
		return func(j program.Job) (program.Program, error) {
			p, err := atp.New(program.Config{Profile: profile, Slots: 6, LaneMemory: 4})
			if err != nil {
				return nil, err
			}
			return p, p.Configure(j)
		}
	}
	aggregated := func(o ATP) (worker, server func(Config, Host) (Endpoint, error)) {
		o.Aggregators, o.FirstTimeout, o.Timeout = cmp.Or(o.Aggregators, 6), 90*microsecond, 40*microsecond
		return func(c Config, h Host) (Endpoint, error) { return NewATPWorker(c, o, h) },
			func(c Config, h Host) (Endpoint, error) { return NewATPServer(c, o, h) }
	}
	atpStory := func(s story, o ATP) story {
		s.worker, s.server = aggregated(o)
		s.arithmetic = program.Sticky
		return s
	}
	tree := func(j program.Job) (program.Program, error) {
		p, err := xagg.New(program.Config{Slots: 300, LaneMemory: 4})
		if err != nil {
			return nil, err
		}
		return p, errors.Join(p.SetGroup(4), p.Configure(j))
	}
	child := func(o XAgg, line olaf.Rate) func(Config, Host) (Endpoint, error) {
		o.Timeout, o.Overhead = 40*microsecond, 40
		return func(c Config, h Host) (Endpoint, error) {
			c.Line = line
			return NewXAgg(c, o, h)
		}
	}
	open := func(o Olaf) func(Config, Host) (Endpoint, error) {
		return func(c Config, h Host) (Endpoint, error) {
			if o.Gate != nil {
				o.Gate = &every{n: 2}
			}
			return NewOpenWorker(c, o, h)
		}
	}
	openServer := func(c Config, h Host) (Endpoint, error) { return NewOpenServer(c, Olaf{}, h) }
	long := Layout{Values: 540, PerPacket: 2}
	five := Layout{Values: 9, PerPacket: 2, Messages: 2}
	f := program.Float32
	return []story{
		{name: "iswitch-help", workers: 3, layout: five, updates: 3, loss: .08, values: true, program: sw("", 8, false), arithmetic: f, worker: sync(ISwitch{})},
		{name: "iswitch-force", workers: 3, layout: five, updates: 3, loss: .12, values: true, program: sw("", 8, false), arithmetic: f, worker: sync(ISwitch{Recovery: RecoverForce})},
		{name: "iswitch-force-bare", workers: 2, layout: five, updates: 2, loss: .2, program: sw("", 8, false), arithmetic: f, worker: sync(ISwitch{Recovery: RecoverForce})},
		{name: "iswitch-force-wrap", workers: 2, layout: five, updates: 2, loss: .15, values: true, program: sw("", 3, true), arithmetic: f, worker: sync(ISwitch{Ahead: 3, Wrap: true, Recovery: RecoverForce})},
		{name: "iswitch-exactly-deaf", workers: 2, layout: five, updates: 1, loss: .6, program: sw(iswitch.Exactly, 8, false), arithmetic: f, worker: sync(ISwitch{Profile: iswitch.Exactly})},
		{name: "iswitch-none", workers: 3, layout: five, updates: 2, loss: .02, program: sw("", 8, false), arithmetic: f, worker: sync(ISwitch{Recovery: RecoverNone})},
		{name: "iswitch-wrap", workers: 3, layout: five, updates: 2, values: true, program: sw("", 3, true), arithmetic: f, worker: sync(ISwitch{Ahead: 3, Wrap: true})},
		{name: "iswitch-exactly", workers: 3, layout: five, updates: 3, loss: .1, doubling: .1, values: true, program: sw(iswitch.Exactly, 8, false), arithmetic: f, worker: sync(ISwitch{Profile: iswitch.Exactly}), exactly: true},
		{name: "iswitch-exactly-strays", workers: 2, layout: five, updates: 4, loss: .05, strays: 60, program: sw(iswitch.Exactly, 8, false), arithmetic: f, worker: sync(ISwitch{Profile: iswitch.Exactly})},
		{name: "iswitch-strays", workers: 2, layout: five, updates: 4, loss: .02, strays: 60, program: sw("", 8, false), arithmetic: f, worker: sync(ISwitch{})},
		{name: "iswitch-async", workers: 3, layout: Layout{Values: 5, PerPacket: 2}, updates: 4, values: true, program: sw("", 8, false), arithmetic: f, worker: async(Async{Bound: 1})},
		{name: "iswitch-async-fresh", workers: 2, layout: Layout{Values: 5, PerPacket: 2, Messages: 3}, updates: 4, strays: 25, program: sw("", 3, false), arithmetic: f, worker: async(Async{Slots: 3})},
		{name: "switchml", workers: 3, layout: five, updates: 3, loss: .1, doubling: .1, values: true, program: pool, arithmetic: program.Wrapping, worker: ml, exactly: true},
		{name: "switchml-strays", workers: 2, layout: five, updates: 4, loss: .05, strays: 60, program: pool, arithmetic: program.Wrapping, worker: ml},
		{name: "server-sync", workers: 3, layout: five, updates: 2, values: true, arithmetic: f, worker: NewPSWorker, server: server(true), strays: 20},
		{name: "server-async", workers: 3, layout: five, updates: 2, values: true, arithmetic: f, worker: NewPSWorker, server: server(false), strays: 20},
		{name: "server-bare", workers: 2, layout: five, updates: 2, arithmetic: f, worker: NewPSWorker, server: server(false)},
		{name: "ring", workers: 3, layout: five, updates: 2, values: true, arithmetic: f, worker: NewRing, exactly: true},
		{name: "ring-strays", workers: 4, layout: Layout{Values: 9, PerPacket: 2, Messages: 2}, updates: 2, arithmetic: f, worker: NewRing, strays: 30},
		{name: "p4inc", workers: 3, layout: five, updates: 3, loss: .1, doubling: .1, values: true, program: segment, arithmetic: program.Wrapping, worker: inc(2), exactly: true},
		{name: "p4inc-marked", workers: 3, layout: five, updates: 3, values: true, program: segment, arithmetic: program.Wrapping, worker: inc(5), exactly: true},
		{name: "p4inc-strays", workers: 2, layout: five, updates: 4, loss: .05, strays: 60, program: segment, arithmetic: program.Wrapping, worker: inc(2)},
		{
			name: "switchml-floats", workers: 3, layout: five, updates: 3, loss: .1, doubling: .1, values: true, floats: true, program: pool, arithmetic: program.Wrapping, exactly: true,
			worker: func(c Config, h Host) (Endpoint, error) {
				return NewSwitchML(c, SwitchML{Slots: 2, Timeout: 40 * microsecond, Floats: true}, h)
			},
		},
		atpStory(story{name: "atp", workers: 3, layout: five, updates: 3, loss: .1, doubling: .1, values: true, program: table(""), exactly: true}, ATP{Window: 3}),
		atpStory(story{name: "atp-met", workers: 2, layout: five, updates: 3, values: true, program: table(""), squatters: 5, exactly: true}, ATP{Window: 2}),
		atpStory(story{name: "atp-paper", workers: 3, layout: Layout{Values: 15, PerPacket: 2}, updates: 3, loss: .1, values: true, program: table(atp.Paper), exactly: true}, ATP{Profile: atp.Paper, Window: 6}),
		atpStory(story{name: "atp-marked", workers: 2, layout: Layout{Values: 40, PerPacket: 2}, updates: 2, marks: .3, program: table(""), exactly: true}, ATP{Window: 6, Congestion: true}),
		atpStory(story{name: "atp-floats", workers: 3, layout: five, updates: 2, loss: .1, values: true, floats: true, program: table(""), exactly: true}, ATP{Window: 3, Fixed: Fixed{Scale: 1e7}}),
		atpStory(story{name: "atp-alone", workers: 5, layout: five, updates: 2, loss: .1, doubling: .1, values: true, exactly: true}, ATP{Profile: atp.Paper, Window: 3, PerRack: 2, Batch: 3}),
		atpStory(story{name: "atp-strays", workers: 2, layout: five, updates: 4, loss: .05, strays: 60, program: table("")}, ATP{Window: 3}),
		{name: "xagg", workers: 3, layout: five, updates: 3, loss: .1, doubling: .1, values: true, program: tree, arithmetic: program.Saturating, worker: child(XAgg{Epoch: 65_534}, 0), exactly: true},
		{name: "xagg-rates", workers: 2, layout: five, updates: 2, loss: .1, values: true, floats: true, program: tree, arithmetic: program.Saturating, worker: child(XAgg{Fixed: Fixed{Scale: XAggScale / 100}}, 100*olaf.Mbps), exactly: true},
		{name: "xagg-long", workers: 2, layout: long, updates: 1, loss: .02, program: tree, arithmetic: program.Saturating, worker: child(XAgg{}, 0), exactly: true},
		{name: "xagg-renewed", workers: 2, layout: five, updates: 3, loss: .05, values: true, changes: 5, program: tree, arithmetic: program.Saturating, worker: child(XAgg{}, 0), exactly: true},
		{name: "xagg-deaf", workers: 2, layout: Layout{Values: 140, PerPacket: 2}, updates: 1, loss: .6, program: tree, arithmetic: program.Saturating, worker: child(XAgg{}, 0)},
		{name: "xagg-strays", workers: 2, layout: five, updates: 4, loss: .05, strays: 90, program: tree, arithmetic: program.Saturating, worker: child(XAgg{}, 100*olaf.Mbps)},
		{name: "olaf", workers: 3, layout: five, updates: 4, values: true, arithmetic: f, worker: open(Olaf{Gate: &every{}}), server: openServer},
		{name: "olaf-again", workers: 2, layout: five, updates: 3, loss: .2, doubling: .1, strays: 20, arithmetic: f, worker: open(Olaf{Timeout: 40 * microsecond}), server: openServer},
		atpStory(story{name: "atp-large", workers: 4, layout: five, updates: 2, loss: .1, values: true, floats: true, program: table(""), exactly: true}, ATP{Window: 3, Fixed: Fixed{Scale: ATPScale}}),
	}
}

// TestStories checks all requests from endpoints to their hosts, and the endpoints' counters, against golden files.
func TestStories(t *testing.T) {
	for i, s := range stories() {
		t.Run(s.name, func(t *testing.T) {
			golden.Equal(t, "stories/"+s.name+".txt", s.tell(t, uint64(i)).text.Bytes())
		})
	}
}

// TestSumsApplyExactlyOnce checks that endpoints with exact sums apply exactly one contribution from every worker each
// time, despite losses and repeats.
func TestSumsApplyExactlyOnce(t *testing.T) {
	for _, s := range stories() {
		for seed := range uint64(40) {
			if s.exactly && !t.Failed() {
				s.tell(t, seed)
			}
		}
	}
}

// TestBounds checks that the first invalid number is rejected and the last valid one accepted.
func TestBounds(t *testing.T) {
	good := Config{Workers: 1, Layout: Layout{Values: 1, PerPacket: 1, Messages: 1}, Updates: 1}
	var text bytes.Buffer
	try := func(what string, err error) { fmt.Fprintf(&text, "%s: %v\n", what, err) }
	for _, c := range []Config{
		good, {}, {Workers: 1}, {Workers: 1, Layout: Layout{Values: 1}, Updates: 1}, {Workers: 1, Layout: Layout{PerPacket: 1}, Updates: 1}, {Workers: 1, Layout: good.Layout},
		{Workers: 1, Layout: Layout{Values: 3, PerPacket: 2, Messages: 2}, Updates: 1}, {Workers: 1, Layout: Layout{Values: 3, PerPacket: 2, Messages: 3}, Updates: 1},
		{Workers: 1, Layout: Layout{Values: 3, PerPacket: 2, Messages: -1}, Updates: 1},
	} {
		_, worker := NewPSWorker(c, nil)
		_, server := NewPSServer(c, true, nil)
		_, async := NewISwitchAsync(c, Async{}, nil)
		_, sync := NewISwitchSync(c, ISwitch{}, nil)
		_, pool := NewSwitchML(c, SwitchML{Slots: 1}, nil)
		what := fmt.Sprintf("%+v", c)
		try(what, worker)
		_, inc := NewP4INC(c, P4INC{Size: 1}, nil)
		_, tree := NewXAgg(c, XAgg{}, nil)
		_, ring := NewRing(c, nil)
		_, open := NewOpenWorker(c, Olaf{}, nil)
		_, opens := NewOpenServer(c, Olaf{}, nil)
		_, packets := NewATPWorker(c, ATP{}, nil)
		_, sums := NewATPServer(c, ATP{}, nil)
		if worker == nil {
			ring = nil // a ring needs two workers, which is tested below
		}
		for _, other := range []error{server, async, sync, pool, inc, tree, ring, open, opens, packets, sums} {
			if fmt.Sprint(other) != fmt.Sprint(worker) {
				t.Errorf("%s: %v of one, %v of another", what, worker, other)
			}
		}
	}
	three := Config{Workers: 2, Layout: Layout{Values: 3, PerPacket: 1}, Updates: 1}
	for _, o := range []ISwitch{
		{}, {Recovery: RecoverNone}, {Recovery: "hope"}, {Profile: iswitch.Exactly}, {Profile: "isw-9"}, {Timeout: 1}, {Timeout: -1}, {Ahead: -1}, {Ahead: 3}, {Ahead: 2},
		{Ahead: 2, Wrap: true}, {Ahead: 1, Wrap: true}, {Ahead: 2, Wrap: true, Profile: iswitch.Exactly}, {Ahead: 3, Wrap: true, Profile: iswitch.Exactly},
	} {
		_, err := NewISwitchSync(three, o, nil)
		try(fmt.Sprintf("%+v", o), err)
	}
	for _, o := range []Async{{}, {Bound: 1}, {Bound: -1}, {Slots: 3}, {Slots: 2}} {
		_, err := NewISwitchAsync(three, o, nil)
		try(fmt.Sprintf("%+v", o), err)
	}
	for _, o := range []SwitchML{{}, {Slots: 1}, {Slots: 1, Timeout: 1}, {Slots: 1, Timeout: -1}, {Slots: -1}} {
		_, err := NewSwitchML(three, o, nil)
		try(fmt.Sprintf("%+v", o), err)
	}
	for _, c := range []Config{good, three, {Workers: 3, Layout: three.Layout, Updates: 1}, {Workers: 4, Layout: three.Layout, Updates: 1}, {}} {
		_, err := NewRing(c, nil)
		try(fmt.Sprintf("ring %+v", c), err)
	}
	golden.Equal(t, "bounds.txt", text.Bytes())
}
