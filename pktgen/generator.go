package pktgen

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
)

// Registers provides the register access for programming the generator. Every device implements it. Addresses are byte
// offsets in BAR2.
type Registers = regmap.Registers

// Source is a stream of descriptors in order of time, such as a Schedule. The flow of a descriptor is a worker ID or,
// if an update has several segments, identifies a worker and a segment.
type Source interface {
	Total() int
	// Fill writes the next descriptors to dst and returns their number, which is less than len(dst) only at the end.
	Fill(dst []regmap.Descriptor) int
}

// Job is a job that a generator can play.
type Job struct {
	Placement
	Addressing Addressing
	Size       olaf.Size // size of frames whose descriptor has no length
	Values     int       // values per update; more than fit into a frame take one flow per segment, worker after worker
	Template   uint16    // payload of the frames; 0 is the built-in one with 1.0 in every lane
	Wire       Wire      // headers of all frames
	Source     Source    // consumed by Program
}

// Wire is the format of the frames in a flow. It consists of the register map's format code, which is 0 for OLAF and
// otherwise the code of a program, and the type of service in IPv4 headers. It requires the capability wire_formats.
type Wire struct {
	Format, ToS uint8
}

// State is the state of a generator.
type State uint8

// States of the register map.
const (
	Idle State = iota
	Armed
	Running
	Stopping
	Done
	Failed
)

var stateNames = [...]string{"idle", "armed", "running", "stopping", "done", "error"}

// String returns the name of the state in the register map.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Busy reports whether the generator is playing a job or is armed.
func (s State) Busy() bool { return s == Armed || s == Running || s == Stopping }

// Generator programs and controls the packet generator on a card. It reuses its buffers, so that a second job of the
// same size causes no allocation. It is not safe for concurrent use.
type Generator struct {
	regs        Registers
	descriptors []regmap.Descriptor
	words       []uint32
	bytes       []byte
	burst       uint32 // the longest burst in words; 0 means unlimited
	collects    bool   // collect steps instead of running them at once, for a device on another host
	collected   []regmap.Step
}

// allEvents contains all defined sticky event bits. Other bits must not be written.
const allEvents = regmap.GeneratorEventsDone | regmap.GeneratorEventsError | regmap.GeneratorEventsUnderrun |
	regmap.GeneratorEventsUnsorted | regmap.GeneratorEventsBadFlow | regmap.GeneratorEventsBadLength |
	regmap.GeneratorEventsRefused | regmap.GeneratorEventsValue

const (
	chunkWords  = 4096      // words between two checks of the context
	pollsAtMost = 5_000_000 // limit of polls of a busy proxy; a few seconds over PCIe
)

// NewGenerator returns a Generator that uses the registers regs. It does not access them yet.
func NewGenerator(regs Registers) *Generator {
	return &Generator{
		regs:        regs,
		descriptors: make([]regmap.Descriptor, chunkWords/regmap.DescriptorWords),
		words:       make([]uint32, chunkWords),
		bytes:       make([]byte, 4*chunkWords),
	}
}

// Limits contains the limits with which a generator was built.
type Limits struct {
	Flows       uint32
	Descriptors uint32
	Templates   uint32
	Packet      olaf.Size
}

// Limits reads the generator's build-time limits.
func (g *Generator) Limits() (Limits, error) {
	l, _, err := g.readLimits()
	return l, err
}

// readLimits reads the generator's build-time limits and its state, and stores the maximum burst length.
func (g *Generator) readLimits() (Limits, State, error) {
	built := []regmap.Step{regmap.ReadStep(regmap.GeneratorBuiltFlows), regmap.ReadStep(regmap.GeneratorBuiltDescriptors),
		regmap.ReadStep(regmap.GeneratorBuiltTemplates), regmap.ReadStep(regmap.CommonMaxPacketBytes), regmap.ReadStep(regmap.GeneratorState),
		regmap.ReadStep(regmap.GeneratorMemBurst)}
	if _, err := regmap.Do(g.regs, built); err != nil {
		return Limits{}, Idle, err
	}
	g.burst = built[5].Value
	return Limits{built[0].Value, built[1].Value, built[2].Value, olaf.Size(built[3].Value)}, stateIn(built[4].Value), nil
}

// countFlows returns the number of flows that a job needs.
func (j *Job) countFlows() int { return j.Workers * countSegments(j.Values, j.Size) }

