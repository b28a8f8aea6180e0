package twin

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/internal/test/golden"
)

// TestModelVersion plays random scripts on cards with random builds and compares digests of everything visible, for
// which ModelVersion stands. A script changes the configuration, loads, starts, stops, freezes, flushes and clears,
// changes tables, drains in parts, and opens loops, at any time. The other text in a line shows the extent of the test.
// If a digest changes although frames, times and counters were not meant to change, there is an error; if they were,
// ModelVersion must change together with this file.
func TestModelVersion(t *testing.T) {
	var b bytes.Buffer
	fmt.Fprintln(&b, ModelVersion)
	for seed := range uint64(128) {
		s := newScript(t, seed)
		for range 6 {
			s.round()
		}
		fmt.Fprintf(&b, "%d %s:", seed, s.kind())
		for _, k := range s.seen {
			fmt.Fprintf(&b, " %s %d %x", k.what, k.lines, k.digest.Sum(nil)[:4])
		}
		fmt.Fprintln(&b)
	}
	golden.Equal(t, "version.txt", b.Bytes())
}

// script is a card with the random actions on it and a record of their results.
type script struct {
	*bench
	r       *rand.Rand
	load    traffic
	answers *admitting
	loop    program.Program
	seen    []*kept

	registers, refusals, observed, packets, heard *kept

	// Copies of the results of the last drains, which stay valid until the next ones.
	observations []olaf.Observation
	frames       []Packet
	asDrained    [2]string
}

// kept is a digest of lines of one kind.
type kept struct {
	what   string
	lines  int
	digest hash.Hash
}

func (k *kept) Write(b []byte) (int, error) {
	k.lines += bytes.Count(b, []byte{'\n'})
	return k.digest.Write(b)
}

func newScript(t *testing.T, seed uint64) *script {
	s := &script{r: rand.New(rand.NewPCG(seed, 20))}
	for _, k := range []struct {
		what string
		of   **kept
	}{{"registers", &s.registers}, {"refusals", &s.refusals}, {"updates", &s.observed}, {"frames", &s.packets}, {"events", &s.heard}} {
		*k.of = &kept{what: k.what, digest: sha256.New()}
		s.seen = append(s.seen, *k.of)
	}
	s.load = mixed(s.r, s.sizes()...)
	s.answers = &admitting{fakeTables: s.load.tables()}
	cfg := Config{Tables: s.answers, Slots: s.one(4, 9), Clusters: s.one(2, 3, 64), Descriptors: s.one(40, 64), Wire: s.one(0, 1) == 1,
		ReadPorts: s.r.IntN(3)}
	cfg.Programs = [][]program.Description{nil, {summing}, {pooling}, {summing, pooling}}[s.r.IntN(4)]
	if len(cfg.Programs) > 0 && s.one(0, 1) == 1 {
		cfg.Unit = &aggregator.Unit{BusBytes: 32, Beat: olaf.Duration(s.one(5, 50)) * olaf.Nanosecond, Pipeline: 16, Room: s.one(2, 6)}
	}
	if s.one(0, 0, 1) == 1 {
		cfg.Observer = hearing{s.heard}
	}
	if s.one(0, 0, 0, 0, 0, 0, 0, 1) == 1 {
		cfg.Tables = nil
	}
	s.bench = newBench(t, cfg)
	if slices.ContainsFunc(cfg.Programs, func(d program.Description) bool { return d.Code == summing.Code }) {
		s.write(regmap.AggregatorProgram, summing.Code)
		s.write(regmap.AggregatorH, uint32(s.one(1, 2, 3)))
		s.write(regmap.AggregatorResults, pick(s, []uint32{0, regmap.AggregatorResultsToWorkers}))
	}
	s.write(regmap.QueueControl, regmap.QueueControlEnable)
	return s
}

func (s *script) one(of ...int) int { return pick(s, of) }

func pick[T any](s *script, of []T) T { return of[s.r.IntN(len(of))] }

// sizes returns frame lengths for one run; the last list contains an impossible length.
func (s *script) sizes() []uint16 {
	return [][]uint16{{0, 64, 300}, {0}, {0}, {0}, {0, 0, 0, 64, 1500, 68}, {0, 0, 64, 300},
		{0, 0, 0, 0, 0, 0, 0, 0, 1500, 65, 66}}[s.r.IntN(7)]
}

