// Package fpgatest is the conformance suite for all backends of fpga.Device. It relies only on the register map.
// Backends call Run in their tests. CheckDevice runs the same suite outside of go test, for example on a real card.
package fpgatest

import (
	"context"
	"errors"
	"hash/crc32"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

// cases lists the test cases in the order in which a lab engineer wants to see failures.
var cases = []testCase{
	{"identity", testIdentity},
	{"block_list", testBlockList},
	{"scratch", testScratch},
	{"reset_values", testResetValues},
	{"undefined_address", testUndefinedAddress},
	{"read_only", testReadOnly},
	{"undefined_bits", testUndefinedBits},
	{"commands_read_zero", testCommandsReadZero},
	{"idle_registers", testIdleRegisters},
	{"configuration_holds", testConfigurationHolds},
	{"built_limits", testBuiltLimits},
	{"errors_clear_on_one", testErrorsClearOnOne},
	{"inspector_needs_freeze", testInspectorNeedsFreeze},
	{"memory_proxy", testMemoryProxy},
	{"memory_crc", testMemoryCRC},
	{"template_zero", testTemplateZero},
	{"replication", testReplication},
	{"generator_states", testGeneratorStates},
	{"generator_faults", testGeneratorFaults},
	{"bypass_is_counted", testBypassIsCounted},
	{"cycles_advance", testCyclesAdvance},
	{"aggregator", testAggregator},
}

// device wraps a Device and fails the test if an access fails.
type device struct {
	T
	fpga.Device
}

func (d *device) read(addr uint32) uint32 {
	d.Helper()
	v, err := d.Read32(addr)
	if err != nil {
		d.Fatalf("read %#x: %v", addr, err)
	}
	return v
}

func (d *device) write(addr, value uint32) {
	d.Helper()
	if err := d.Write32(addr, value); err != nil {
		d.Fatalf("write %#x to %#x: %v", value, addr, err)
	}
}

func (d *device) sleep(t olaf.Duration) {
	d.Helper()
	if err := d.Sleep(context.Background(), t); err != nil {
		d.Fatal(err)
	}
}

func (d *device) expect(addr, want uint32) {
	d.Helper()
	if got := d.read(addr); got != want {
		ref, _, _ := regmap.RegisterAt(addr)
		d.Errorf("%s = %#x, want %#x", ref.Name(), got, want)
	}
}

// expectRefusal writes a value that the device must refuse. It checks that the error matches kind, that the register is
// unchanged, and that the device's error bit and error address are set.
func (d *device) expectRefusal(addr, value uint32, kind error, bit uint32) {
	d.Helper()
	ref, _, ok := regmap.RegisterAt(addr)
	var before uint32
	readable := ok && ref.Register.Access != regmap.Command && addr != regmap.GeneratorMemData &&
		addr != regmap.ReplicationMemberData
	if readable {
		before = d.read(addr)
	}
	d.write(regmap.CommonErrors, ^uint32(0)&commonErrorBits())
	if err := d.Write32(addr, value); !errors.Is(err, kind) {
		d.Errorf("write %#x to %#x: %v, want %v", value, addr, err, kind)
	}
	if got := d.read(regmap.CommonErrors); got&bit == 0 {
		d.Errorf("write %#x to %#x: common.errors = %#x without bit %#x", value, addr, got, bit)
	}
	d.expect(regmap.CommonErrorAddress, addr)
	if readable && d.read(addr) != before {
		d.Errorf("the refused write %#x to %s changed it", value, ref.Name())
	}
}

func commonErrorBits() uint32 {
	ref, _ := regmap.FindRegister("common.errors")
	return ref.Register.Writable()
}

// visitRegisters calls visit for every register that the device's build has.
func (d *device) visitRegisters(visit func(ref regmap.Ref)) {
	for _, b := range regmap.BuiltBlocks(d.read(regmap.CommonCapabilities)) {
		for i := range b.Registers {
			visit(regmap.Ref{Block: &b, Register: &b.Registers[i]})
		}
	}
}

func testIdentity(d *device) {
	d.expect(regmap.CommonMagic, regmap.CommonMagicResetValue)
	if v := d.read(regmap.CommonMapVersion) >> 24; v != regmap.VersionMajor {
		d.Errorf("map version %d, this suite is for %d", v, regmap.VersionMajor)
	}
	id := d.Identity()
	if id.Address == "" || id.Kind == "" || id.MapVersion == "" || id.ClockHz == 0 {
		d.Errorf("identity is incomplete: %+v", id)
	}
	if hz := d.read(regmap.CommonClockHz); uint64(hz) != id.ClockHz {
		d.Errorf("common.clock_hz = %d, identity says %d", hz, id.ClockHz)
	}
	for _, addr := range []uint32{regmap.CommonMaxPacketBytes, regmap.QueueBuiltSlots, regmap.QueueBuiltClusters,
		regmap.GeneratorBuiltFlows, regmap.GeneratorBuiltDescriptors} {
		if d.read(addr) == 0 {
			ref, _, _ := regmap.RegisterAt(addr)
			d.Errorf("%s is 0", ref.Name())
		}
	}
}

func testBlockList(d *device) {
	seen := 0
	for at := d.read(regmap.CommonNext); at != 0; at = d.read(at + 8) {
		kind := d.read(at)
		if kind == 0 || kind == ^uint32(0) || kind == regmap.Placeholder {
			d.Fatalf("block at %#x has type %#x", at, kind)
		}
		if seen++; seen > 64 {
			d.Fatal("the list of blocks has no end")
		}
	}
	if seen == 0 {
		d.Error("no blocks")
	}
}

func testScratch(d *device) {
	d.expect(regmap.CommonScratch, regmap.CommonScratchResetValue)
	for _, v := range []uint32{0, ^uint32(0), 0xA5A5A5A5, 0x01234567} {
		d.write(regmap.CommonScratch, v)
		d.expect(regmap.CommonScratch, v)
	}
}

func testResetValues(d *device) {
	d.write(regmap.CommonScratch, 1)
	d.write(regmap.QueueDepth, 1)
	d.write(regmap.GeneratorStopAfter+4, 1)
	d.write(regmap.CommonCommand, regmap.CommonCommandReset)
	d.sleep(olaf.Millisecond)
	d.visitRegisters(func(ref regmap.Ref) {
		r := ref.Register
		if r.Built || r.Counter || r.Access == regmap.Command {
			return
		}
		d.expect(ref.Address(), uint32(r.Reset))
		if r.Wide {
			d.expect(ref.Address()+4, uint32(r.Reset>>32))
		}
	})
}

func testUndefinedAddress(d *device) {
	for _, addr := range []uint32{regmap.CommonBase + 0xFFC, regmap.QueueBase + 0x01C, regmap.CommonMagic + 2,
		0x1FFFFC} {
		if v, err := d.Read32(addr); !errors.Is(err, fpga.ErrAddress) {
			d.Errorf("read %#x: %#x, %v", addr, v, err)
		}
		if err := d.Write32(addr, 1); !errors.Is(err, fpga.ErrAddress) {
			d.Errorf("write %#x: %v", addr, err)
		}
	}
}

func testReadOnly(d *device) {
	d.visitRegisters(func(ref regmap.Ref) {
		if ref.Register.Access == regmap.ReadOnly && ref.Name() != "common.cycles" &&
			ref.Name() != "common.error_address" {
			d.expectRefusal(ref.Address(), 0x12345678, fpga.ErrAddress, regmap.CommonErrorsReadOnly)
		}
	})
}

func testUndefinedBits(d *device) {
	d.visitRegisters(func(ref regmap.Ref) {
		r := ref.Register
		if undefined := ^r.Writable(); r.Access != regmap.ReadOnly && undefined != 0 {
			d.expectRefusal(ref.Address(), undefined&-undefined, fpga.ErrRefused, regmap.CommonErrorsValue)
		}
	})
}

func testCommandsReadZero(d *device) {
	d.visitRegisters(func(ref regmap.Ref) {
		if ref.Register.Access == regmap.Command {
			d.expect(ref.Address(), 0)
		}
	})
}

func testIdleRegisters(d *device) {
	d.write(regmap.QueueDepth, 2)
	d.write(regmap.QueueControl, regmap.QueueControlEnable)
	d.write(regmap.GeneratorCommand, regmap.GeneratorCommandArm)
	d.visitRegisters(func(ref regmap.Ref) {
		if ref.Register.Idle && ref.Register.Access == regmap.ReadWrite {
			d.expectRefusal(ref.Address(), 1, fpga.ErrRefused, regmap.CommonErrorsState)
		}
	})
	if d.read(regmap.QueueErrors)&regmap.QueueErrorsState == 0 {
		d.Error("queue.errors.state is not set")
	}
	if d.read(regmap.GeneratorEvents)&regmap.GeneratorEventsRefused == 0 {
		d.Error("generator.events.refused is not set")
	}
	d.write(regmap.QueueControl, 0)
	d.write(regmap.QueueDepth, 3)
	d.expect(regmap.QueueDepth, 3)
}

// testConfigurationHolds checks that every bit of the queue's configuration keeps its value, by writing one bit at a
// time.
func testConfigurationHolds(d *device) {
	bits := []struct{ addr, low, high uint32 }{ // high is the largest value allowed
		{regmap.QueueDepth, 1, d.read(regmap.QueueBuiltSlots)},
		{regmap.QueueMode, regmap.QueueModeRewardFilter, regmap.QueueModeRewardFilter},
		{regmap.QueueRewardThreshold, 1, 1<<31 - 1},
		{regmap.QueueLimiterIncrement, 1, 64 << 24},
		{regmap.QueueLimiterOverhead, 1, 255},
		{regmap.GeneratorFlows, 1, d.read(regmap.GeneratorBuiltFlows)},
		{regmap.GeneratorDescriptors, 1, d.read(regmap.GeneratorBuiltDescriptors)},
		{regmap.GeneratorStopAfter, 1, 1 << 31},
	}
	for _, b := range bits {
		for v := uint64(b.low); v <= uint64(b.high); v <<= 1 {
			d.write(b.addr, uint32(v))
			d.expect(b.addr, uint32(v))
		}
	}
}

func testBuiltLimits(d *device) {
	tooBig := []struct{ addr, value uint32 }{
		{regmap.QueueDepth, d.read(regmap.QueueBuiltSlots) + 1},
		{regmap.QueueDepth, 0},
		{regmap.QueueMode, regmap.QueueModeDisciplineMask},
		{regmap.QueueRewardThreshold, 1 << 31},
		{regmap.QueueLimiterIncrement, 0},
		{regmap.QueueLimiterIncrement, 64<<24 + 1},
		{regmap.QueueLimiterOverhead, 256},
		{regmap.QueueClusterIndex, d.read(regmap.QueueBuiltClusters)},
		{regmap.GeneratorFlows, d.read(regmap.GeneratorBuiltFlows) + 1},
		{regmap.GeneratorDescriptors, d.read(regmap.GeneratorBuiltDescriptors) + 1},
		{regmap.ReplicationGroupIndex, d.read(regmap.ReplicationBuiltGroups)},
		{regmap.ReplicationGroupSize, d.read(regmap.ReplicationBuiltMembers) + 1},
	}
	for _, w := range tooBig {
		d.expectRefusal(w.addr, w.value, fpga.ErrRefused, regmap.CommonErrorsValue)
	}
	d.write(regmap.QueueDepth, d.read(regmap.QueueBuiltSlots))
	d.write(regmap.QueueClusterIndex, d.read(regmap.QueueBuiltClusters)-1)
}

func testErrorsClearOnOne(d *device) {
	d.expectRefusal(regmap.QueueDepth, 0, fpga.ErrRefused, regmap.CommonErrorsValue)
	d.write(regmap.QueueErrors, regmap.QueueErrorsState) // a different bit
	if d.read(regmap.QueueErrors)&regmap.QueueErrorsValue == 0 {
		d.Error("clearing one bit cleared another")
	}
	d.write(regmap.QueueErrors, regmap.QueueErrorsValue)
	d.expect(regmap.QueueErrors, 0)
	d.write(regmap.CommonErrors, commonErrorBits())
	d.expect(regmap.CommonErrors, 0)
}

func testInspectorNeedsFreeze(d *device) {
	d.expectRefusal(regmap.QueueInspectIndex, 0, fpga.ErrRefused, regmap.CommonErrorsState)
	if d.read(regmap.QueueErrors)&regmap.QueueErrorsNotFrozen == 0 {
		d.Error("queue.errors.not_frozen is not set")
	}
	d.write(regmap.QueueControl, regmap.QueueControlFreeze)
	d.write(regmap.QueueInspectIndex, 0)
	d.expect(regmap.QueueInspectState, 0)
	if s := d.read(regmap.QueueStatus); s != regmap.QueueStatusFrozen|regmap.QueueStatusEmpty {
		d.Errorf("queue.status = %#x", s)
	}
}

func testMemoryProxy(d *device) {
	words := make([]uint32, 3*regmap.DescriptorWords)
	for i := range words {
		words[i] = uint32(i)*0x01010101 + 1
	}
	for memory := range uint32(2) {
		d.write(regmap.GeneratorMemSelect, memory)
		d.expect(regmap.GeneratorMemAddress, 0)
		if err := d.WriteBurst(regmap.GeneratorMemData, words); err != nil {
			d.Fatal(err)
		}
		d.expect(regmap.GeneratorMemAddress, uint32(len(words)))
		d.write(regmap.GeneratorMemAddress, 5)
		d.write(regmap.GeneratorMemData, 77)
		d.expect(regmap.GeneratorMemAddress, 6)
		d.write(regmap.GeneratorMemAddress, 4)
		for _, want := range []uint32{words[4], 77, words[6]} {
			d.expect(regmap.GeneratorMemData, want)
		}
		d.expect(regmap.GeneratorMemAddress, 7)
	}
	last := d.read(regmap.GeneratorBuiltDescriptors)*regmap.DescriptorWords - 1
	d.write(regmap.GeneratorMemSelect, 0)
	d.write(regmap.GeneratorMemAddress, last)
	if err := d.WriteBurst(regmap.GeneratorMemData, []uint32{1, 2}); !errors.Is(err, fpga.ErrRefused) {
		d.Errorf("a burst beyond the memory: %v", err)
	}
	d.write(regmap.GeneratorMemAddress, last)
	d.expect(regmap.GeneratorMemData, 0)
	d.write(regmap.GeneratorCommand, regmap.GeneratorCommandArm)
	d.expectRefusal(regmap.GeneratorMemData, 1, fpga.ErrRefused, regmap.CommonErrorsState)
}

func testMemoryCRC(d *device) {
	words := []uint32{0x04030201, 0x08070605, 0x0C0B0A09}
	d.write(regmap.GeneratorMemSelect, 0)
	if err := d.WriteBurst(regmap.GeneratorMemData, words); err != nil {
		d.Fatal(err)
	}
	d.write(regmap.GeneratorMemLength, 3)
	d.write(regmap.GeneratorMemCommand, regmap.GeneratorMemCommandCRC)
	d.expect(regmap.GeneratorMemStatus, 0)
	d.expect(regmap.GeneratorMemCRC, crc32.ChecksumIEEE([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}))
	d.write(regmap.GeneratorMemLength, 4)
	d.expectRefusal(regmap.GeneratorMemCommand, regmap.GeneratorMemCommandCRC, fpga.ErrRefused, regmap.CommonErrorsValue)
	d.write(regmap.GeneratorMemCommand, regmap.GeneratorMemCommandClear)
	d.write(regmap.GeneratorMemAddress, 0)
	d.expect(regmap.GeneratorMemData, 0)
}

func testTemplateZero(d *device) {
	d.write(regmap.GeneratorMemSelect, 2)
	d.expect(regmap.GeneratorMemData, uint32(regmap.UnitLane))
	d.write(regmap.GeneratorMemAddress, 0)
	d.expectRefusal(regmap.GeneratorMemData, 1, fpga.ErrRefused, regmap.CommonErrorsValue)
	d.write(regmap.GeneratorMemAddress, regmap.TemplateWords)
	d.write(regmap.GeneratorMemData, 5)
	d.write(regmap.GeneratorMemAddress, regmap.TemplateWords)
	d.expect(regmap.GeneratorMemData, 5)
}

func testReplication(d *device) {
	d.write(regmap.ReplicationGroupIndex, 7)
	d.expect(regmap.ReplicationGroupSize, 0)
	d.expectRefusal(regmap.ReplicationMemberData, 1, fpga.ErrRefused, regmap.CommonErrorsValue)
	d.write(regmap.ReplicationGroupSize, 3)
	for _, m := range []uint32{0x010005, 0x020006, 9} {
		d.write(regmap.ReplicationMemberData, m)
	}
	d.write(regmap.ReplicationGroupIndex, 8)
	d.write(regmap.ReplicationGroupSize, 1)
	d.write(regmap.ReplicationGroupIndex, 7)
	d.expect(regmap.ReplicationGroupSize, 3)
	d.expect(regmap.ReplicationMemberData, 0x010005)
	d.expect(regmap.ReplicationMemberData, 0x020006)
	d.expect(regmap.ReplicationMemberIndex, 2)
	d.write(regmap.ReplicationGroupSize, 0)
	d.expect(regmap.ReplicationGroupSize, 0)
	d.write(regmap.ReplicationCommand, regmap.ReplicationCommandClear)
	d.write(regmap.ReplicationGroupIndex, 8)
	d.expect(regmap.ReplicationGroupSize, 0)
}

// Generator states of the register map.
const (
	idle    = regmap.GeneratorStateStateIdle
	armed   = regmap.GeneratorStateStateArmed
	running = regmap.GeneratorStateStateRunning
	done    = regmap.GeneratorStateStateDone
	failed  = regmap.GeneratorStateStateError
)

// loadProbe loads n packets into the generator, gap cycles apart. Their source is not in any table.
func (d *device) loadProbe(n int, gap uint64) {
	d.Helper()
	f := regmap.Flow{SourceIP: [4]byte{203, 0, 113, 9}, DestIP: [4]byte{203, 0, 113, 1}, SourcePort: 9,
		DestPort: olaf.UDPPort, Length: 64, Enable: true}
	w := make([]uint32, regmap.FlowWords)
	f.Put(w)
	d.write(regmap.GeneratorMemSelect, 1)
	if err := d.WriteBurst(regmap.GeneratorMemData, w); err != nil {
		d.Fatal(err)
	}
	d.write(regmap.GeneratorFlows, 1)
	d.write(regmap.GeneratorMemSelect, 0)
	for i := range n {
		p := regmap.Descriptor{Time: uint64(i) * gap, Sequence: uint32(i)}
		p.Put(w)
		if err := d.WriteBurst(regmap.GeneratorMemData, w[:regmap.DescriptorWords]); err != nil {
			d.Fatal(err)
		}
	}
	d.write(regmap.GeneratorDescriptors, uint32(n))
}

// readSettledState polls the generator's state until no frame is in flight, and returns the state.
func (d *device) readSettledState() uint32 {
	state := d.read(regmap.GeneratorState)
	for range 10_000 {
		if state != regmap.GeneratorStateStateStopping {
			break
		}
		d.sleep(olaf.Microsecond)
		state = d.read(regmap.GeneratorState)
	}
	return state
}

func testGeneratorStates(d *device) {
	d.loadProbe(2, 250_000_000) // one second apart, so that the generator stays running
	const arm, start, stop, abort = regmap.GeneratorCommandArm, regmap.GeneratorCommandStart,
		regmap.GeneratorCommandStop, regmap.GeneratorCommandAbort
	steps := []struct {
		command uint32
		refused bool
		state   uint32
	}{
		{start, true, idle}, {stop, false, idle}, {abort, false, idle},
		{arm, false, armed}, {arm, true, armed}, {stop, false, idle},
		{arm, false, armed}, {abort, false, idle},
		{arm, false, armed}, {start, false, running}, {start, true, running}, {arm, true, running},
		{abort, false, idle},
		{arm, false, armed}, {start, false, running}, {stop, false, done}, {start, true, done}, {stop, false, done},
		{arm, false, armed}, {arm | start, true, armed},
	}
	for i, s := range steps {
		if err := d.Write32(regmap.GeneratorCommand, s.command); errors.Is(err, fpga.ErrRefused) != s.refused {
			d.Errorf("step %d: command %#x: %v", i, s.command, err)
		}
		d.sleep(olaf.Microsecond)
		if got := d.readSettledState(); got != s.state {
			d.Fatalf("step %d: state %d after command %#x, want %d", i, got, s.command, s.state)
		}
	}
	if e := d.read(regmap.GeneratorEvents); e&regmap.GeneratorEventsDone == 0 {
		d.Errorf("generator.events = %#x without done", e)
	}
}

func testGeneratorFaults(d *device) {
	faults := []struct {
		name  string
		spoil func()
		bit   uint32
	}{
		{"underrun", func() { d.write(regmap.GeneratorDescriptors, 3) }, regmap.GeneratorEventsUnderrun},
		{"unsorted", func() { d.overwriteDescriptor(1, regmap.Descriptor{Time: 5}) }, regmap.GeneratorEventsUnsorted},
		{"no such flow", func() { d.overwriteDescriptor(1, regmap.Descriptor{Time: 500, Flow: 1}) },
			regmap.GeneratorEventsBadFlow},
		{"no flows", func() { d.write(regmap.GeneratorFlows, 0) }, regmap.GeneratorEventsBadFlow},
		{"short", func() { d.overwriteDescriptor(0, regmap.Descriptor{Length: 60}) }, regmap.GeneratorEventsBadLength},
		{"long", func() { d.overwriteDescriptor(0, regmap.Descriptor{Length: 9040}) }, regmap.GeneratorEventsBadLength},
		{"half a lane", func() { d.overwriteDescriptor(0, regmap.Descriptor{Length: 66}) },
			regmap.GeneratorEventsBadLength},
	}
	for _, f := range faults {
		d.write(regmap.CommonCommand, regmap.CommonCommandReset)
		d.sleep(olaf.Millisecond)
		d.loadProbe(2, 100)
		d.overwriteDescriptor(0, regmap.Descriptor{Time: 50})
		f.spoil()
		d.write(regmap.GeneratorCommand, regmap.GeneratorCommandArm)
		d.write(regmap.GeneratorCommand, regmap.GeneratorCommandStart)
		d.sleep(olaf.Millisecond)
		if s := d.read(regmap.GeneratorState); s != failed {
			d.Errorf("%s: state %d", f.name, s)
		}
		if e := d.read(regmap.GeneratorEvents); e&(regmap.GeneratorEventsError|f.bit) != regmap.GeneratorEventsError|f.bit {
			d.Errorf("%s: events %#x", f.name, e)
		}
	}
}

func (d *device) overwriteDescriptor(i int, p regmap.Descriptor) {
	d.Helper()
	var w [regmap.DescriptorWords]uint32
	p.Put(w[:])
	d.write(regmap.GeneratorMemSelect, 0)
	d.write(regmap.GeneratorMemAddress, uint32(i*regmap.DescriptorWords))
	if err := d.WriteBurst(regmap.GeneratorMemData, w[:]); err != nil {
		d.Fatal(err)
	}
}

func testBypassIsCounted(d *device) {
	d.loadProbe(10, 100)
	d.write(regmap.QueueControl, regmap.QueueControlEnable)
	d.write(regmap.CommonCommand, regmap.CommonCommandClear)
	d.write(regmap.GeneratorCommand, regmap.GeneratorCommandArm)
	d.write(regmap.GeneratorCommand, regmap.GeneratorCommandStart)
	d.sleep(olaf.Millisecond)
	if g, err := regmap.ReadGeneratorCounters(d); err != nil || g.SentPackets != 0 {
		d.Errorf("counters moved without a snapshot: %+v %v", g, err)
	}
	d.write(regmap.CommonCommand, regmap.CommonCommandSnapshot|regmap.CommonCommandClear)
	g, err := regmap.ReadGeneratorCounters(d)
	if err != nil {
		d.Fatal(err)
	}
	q, err := regmap.ReadQueueCounters(d)
	if err != nil {
		d.Fatal(err)
	}
	if g.SentPackets != 10 || g.SentBytes != 640 || q.Bypassed != 10 || q.In != 0 {
		d.Errorf("sent %d (%d B), bypassed %d, in %d", g.SentPackets, g.SentBytes, q.Bypassed, q.In)
	}
	d.write(regmap.CommonCommand, regmap.CommonCommandSnapshot)
	if q, _ = regmap.ReadQueueCounters(d); q.Bypassed != 0 {
		d.Errorf("%d bypassed after clear", q.Bypassed)
	}
}

func testCyclesAdvance(d *device) {
	before, err := regmap.Read64(d, regmap.CommonCycles)
	if err != nil {
		d.Fatal(err)
	}
	d.sleep(olaf.Millisecond)
	after, err := regmap.Read64(d, regmap.CommonCycles)
	if err != nil {
		d.Fatal(err)
	}
	if want := d.Identity().ClockHz / 1000; after-before < want {
		d.Errorf("%d cycles in a millisecond, want at least %d", after-before, want)
	}
}

// testAggregator checks the optional aggregator block. The block must exist if the capability is set, and must reject
// values above its built limits.
func testAggregator(d *device) {
	built := d.read(regmap.CommonCapabilities)&regmap.CommonCapabilitiesAggregator != 0
	if listed := d.read(regmap.ModelNext) == regmap.AggregatorBase; listed != built {
		d.Errorf("the list of blocks names the aggregator: %v, the capabilities: %v", listed, built)
	}
	if !built {
		if _, err := d.Read32(regmap.AggregatorType); !errors.Is(err, fpga.ErrAddress) {
			d.Errorf("aggregator.type is not built: %v", err)
		}
		return
	}
	d.expect(regmap.AggregatorType, regmap.AggregatorTypeResetValue)
	programs := d.read(regmap.AggregatorBuiltPrograms)
	if programs&1 == 0 || programs == 1 || d.read(regmap.AggregatorBuiltSlots) == 0 {
		d.Fatalf("aggregator.built_programs = %#x, built_slots = %d", programs, d.read(regmap.AggregatorBuiltSlots))
	}
	for code := range regmap.AggregatorProgramProgramMask + 1 {
		if programs>>code&1 == 0 {
			d.expectRefusal(regmap.AggregatorProgram, code, fpga.ErrRefused, regmap.CommonErrorsValue)
			continue
		}
		d.write(regmap.AggregatorProgram, code)
		d.expect(regmap.AggregatorProgram, code)
		d.write(regmap.QueueControl, regmap.QueueControlEnable)
		d.expectRefusal(regmap.AggregatorProgram, code, fpga.ErrRefused, regmap.CommonErrorsState)
		d.write(regmap.QueueControl, 0)
	}
	for h := uint32(1); h < 1<<16; h <<= 1 {
		d.write(regmap.AggregatorH, h)
		d.expect(regmap.AggregatorH, h)
	}
	d.expectRefusal(regmap.AggregatorH, 0, fpga.ErrRefused, regmap.CommonErrorsValue)
	d.expectRefusal(regmap.AggregatorH, 1<<16, fpga.ErrRefused, regmap.CommonErrorsValue)
	d.expectRefusal(regmap.AggregatorInspectIndex, 0, fpga.ErrRefused, regmap.CommonErrorsState)
	d.write(regmap.QueueControl, regmap.QueueControlFreeze)
	d.write(regmap.AggregatorInspectIndex, 0)
	d.expect(regmap.AggregatorInspectState, 0)
	d.expect(regmap.AggregatorOccupied, 0)
}