// checkJob returns an error if a job exceeds the limits. It is called before anything is written.
func (l Limits) checkJob(job *Job) error {
	for _, c := range []struct {
		need, built int64
		what, hint  string
	}{
		{int64(job.countFlows()), int64(l.Flows), "flows (one a worker and segment), built_flows", ""},
		{int64(job.Source.Total()), int64(l.Descriptors), "descriptors (one a frame), built_descriptors", ""},
		{int64(job.Template) + 1, int64(l.Templates), "templates, built_templates", ""},
		{int64(job.Size), int64(l.Packet), "bytes a frame, max_packet_bytes", " (the smallest MTU of its interfaces + 14)"},
	} {
		if c.need > c.built {
			return fmt.Errorf("%w: it needs %d %s is %d%s", ErrLimit, c.need, c.what, c.built, c.hint)
		}
	}
	return nil
}

// checkFlows returns an error if a job has too many flows.
func (l Limits) checkFlows(job *Job) error {
	if job.countFlows() > int(l.Flows) {
		return fmt.Errorf("%w: %d flows, built_flows is %d", ErrLimit, job.countFlows(), l.Flows)
	}
	return nil
}

// Program loads the job's flow table and descriptors through the memory proxy and verifies both with CRCs. The
// generator must be neither armed nor running. When Program has returned without error, the generator can be armed. If
// the job exceeds the limits, Program changes nothing and returns an error that matches ErrLimit. Other errors match
// ErrState, ErrImage or ErrWorkload, or come from the registers or the context.
func (g *Generator) Program(ctx context.Context, job Job) error {
	if err := job.Addressing.Validate(job.Workers); err != nil {
		return err
	}
	limits, state, err := g.readLimits()
	if err != nil {
		return err
	}
	if err := errors.Join(limits.checkJob(&job), checkIdle(state)); err != nil {
		return err
	}
	total := job.Source.Total()
	if err := g.loadFlows(ctx, &job, regmap.WriteStep(regmap.GeneratorEvents, allEvents)); err != nil {
		return err
	}
	end := []regmap.Step{regmap.WriteStep(regmap.GeneratorFlows, uint32(job.countFlows())),
		regmap.WriteStep(regmap.GeneratorDescriptors, uint32(total)), regmap.WriteStep(regmap.GeneratorStopAfter, 0),
		regmap.WriteStep(regmap.GeneratorStopAfter+4, 0), regmap.ReadStep(regmap.GeneratorEvents)}
	if err := g.loadMemory(ctx, regmap.GeneratorMemSelectMemoryDescriptors, total*regmap.DescriptorWords,
		g.descriptorWords(job.Source), nil, end); err != nil {
		return fmt.Errorf("load the descriptors: %w", err)
	}
	return g.explainRefused("programming", end[4].Value)
}

// checkIdle returns an error that matches ErrState if the generator is busy, because its memories then cannot be
// changed.
func (g *Generator) checkIdle() error {
	state, err := g.State()
	if err != nil {
		return err
	}
	return checkIdle(state)
}

func checkIdle(state State) error {
	if state.Busy() {
		return fmt.Errorf("%w: it is %v; stop it first", ErrState, state)
	}
	return nil
}

// loadFlows performs the steps in before and then writes the flow table.
func (g *Generator) loadFlows(ctx context.Context, job *Job, before ...regmap.Step) error {
	if err := g.loadMemory(ctx, regmap.GeneratorMemSelectMemoryFlows, job.countFlows()*regmap.FlowWords,
		g.flowWords(job), before, nil); err != nil {
		return fmt.Errorf("load the flow table: %w", err)
	}
	return nil
}

// WriteFlows writes only the flow table of a job and does not use the job's Source. It is for flows that change later,
// and for hosts that are not on the card. It returns the same errors as Program.
func (g *Generator) WriteFlows(ctx context.Context, job Job) error {
	if err := job.Addressing.Validate(job.Workers); err != nil {
		return err
	}
	limits, err := g.Limits()
	if err != nil {
		return err
	}
	if err := errors.Join(limits.checkFlows(&job), g.checkIdle()); err != nil {
		return err
	}
	if err := g.loadFlows(ctx, &job); err != nil {
		return err
	}
	if err := g.regs.Write32(regmap.GeneratorFlows, uint32(job.countFlows())); err != nil {
		return err
	}
	return g.checkRefused("describing flows")
}