// kind describes how the card was built.
func (s *script) kind() string {
	text := fmt.Sprintf("%d ports, %d programs", s.cfg.ReadPorts, len(s.cfg.Programs))
	for what, has := range []bool{s.cfg.Wire, s.cfg.Unit != nil, s.cfg.Observer != nil, s.cfg.Tables == nil} {
		if has {
			text += []string{", wire", ", unit", ", observer", ", no tables"}[what]
		}
	}
	return text
}

// try writes a register, and records the error if the write is refused.
func (s *script) try(addr, v uint32) {
	if err := s.Write32(addr, v); err != nil {
		fmt.Fprintf(s.refusals, "%v\n", err)
	}
}

// settings lists the configuration registers with values to try, including values beyond the accepted range.
var settings = []struct {
	addr   uint32
	values []uint32
}{
	{regmap.QueueMode, []uint32{fifo, smart, smart | regmap.QueueModeProvenance, smart | regmap.QueueModeFreeOnStart,
		smart | regmap.QueueModeRewardFilter | regmap.QueueModeProvenance, 15}},
	{regmap.QueueDepth, []uint32{0, 1, 3, 4, 5, 9, 10}},
	{regmap.QueueLimiterControl, []uint32{0, regmap.QueueLimiterControlEnable}},
	{regmap.QueueLimiterIncrement, []uint32{0, uint32(engine.Line), uint32(engine.Line) / 3, uint32(engine.Line) / 20,
		uint32(engine.Line) + 1}},
	{regmap.QueueLimiterOverhead, []uint32{0, 24}},
	{regmap.QueueDequeueCycles, []uint32{0, 1, 3}},
	{regmap.QueueMergeCycles, []uint32{0, 1, 3}},
	{regmap.QueueRewardThreshold, []uint32{0, 100, 1<<32 - 100}},
	{regmap.AggregatorProgram, []uint32{0, summing.Code, summing.Code, summing.Code, pooling.Code}},
	{regmap.AggregatorH, []uint32{0, 1, 2, 3, 1 << 16}},
	{regmap.AggregatorSegments, []uint32{0, 1, 2, 65}},
	{regmap.AggregatorResults, []uint32{0, regmap.AggregatorResultsToWorkers}},
	{regmap.AggregatorDownlinkIncrement, []uint32{0, uint32(engine.Line) / 64, uint32(engine.Line) / 7, uint32(engine.Line)}},
	{regmap.ModelControl, []uint32{0, 0, regmap.ModelControlAck}},
	{regmap.ModelAckDelay, []uint32{0, 1, 90, 400}},
}

// round configures the card, plays traffic with random actions, and records the results.
func (s *script) round() {
	if s.one(0, 0, 1) == 1 {
		s.stop()
	}
	s.configure()
	s.play()
	for range s.one(0, 4, 8, 16) {
		s.step()
	}
	s.try(regmap.QueueControl, regmap.QueueControlEnable)
	s.pass(olaf.Duration(s.one(1, 10, 100, 100)) * olaf.Microsecond)
	s.inspect()
	s.show()
	s.drain()
	s.drain()
}

// step does one random action.
func (s *script) step() {
	control := func(v uint32) func() { return func() { s.try(regmap.QueueControl, v) } }
	command := func(addr uint32, v ...uint32) func() { return func() { s.try(addr, pick(s, v)) } }
	pass := func() {
		s.pass(olaf.Duration(s.one(0, 1, 3999, 4000, 100_000, 250_000, 1_000_000)) + olaf.Duration(s.r.IntN(3))*olaf.Cycle)
	}
	run, freeze := control(regmap.QueueControlEnable), control(regmap.QueueControlEnable|regmap.QueueControlFreeze)
	pick(s, []func(){
		pass, pass, pass, pass, pass, pass, pass, pass, run, run, run, freeze, freeze,
		control(pick(s, []uint32{0, regmap.QueueControlFreeze})), s.drain, s.show, s.inspect, s.move, s.send, s.send,
		command(regmap.QueueCommand, 0, regmap.QueueCommandFlush), command(regmap.AggregatorCommand, 0, regmap.AggregatorCommandClear),
		command(regmap.CommonCommand, 0, regmap.CommonCommandSnapshot, regmap.CommonCommandClear,
			regmap.CommonCommandSnapshot|regmap.CommonCommandClear),
		command(regmap.GeneratorCommand, regmap.GeneratorCommandArm, regmap.GeneratorCommandStart, regmap.GeneratorCommandStop,
			regmap.GeneratorCommandAbort),
		s.play, s.play, s.configure,
	})()
}

