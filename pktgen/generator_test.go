package pktgen

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
)

// fakeCard is the generator's registers and memories without a data path.
type fakeCard struct {
	regs    map[uint32]uint32
	memory  [3][]uint32
	burst   uint32 // 0 for no limit
	busyFor int    // number of busy polls after a command
	corrupt bool   // loses one bit of every load
	unread  uint32 // words since the last poll
	fail    error
	writes  int
}

func newFakeCard() *fakeCard {
	return &fakeCard{regs: map[uint32]uint32{
		regmap.GeneratorBuiltFlows:       65536,
		regmap.GeneratorBuiltDescriptors: 1 << 24,
		regmap.GeneratorBuiltTemplates:   1,
		regmap.CommonMaxPacketBytes:      9036,
	}}
}

func (c *fakeCard) Read32(addr uint32) (uint32, error) {
	switch addr {
	case regmap.GeneratorMemBurst:
		return c.burst, c.fail
	case regmap.GeneratorMemStatus:
		c.unread = 0
		if c.busyFor > 0 {
			c.busyFor--
			return regmap.GeneratorMemStatusBusy, c.fail
		}
	case regmap.GeneratorMemData:
		at := c.regs[regmap.GeneratorMemAddress]
		c.regs[regmap.GeneratorMemAddress]++
		return c.memory[c.regs[regmap.GeneratorMemSelect]][at], c.fail
	}
	return c.regs[addr], c.fail
}

func (c *fakeCard) Write32(addr, value uint32) error {
	c.writes++
	switch addr {
	case regmap.GeneratorMemSelect:
		c.regs[regmap.GeneratorMemAddress] = 0
	case regmap.GeneratorEvents:
		c.regs[addr] &^= value
		return c.fail
	case regmap.GeneratorCommand:
		c.command(value)
		return c.fail
	case regmap.GeneratorMemCommand:
		m := c.memory[c.regs[regmap.GeneratorMemSelect]]
		crc := uint32(0)
		for _, w := range m[:c.regs[regmap.GeneratorMemLength]] {
			crc = crc32.Update(crc, crc32.IEEETable, binary.LittleEndian.AppendUint32(nil, w))
		}
		c.regs[regmap.GeneratorMemCRC] = crc
		c.busyFor = 3
		return c.fail
	}
	c.regs[addr] = value
	return c.fail
}

func (c *fakeCard) WriteBurst(addr uint32, words []uint32) error {
	if c.unread += uint32(len(words)); addr != regmap.GeneratorMemData || c.burst > 0 && c.unread > c.burst {
		return errors.New("burst too long, or not to the data register")
	}
	m := &c.memory[c.regs[regmap.GeneratorMemSelect]]
	at := c.regs[regmap.GeneratorMemAddress]
	*m = append((*m)[:at], words...)
	if c.corrupt {
		(*m)[at] ^= 1
	}
	c.regs[regmap.GeneratorMemAddress] += uint32(len(words))
	c.writes += len(words)
	return c.fail
}

// command performs the transitions of the state machine in docs/reference/registers.md, without time.
func (c *fakeCard) command(bits uint32) {
	state := &c.regs
	set := func(v State) { (*state)[regmap.GeneratorState] = uint32(v) }
	now := State(c.regs[regmap.GeneratorState])
	switch {
	case bits == regmap.GeneratorCommandAbort:
		set(Idle)
	case bits == regmap.GeneratorCommandArm && (now == Idle || now == Done || now == Failed):
		set(Armed)
		if c.regs[regmap.GeneratorDescriptors] == 0 {
			set(Failed)
			c.regs[regmap.GeneratorEvents] |= regmap.GeneratorEventsError | regmap.GeneratorEventsUnderrun
		}
	case bits == regmap.GeneratorCommandStart && now == Armed:
		set(Running)
	case bits == regmap.GeneratorCommandStop && now == Running:
		set(Stopping)
	case bits == regmap.GeneratorCommandStop && now == Armed:
		set(Idle)
	case bits == regmap.GeneratorCommandStop && (now == Idle || now == Done):
	default:
		c.regs[regmap.GeneratorEvents] |= regmap.GeneratorEventsRefused
	}
}