// ReadFlows reads the entries in use from the card's flow table. Errors match ErrState if the generator is busy or the
// table changes during reading, match ErrLimit if the number of entries is impossible, or come from the registers.
func (g *Generator) ReadFlows() ([]regmap.Flow, error) {
	const looks = 4
	var before []regmap.Flow
	for i := range looks {
		flows, err := g.readFlowsOnce()
		if err != nil {
			return nil, err
		}
		// Each pass continues through the memory, so that no word is read twice in a row. After a reset the card has no
		// flows in use, and the words read after that are meaningless.
		if i > 0 && slices.Equal(flows, before) {
			return flows, nil
		}
		before = flows
	}
	return nil, fmt.Errorf("%w: no two looks at the flows agree; end other programs that write to the card", ErrState)
}

// readFlowsOnce reads the flow table once, without checking whether it changed.
func (g *Generator) readFlowsOnce() ([]regmap.Flow, error) {
	if err := g.checkIdle(); err != nil {
		return nil, err
	}
	n, err := g.regs.Read32(regmap.GeneratorFlows)
	if err != nil {
		return nil, err
	}
	if n > maxFlows {
		return nil, fmt.Errorf("%w: the card says that %d flows are in use, and %d can be; 'olafctl device reg dump' shows what else it says", ErrLimit, n, maxFlows)
	}
	if err := g.regs.Write32(regmap.GeneratorMemSelect, regmap.GeneratorMemSelectMemoryFlows); err != nil {
		return nil, err
	}
	flows := make([]regmap.Flow, n)
	var words [regmap.FlowWords]uint32
	for i := range flows {
		for k := range words {
			if words[k], err = g.regs.Read32(regmap.GeneratorMemData); err != nil {
				return nil, err
			}
		}
		flows[i].Get(words[:])
	}
	return flows, nil
}

// flowWords returns a function that returns the words of the flow table in chunks that use the buffer g.words.
func (g *Generator) flowWords(job *Job) func() ([]uint32, error) {
	next, each := 0, countSegments(job.Values, job.Size)
	return func() ([]uint32, error) {
		n := min(job.countFlows()-next, chunkWords/regmap.FlowWords)
		for i := range n {
			worker, segment := (next+i)/each, (next+i)%each
			f := job.Addressing.makeFlow(worker, segment, job.Placement, segmentSize(segment, job.Values, job.Size),
				job.Template, job.Wire)
			f.Put(g.words[i*regmap.FlowWords:])
		}
		next += n
		return g.words[:n*regmap.FlowWords], nil
	}
}

// descriptorWords returns a function that returns the words of the descriptor stream in chunks that use the buffer
// g.words.
func (g *Generator) descriptorWords(src Source) func() ([]uint32, error) {
	return func() ([]uint32, error) {
		n := src.Fill(g.descriptors)
		for i := range g.descriptors[:n] {
			d := &g.descriptors[i]
			if d.Time > regmap.MaxDescriptorTime {
				return nil, fmt.Errorf("%w: a packet at cycle %d, the run clock ends at %d", ErrLimit, d.Time,
					int64(regmap.MaxDescriptorTime))
			}
			d.Put(g.words[i*regmap.DescriptorWords:])
		}
		return g.words[:n*regmap.DescriptorWords], nil
	}
}

// loadMemory performs the steps in before, writes the words that next returns to a memory, starting at address 0, and
// compares the CRCs. If they are equal, it performs the steps in after. total is the number of words.
func (g *Generator) loadMemory(ctx context.Context, memory uint32, total int, next func() ([]uint32, error), before, after []regmap.Step) error {
	_, g.collects = g.regs.(regmap.Lister)
	g.collects, g.collected = g.collects && g.burst == 0, g.collected[:0]
	begin := append(before, regmap.WriteStep(regmap.GeneratorMemSelect, memory), regmap.WriteStep(regmap.GeneratorMemAddress, 0))
	if err := g.issueSteps(begin...); err != nil {
		return err
	}
	crc := uint32(0)
	for left := total; left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		words, err := next()
		if err != nil {
			return err
		}
		if len(words) == 0 || len(words) > left {
			return fmt.Errorf("%w: the source announced %d words and yields another number", ErrWorkload, total)
		}
		if err := g.writeChunk(words); err != nil {
			return err
		}
		crc = crc32.Update(crc, crc32.IEEETable, g.littleEndian(words))
		left -= len(words)
	}
	return g.verifyCRC(uint32(total), crc, after)
}