// pass lets time pass. It does not check accounts, because they do not include frames on the bus until these are
// decided.
func (s *script) pass(d olaf.Duration) {
	if err := s.Sleep(s.Context(), d); err != nil {
		s.Fatal(err)
	}
}

// configure disables the queue, changes some registers, and enables the queue when it is empty.
func (s *script) configure() {
	s.try(regmap.QueueControl, 0)
	s.pass(olaf.Duration(s.one(0, 20)) * olaf.Microsecond)
	s.loop = nil
	for range s.r.IntN(12) {
		c := pick(s, settings)
		s.try(c.addr, pick(s, c.values))
	}
	s.try(regmap.QueueControl, regmap.QueueControlEnable)
}

// stop stops all activity, by a reset or one part after the other, and may turn recording off or on, which is allowed
// between runs.
func (s *script) stop() {
	if s.one(0, 1, 1) == 0 {
		s.reset()
	}
	s.try(regmap.GeneratorCommand, regmap.GeneratorCommandAbort)
	s.try(regmap.QueueControl, 0)
	s.pass(olaf.Duration(s.one(3, 20)) * olaf.Microsecond)
	s.try(regmap.QueueCommand, regmap.QueueCommandFlush)
	s.Record(s.one(0, 1, 1) == 1)
	s.restore()
}