func testJob(t testing.TB, w Burst) Job {
	t.Helper()
	s, err := NewSchedule(w, 1)
	if err != nil {
		t.Fatal(err)
	}
	return Job{Placement: w.Placement, Addressing: DefaultAddressing(), Size: w.Size, Values: w.Values, Source: s}
}

// TestProgram checks that the card ends up with the flow table and the descriptors of the schedule, whatever its
// proxy's burst limit.
func TestProgram(t *testing.T) {
	w := table1(t)
	want := play(t, w, 1)
	for _, burst := range []uint32{0, 1024, 7} {
		c := newFakeCard()
		c.burst = burst
		c.regs[regmap.GeneratorStopAfter], c.regs[regmap.GeneratorStopAfter+4] = 5, 5 // left over from another user
		if err := NewGenerator(c).Program(context.Background(), testJob(t, w)); err != nil {
			t.Fatal(err)
		}
		if c.regs[regmap.GeneratorFlows] != 27 || c.regs[regmap.GeneratorDescriptors] != 13500 {
			t.Errorf("%d flows, %d descriptors", c.regs[regmap.GeneratorFlows], c.regs[regmap.GeneratorDescriptors])
		}
		if c.regs[regmap.GeneratorStopAfter]|c.regs[regmap.GeneratorStopAfter+4] != 0 {
			t.Error("stop_after is left set")
		}
		for i := range want {
			var d regmap.Descriptor
			d.Get(c.memory[0][i*regmap.DescriptorWords:])
			if d != want[i] {
				t.Fatalf("descriptor %d is %+v, want %+v", i, d, want[i])
			}
		}
		var f regmap.Flow
		f.Get(c.memory[1][26*regmap.FlowWords:])
		wantFlow := regmap.Flow{
			SourceIP: [4]byte{10, 1, 0, 26}, DestIP: [4]byte{10, 0, 0, 1},
			SourceMAC: [6]byte{2, 0, 10, 1, 0, 26}, DestMAC: [6]byte{2, 0, 10, 0, 0, 1},
			SourcePort: 49178, DestPort: 20300, Cluster: 8, Worker: 26, Length: 256, Enable: true,
		}
		if f != wantFlow {
			t.Errorf("flow 26 is %+v, want %+v", f, wantFlow)
		}
	}
}

// TestDescribe checks that flows can be converted to another system's without other changes to the job, and that the
// table is read back.
func TestDescribe(t *testing.T) {
	w := table1(t)
	c := newFakeCard()
	g := NewGenerator(c)
	job := testJob(t, w)
	if err := g.Program(context.Background(), job); err != nil {
		t.Fatal(err)
	}
	var before, f regmap.Flow
	before.Get(c.memory[1][26*regmap.FlowWords:])
	descriptors := slices.Clone(c.memory[0])
	job.Wire, job.Source = Wire{Format: 1, ToS: 0x0c}, nil
	if err := g.WriteFlows(context.Background(), job); err != nil {
		t.Fatal(err)
	}
	f.Get(c.memory[1][26*regmap.FlowWords:])
	before.Format, before.ToS = 1, 0x0c
	if f != before || c.regs[regmap.GeneratorFlows] != 27 || !slices.Equal(descriptors, c.memory[0]) {
		t.Errorf("flow 26 is %+v, want %+v", f, before)
	}
	if flows, err := g.ReadFlows(); err != nil || len(flows) != 27 || flows[26] != before || flows[0].Worker != 0 {
		t.Errorf("%d flows, %v", len(flows), err)
	}
	job.Workers = 1 << 17
	if err := g.WriteFlows(context.Background(), job); !errors.Is(err, ErrLimit) {
		t.Errorf("too many: %v", err)
	}
	job.Workers = 27
	c.regs[regmap.GeneratorFlows] = 1<<32 - 1 // as if the card were gone
	if _, err := g.ReadFlows(); !errors.Is(err, ErrLimit) {
		t.Errorf("read of more than there can be: %v", err)
	}
	c.regs[regmap.GeneratorState] = uint32(Running)
	if err := g.WriteFlows(context.Background(), job); !errors.Is(err, ErrState) {
		t.Errorf("while it runs: %v", err)
	}
	if _, err := g.ReadFlows(); !errors.Is(err, ErrState) {
		t.Errorf("read while it runs: %v", err)
	}
}