// writeChunk writes words in bursts of at most the proxy's limit and waits after each burst. For a remote device, it
// may collect the words first.
func (g *Generator) writeChunk(words []uint32) error {
	if g.collects {
		return g.issueSteps(regmap.Step{Addr: regmap.GeneratorMemData, Words: slices.Clone(words)})
	}
	for len(words) > 0 {
		n := len(words)
		if g.burst > 0 {
			n = min(n, int(g.burst))
		}
		if err := g.regs.WriteBurst(regmap.GeneratorMemData, words[:n]); err != nil {
			return err
		}
		words = words[n:]
		if g.burst > 0 {
			if err := g.proxyIdle(); err != nil {
				return err
			}
		}
	}
	return nil
}

// stepsAtMost is the maximum number of steps in one list. With chunks of words, the list takes up 4 MiB.
const stepsAtMost = 256

// issueSteps performs steps whose results are not needed. For a remote device, it may collect them and perform them
// later.
func (g *Generator) issueSteps(steps ...regmap.Step) error {
	if g.collects && len(g.collected) < stepsAtMost {
		g.collected = append(g.collected, steps...)
		return nil
	}
	_, err := g.doSteps(steps)
	return err
}

// doSteps performs the collected steps followed by the given steps, like regmap.Do.
func (g *Generator) doSteps(steps []regmap.Step) (done int, err error) {
	before := len(g.collected)
	all := append(g.collected, steps...)
	g.collected = g.collected[:0]
	done, err = regmap.Do(g.regs, all)
	copy(steps, all[before:])
	return done - before, err
}

func (g *Generator) littleEndian(words []uint32) []byte {
	b := g.bytes[:4*len(words)]
	for i, w := range words {
		binary.LittleEndian.PutUint32(b[4*i:], w)
	}
	return b
}

// verifyCRC compares crc with the CRC that the proxy computes over the first words of the selected memory. If they are
// equal, it performs the steps in after.
func (g *Generator) verifyCRC(words, crc uint32, after []regmap.Step) error {
	const atStatus, atCRC = 2, 3
	steps := append([]regmap.Step{regmap.WriteStep(regmap.GeneratorMemLength, words),
		regmap.WriteStep(regmap.GeneratorMemCommand, regmap.GeneratorMemCommandCRC),
		regmap.ExpectStep(regmap.GeneratorMemStatus, regmap.GeneratorMemStatusBusy, 0),
		regmap.ExpectStep(regmap.GeneratorMemCRC, ^uint32(0), crc)}, after...)
	done, err := g.doSteps(steps)
	if done == atStatus && errors.Is(err, regmap.ErrUnexpected) {
		if err := g.proxyIdle(); err != nil {
			return err
		}
		done, err = regmap.Do(g.regs, steps[atCRC:])
		done += atCRC
	}
	copy(after, steps[atCRC+1:])
	if done == atCRC && errors.Is(err, regmap.ErrUnexpected) {
		return fmt.Errorf("%w: CRC-32 %08x over %d words, wrote %08x; load it again, and check the card if it stays",
			ErrImage, steps[atCRC].Value, words, crc)
	}
	return err
}

func (g *Generator) proxyIdle() error {
	for range pollsAtMost {
		v, err := g.regs.Read32(regmap.GeneratorMemStatus)
		if err != nil {
			return err
		}
		if v&regmap.GeneratorMemStatusBusy == 0 {
			return nil
		}
	}
	return fmt.Errorf("%w: its memory proxy stays busy", ErrState)
}

// State reads the generator's state.
func (g *Generator) State() (State, error) {
	v, err := g.regs.Read32(regmap.GeneratorState)
	if err != nil {
		return Idle, err
	}
	return stateIn(v), nil
}

// stateIn returns the state in a value of the register generator.state.
func stateIn(v uint32) State {
	return State(v & regmap.GeneratorStateStateMask >> regmap.GeneratorStateStateShift)
}

// Arm makes the generator check flows and descriptors and hold its run clock at 0. If the job is invalid, the error
// matches ErrState and contains the reason.
func (g *Generator) Arm() error {
	return g.runCommand(regmap.GeneratorCommandArm, "arm", Armed)
}