// play loads traffic and starts it, if that is allowed.
func (s *script) play() {
	if s.read(regmap.GeneratorState) == uint32(running) || s.read(regmap.GeneratorState) == uint32(stopping) ||
		s.read(regmap.GeneratorState) == uint32(armed) {
		s.try(regmap.GeneratorCommand, pick(s, []uint32{regmap.GeneratorCommandStart, regmap.GeneratorCommandStop,
			regmap.GeneratorCommandAbort}))
		return
	}
	next := mixed(s.r, s.sizes()...)
	enabled := s.one(0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
	next.flow = func(id int, f *regmap.Flow) {
		f.Template, f.Seg, f.SourcePort, f.ToS = uint16(id%2), uint64(id%4/3), uint16(4000+id), uint8(id)
		f.SourceMAC, f.DestMAC = [6]byte{2, byte(id)}, [6]byte{4, byte(id)}
		f.Enable = enabled == 1 || id != 2
		switch id % 4 {
		case 2:
			f.Format, f.ToS = uint8(summing.Code), summing.ToS
		case 3:
			f.Worker++
		}
	}
	for i := range next.descriptors {
		if s.one(0, 1, 1) > 0 {
			next.descriptors[i].Flags = 0
		}
	}
	s.loadFlows(next.clusters, next.workers, next.flow)
	s.loadDescriptors(next.descriptors...)
	if s.cfg.Wire {
		s.template(int32(s.r.IntN(100)), -int32(s.r.IntN(100)), 7)
	}
	s.try(regmap.GeneratorDescriptors, uint32(s.one(40, 40, 40, 40, 40, 40, 40, 40, 1, 0, 41)))
	s.try(regmap.GeneratorStopAfter, uint32(s.one(0, 0, 0, 0, 0, 0, 3, 20)))
	s.try(regmap.GeneratorCommand, regmap.GeneratorCommandArm)
	s.pass(olaf.Duration(s.one(0, 1)) * olaf.Microsecond)
	s.try(regmap.GeneratorCommand, regmap.GeneratorCommandStart)
}

// drain drains updates, frames or both, after checking that the results of the previous drain are unchanged.
func (s *script) drain() {
	if now := [2]string{textOf(s.observations), textOf(s.frames)}; now != s.asDrained {
		s.Fatal("what a drain handed out changed before the next one")
	}
	if s.one(0, 1, 1) == 1 {
		s.observations = s.Drain(s.observations[:0])
		s.asDrained[0] = textOf(s.observations)
		fmt.Fprint(s.observed, s.asDrained[0])
	}
	if s.one(0, 1, 1) == 1 {
		s.frames = s.DrainPackets(s.frames[:0])
		for i := range s.frames {
			s.frames[i].Contributors = slices.Clone(s.frames[i].Contributors) // they are valid only as long as the observations
		}
		s.asDrained[1] = textOf(s.frames)
		fmt.Fprint(s.packets, s.asDrained[1])
	}
}

func textOf[T any](list []T) string {
	var b strings.Builder
	for _, v := range list {
		fmt.Fprintf(&b, "%v\n", v)
	}
	return b.String()
}

// show records every register that is not 0, except those that identify the build.
func (s *script) show() {
	for _, block := range regmap.AllBlocks() {
		for _, r := range block.Registers {
			if r.Access == regmap.Command || block.Base == regmap.CommonBase && r.Offset < regmap.CommonScratch-regmap.CommonBase ||
				strings.HasPrefix(r.Name, "mem_") {
				continue
			}
			for off := uint32(0); off < r.Bytes(); off += 4 {
				if v, err := s.Read32(block.Base + r.Offset + off); err == nil && v != 0 {
					fmt.Fprintf(s.registers, "%s.%s+%d %x\n", block.Name, r.Name, off, v)
				}
			}
		}
	}
}

// inspect takes a snapshot and records clusters, slots, sums, and a whole table.
func (s *script) inspect() {
	s.try(regmap.CommonCommand, regmap.CommonCommandSnapshot)
	for i := range uint32(1 + 3*s.one(0, 0, 1)) {
		s.try(regmap.QueueClusterIndex, i)
		s.try(regmap.QueueInspectIndex, i)
		s.try(regmap.AggregatorInspectIndex, i)
		s.show()
	}
	if table := s.Table(); table != nil {
		fmt.Fprintf(s.registers, "%+v\n", *table)
	}
}

// move changes the tables of the pipeline, of a program, or of the replication block.
func (s *script) move() {
	a, worker := s.answers, netip.AddrFrom4(workerIP(s.r.IntN(3), s.r.IntN(3)))
	switch s.r.IntN(7) {
	case 0:
		delete(a.workers, worker)
	case 1:
		a.workers[worker] = [2]uint16{uint16(s.r.IntN(4)), uint16(s.r.IntN(9))}
	case 2:
		delete(a.groups, olaf.ClusterID(s.r.IntN(3)))
	case 3:
		s.restore()
	case 4:
		a.members = nil
	case 5:
		if a.members == nil {
			a.members = map[olaf.ClusterID]map[olaf.WorkerID]bool{}
		}
		a.set(olaf.ClusterID(s.r.IntN(3)), [][]olaf.WorkerID{nil, {0, 1, 3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8}}[s.r.IntN(3)]...)
	case 6:
		group := uint32(s.r.IntN(3))
		s.try(regmap.ReplicationGroupIndex, group)
		s.try(regmap.ReplicationGroupSize, uint32(s.one(0, 1, 2)))
		s.try(regmap.ReplicationMemberIndex, 2*group)
		s.try(regmap.ReplicationMemberData, 3<<16|group)
		s.try(regmap.ReplicationMemberData, 1<<16|9)
	}
	a.version++
}

// restore restores the initial tables.
func (s *script) restore() {
	*s.answers = admitting{fakeTables: &fakeTables{s.answers.version + 1, s.load.tables().workers, s.load.tables().groups}}
}

// send opens a loop, or passes a packet to the program of the open loop.
func (s *script) send() {
	if s.loop == nil {
		if s.one(0, 0, 0, 1) == 0 {
			return
		}
		p, err := s.OpenLoop(program.Config{Slots: s.one(8, 8, 8, -1)})
		if err != nil {
			fmt.Fprintf(s.refusals, "%v\n", err)
			return
		}
		s.loop = p
		for job := range 2 {
			if err := p.Configure(threeOf(olaf.ClusterID(job), 4*job, 4)); err != nil {
				fmt.Fprintf(s.refusals, "%v\n", err)
			}
		}
	}
	now := olaf.Time(s.r.IntN(1 << 20))
	for range 5 {
		now += olaf.Time(s.r.IntN(9000))
		var out outlet
		p := program.Packet{Kind: program.Data, Job: olaf.ClusterID(s.r.IntN(3)), Index: uint32(s.r.IntN(9)), Lanes: 64,
			Flags: program.Set1 * program.Flags(s.r.IntN(2)),
			Trace: program.NewTrace(0, 0, uint64(now)/1000)}
		class := s.loop.Receive(now, program.Port(s.r.IntN(4)), &p, nil, &out)
		fmt.Fprintf(s.packets, "at %d class %d: %v\n", s.now, class, out)
	}
}