// short is a source that ends earlier than announced.
type short struct{ Source }

func (short) Fill([]regmap.Descriptor) int { return 0 }

// late is a source beyond the run clock.
type late struct{ Source }

func (l late) Fill(dst []regmap.Descriptor) int {
	n := l.Source.Fill(dst)
	dst[0].Time = 1 << 48
	return n
}

func TestProgramRefuses(t *testing.T) {
	gone := errors.New("gone")
	tests := []struct {
		name  string
		want  error
		say   string
		spoil func(*fakeCard, *Job)
		quiet bool // the card must not have been written to
	}{
		{"flows", ErrLimit, "27 flows (one a worker and segment), built_flows is 26",
			func(c *fakeCard, _ *Job) { c.regs[regmap.GeneratorBuiltFlows] = 26 }, true},
		{"descriptors", ErrLimit, "built_descriptors is 13499",
			func(c *fakeCard, _ *Job) { c.regs[regmap.GeneratorBuiltDescriptors] = 13499 }, true},
		{"templates", ErrLimit, "built_templates is 1", func(_ *fakeCard, j *Job) { j.Template = 1 }, true},
		{"frame", ErrLimit, "max_packet_bytes is 1518",
			func(c *fakeCard, j *Job) { c.regs[regmap.CommonMaxPacketBytes], j.Size = 1518, 9036 }, true},
		{"armed", ErrState, "it is armed", func(c *fakeCard, _ *Job) { c.regs[regmap.GeneratorState] = uint32(Armed) }, true},
		{"running", ErrState, "it is running", func(c *fakeCard, _ *Job) { c.regs[regmap.GeneratorState] = uint32(Running) }, true},
		{"stopping", ErrState, "it is stopping", func(c *fakeCard, _ *Job) { c.regs[regmap.GeneratorState] = uint32(Stopping) }, true},
		{"server is a worker", ErrWorkload, "that of worker 5",
			func(_ *fakeCard, j *Job) { j.Addressing.Server = netip.MustParseAddr("10.1.0.5") }, true},
		{"corrupt", ErrImage, "CRC-32", func(c *fakeCard, _ *Job) { c.corrupt = true }, false},
		{"short source", ErrWorkload, "another number", func(_ *fakeCard, j *Job) { j.Source = short{j.Source} }, false},
		{"late packet", ErrLimit, "run clock ends", func(_ *fakeCard, j *Job) { j.Source = late{j.Source} }, false},
		{"stuck proxy", ErrState, "stays busy", func(c *fakeCard, _ *Job) { c.burst, c.busyFor = 64, 1<<62 }, false},
		{"gone", gone, "gone", func(c *fakeCard, _ *Job) { c.fail = gone }, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, job := newFakeCard(), testJob(t, table1(t))
			tt.spoil(c, &job)
			err := NewGenerator(c).Program(context.Background(), job)
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.say) {
				t.Fatalf("got %v, want %q", err, tt.say)
			}
			if tt.quiet && c.writes > 0 {
				t.Errorf("%d words were written before the refusal", c.writes)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := NewGenerator(newFakeCard()).Program(ctx, testJob(t, table1(t))); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestCommands(t *testing.T) {
	c := newFakeCard()
	g := NewGenerator(c)
	steps := []struct {
		name  string
		do    func() error
		fails string // a part of the message
		after State
	}{
		{"start from idle", g.Start, "start: the state does not allow it", Idle},
		{"arm without a job", g.Arm, "after arm it is error: a descriptor that was never loaded came due", Failed},
		{"program", func() error { return g.Program(context.Background(), testJob(t, table1(t))) }, "", Failed},
		{"arm", g.Arm, "", Armed},
		{"arm again", g.Arm, "arm: the state", Armed},
		{"stop from armed", g.Stop, "", Idle},
		{"arm", g.Arm, "", Armed},
		{"start", g.Start, "", Running},
		{"stop", g.Stop, "", Stopping},
		{"abort", g.Abort, "", Idle},
	}
	for _, s := range steps {
		err := s.do()
		if s.fails == "" && err != nil || s.fails != "" && (!errors.Is(err, ErrState) || !strings.Contains(err.Error(), s.fails)) {
			t.Errorf("%s: %v, want %q", s.name, err, s.fails)
		}
		if state, err := g.State(); err != nil || state != s.after {
			t.Errorf("after %s it is %v, want %v (%v)", s.name, state, s.after, err)
		}
	}
	if got := State(9).String(); got != "state 9" {
		t.Error(got)
	}
}

func TestAddressing(t *testing.T) {
	tests := []struct{ workers, server, say string }{
		{"255.255.255.250", "10.0.0.1", "leave the IPv4"},
		{"10.1.0.0", "::1", "must be IPv4"},
		{"10.1.0.0", "10.1.0.26", "worker 26"},
	}
	for _, tt := range tests {
		a := Addressing{netip.MustParseAddr(tt.workers), netip.MustParseAddr(tt.server)}
		if err := a.Validate(27); !errors.Is(err, ErrWorkload) || !strings.Contains(err.Error(), tt.say) {
			t.Errorf("%+v: %v, want %q", a, err, tt.say)
		}
	}
	if err := DefaultAddressing().Validate(65536); err != nil {
		t.Error(err)
	}
	if (Addressing{}).Validate(1) == nil {
		t.Error("the zero value passes")
	}
}

// TestAddressesOnTheWire checks that frames of the schedule's workers carry the addresses that are looked up in the
// tables.
func TestAddressesOnTheWire(t *testing.T) {
	a := DefaultAddressing()
	addr := a.WorkerAddresses(300)
	b := make([]byte, 256)
	n, err := olaf.EncodeUpdate(b, &addr, &olaf.Update{Count: 1, Lanes: 48}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := olaf.ParseFrame(b[:n])
	if err != nil || f.Addresses() != addr || f.Addresses().SrcIP != [4]byte{10, 1, 1, 44} {
		t.Errorf("%+v, %v", f, err)
	}
}

// sink accepts everything at no cost, so that only the host's cost is measured.
type sink struct{ *fakeCard }

func (s *sink) WriteBurst(_ uint32, words []uint32) error { return nil }
func (s *sink) Write32(addr, v uint32) error              { return nil }
func (s *sink) Read32(addr uint32) (uint32, error) {
	switch addr {
	case regmap.GeneratorMemCRC, regmap.GeneratorMemStatus, regmap.GeneratorState, regmap.GeneratorEvents:
		return 0, nil
	}
	return s.fakeCard.Read32(addr)
}

// BenchmarkProgram measures loading Table 1's 13,500 updates, including the schedule. The CRC check fails at the very
// end, because the sink stores nothing.
func BenchmarkProgram(b *testing.B) {
	job := testJob(b, table1(b))
	schedule := job.Source.(*Schedule)
	g := NewGenerator(&sink{fakeCard: newFakeCard()})
	b.ReportAllocs()
	for b.Loop() {
		schedule.Reset(1)
		words := 13500 * regmap.DescriptorWords
		if err := g.loadMemory(context.Background(), 0, words, g.descriptorWords(schedule), nil, nil); !errors.Is(err, ErrImage) {
			b.Fatal(err)
		}
	}
}