// Start starts the run clock of an armed generator.
func (g *Generator) Start() error {
	return g.runCommand(regmap.GeneratorCommandStart, "start", Running, Stopping, Done)
}

// ArmAndStart is like Arm followed by Start, with a single list of accesses.
func (g *Generator) ArmAndStart() error {
	arm, start := commandSteps(regmap.GeneratorCommandArm), commandSteps(regmap.GeneratorCommandStart)
	state, events := &arm[2], &arm[3]
	state.Mask, state.Want = regmap.GeneratorStateStateMask, uint32(Armed)<<regmap.GeneratorStateStateShift
	events.Mask = refusals
	steps := append(arm, start...)
	done, err := regmap.Do(g.regs, steps)
	switch {
	case done < len(arm) && errors.Is(err, regmap.ErrUnexpected): // Arm returns an error that explains it
		if err := g.Arm(); err != nil {
			return err
		}
		return g.Start()
	case err != nil:
		return err
	}
	return g.checkCommand("start", steps[len(arm):], Running, Stopping, Done)
}

// Stop stops the generator after the packet that it is sending.
func (g *Generator) Stop() error {
	return g.runCommand(regmap.GeneratorCommandStop, "stop", Idle, Stopping, Done)
}

// Abort stops the generator immediately, from any state.
func (g *Generator) Abort() error {
	return g.runCommand(regmap.GeneratorCommandAbort, "abort", Idle)
}

// runCommand issues a command and checks that the generator has reached one of the goal states.
func (g *Generator) runCommand(bit uint32, verb string, goals ...State) error {
	steps := commandSteps(bit)
	if _, err := regmap.Do(g.regs, steps); err != nil {
		return err
	}
	return g.checkCommand(verb, steps, goals...)
}

// refusals contains the event bits of a refused command.
const refusals = regmap.GeneratorEventsRefused | regmap.GeneratorEventsValue

// commandSteps returns the steps that issue a command and read the state and the events.
func commandSteps(bit uint32) []regmap.Step {
	return []regmap.Step{regmap.WriteStep(regmap.GeneratorEvents, refusals), regmap.WriteStep(regmap.GeneratorCommand, bit),
		regmap.ReadStep(regmap.GeneratorState), regmap.ReadStep(regmap.GeneratorEvents)}
}

// checkCommand checks the values that the steps of a command have read. It returns an error if the command was refused
// or did not reach one of the goal states.
func (g *Generator) checkCommand(verb string, steps []regmap.Step, goals ...State) error {
	state := stateIn(steps[2].Value)
	if err := g.explainRefused(verb, steps[3].Value); err != nil || slices.Contains(goals, state) {
		return err
	}
	return fmt.Errorf("%w: after %s it is %v%s", ErrState, verb, state, g.errorText())
}

// checkRefused returns an error if the sticky events show that writes were refused.
func (g *Generator) checkRefused(doing string) error {
	v, err := g.regs.Read32(regmap.GeneratorEvents)
	if err != nil {
		return err
	}
	return g.explainRefused(doing, v)
}

// explainRefused returns an error if v, a value of the register generator.events, shows that writes were refused.
func (g *Generator) explainRefused(doing string, v uint32) error {
	if v&refusals != 0 {
		return fmt.Errorf("%w: %s%s", ErrState, doing, g.errorText())
	}
	return nil
}

// errorText returns a description of the sticky error events that begins with a colon, or "" if there are none.
func (g *Generator) errorText() string {
	v, err := g.regs.Read32(regmap.GeneratorEvents)
	if err != nil {
		return ""
	}
	var say []string
	for _, e := range []struct {
		bit  uint32
		text string
	}{
		{regmap.GeneratorEventsUnderrun, "a descriptor that was never loaded came due"},
		{regmap.GeneratorEventsUnsorted, "a descriptor's time lies before its predecessor's"},
		{regmap.GeneratorEventsBadFlow, "a descriptor names a flow that is not enabled"},
		{regmap.GeneratorEventsBadLength, "a frame length is not possible"},
		{regmap.GeneratorEventsRefused, "the state does not allow it"},
		{regmap.GeneratorEventsValue, "a value is outside the built limits"},
	} {
		if v&e.bit != 0 {
			say = append(say, e.text)
		}
	}
	if len(say) == 0 {
		return ""
	}
	return ": " + strings.Join(say, ", ")
}
