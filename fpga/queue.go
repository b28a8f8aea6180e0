package fpga

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/regmap"
)

// QueueConfig configures the OlafQueue block of a card (docs/reference/registers.md, queue).
type QueueConfig struct {
	Discipline      string // one of engine.DisciplineNames
	Depth           int    // slots in use
	Output          engine.Output
	RewardFilter    bool
	RewardThreshold int32 // Q24.8
	Provenance      bool  // log the contributors of every update; needs the capability
	// Program is the switch program in front of the queue, which combines H updates into one. If it is nil, updates
	// pass unchanged.
	Program *program.Description
	H       int
	// Segments is the number of frames per update, each summed separately; 0 means 1.
	Segments int
	// Downlink is the rate of the link to each worker over which sums leave. If it is 0, sums go to the server.
	Downlink engine.Increment
}

// NotBuilt is the error for a card whose build does not include a switch program. It matches ErrRefused.
type NotBuilt struct{ Address, Program string }

func (e *NotBuilt) Error() string {
	return fmt.Sprintf("%s is not built with the program %s; 'olafctl system show %[2]s' lists where it runs", e.Address,
		e.Program)
}

// Unwrap returns ErrRefused.
func (e *NotBuilt) Unwrap() error { return ErrRefused }

// CheckProgramBuilt returns nil if the card's build includes program p. Otherwise it returns a *NotBuilt, or the error
// from reading a register.
func CheckProgramBuilt(d Device, p *program.Description) error {
	has, err := hasAggregator(d)
	if err != nil {
		return err
	}
	var built uint32
	if has {
		if built, err = d.Read32(regmap.AggregatorBuiltPrograms); err != nil {
			return err
		}
	}
	if built>>p.Code&1 == 0 {
		return &NotBuilt{d.Identity().Address, p.Name}
	}
	return nil
}

func hasAggregator(d Device) (bool, error) {
	capabilities, err := d.Read32(regmap.CommonCapabilities)
	return capabilities&regmap.CommonCapabilitiesAggregator != 0, err
}

// HasNoEngineCycles reports whether merging takes no engine cycles on the device and this cannot be changed.
func HasNoEngineCycles(d Device) (bool, error) {
	capabilities, err := d.Read32(regmap.CommonCapabilities)
	if err != nil || capabilities&regmap.CommonCapabilitiesModelCycles != 0 {
		return false, err
	}
	dequeue, err := d.Read32(regmap.QueueDequeueCycles)
	if err != nil || dequeue != 0 {
		return false, err
	}
	merge, err := d.Read32(regmap.QueueMergeCycles)
	return err == nil && merge == 0, err
}

// ConfigureQueue disables the queue, waits until it is empty, writes the configuration, reads it back, enables the
// queue again and clears all counters as ClearCounters does. If the card's build does not support the configuration,
// the error matches ErrRefused and names the limit.
func ConfigureQueue(ctx context.Context, d Device, c QueueConfig) error {
	capabilities, err := d.Read32(regmap.CommonCapabilities)
	if err != nil {
		return err
	}
	if err := c.checkBuild(d, capabilities); err != nil {
		return err
	}
	steps := append(stopSteps(), c.listSteps(capabilities)...)
	steps = append(steps, clearSteps()...)
	done, err := regmap.Do(d, steps)
	if done == 1 && errors.Is(err, regmap.ErrUnexpected) {
		if err = drainOrFlush(ctx, d); err != nil {
			return err
		}
		done, err = regmap.Do(d, steps[2:])
		done += 2
	}
	if err != nil {
		return explainStep(&steps[done], err)
	}
	return checkCleared(d, steps[len(steps)-clearLength:])
}

// explainStep returns an error that explains why a step in the configuration of a queue failed.
func explainStep(s *regmap.Step, err error) error {
	name := fmt.Sprintf("%#x", s.Addr)
	if ref, _, ok := regmap.RegisterAt(s.Addr); ok {
		name = ref.Name()
	}
	switch {
	case errors.Is(err, regmap.ErrUnexpected):
		return fmt.Errorf("%w: %s is %#x after %#x was written", ErrRefused, name, s.Value, s.Want)
	case s.Write:
		return fmt.Errorf("configure the queue: write %s: %w", name, err)
	}
	return fmt.Errorf("configure the queue: read back %s: %w", name, err)
}

// checkBuild returns an error if the card's build does not support the configuration.
func (c *QueueConfig) checkBuild(d Device, capabilities uint32) error {
	slots, err := d.Read32(regmap.QueueBuiltSlots)
	if err != nil {
		return err
	}
	if c.Program != nil {
		if err := CheckProgramBuilt(d, c.Program); err != nil {
			return err
		}
	}
	refusals := []struct {
		bad bool
		say string
	}{
		{!slices.Contains(engine.DisciplineNames(), c.Discipline),
			fmt.Sprintf("there is no queue %q; there are %v", c.Discipline, engine.DisciplineNames())},
		{c.Depth < 1 || uint32(c.Depth) > slots,
			fmt.Sprintf("%d slots asked for; %s was built with %d", c.Depth, d.Identity().Address, slots)},
		{c.Provenance && capabilities&regmap.CommonCapabilitiesProvenance == 0, "this build has no provenance log"},
		{c.Segments > 1 && capabilities&regmap.CommonCapabilitiesWireFormats == 0,
			"this build adds each cluster up in one segment, and updates take several"},
		{c.Downlink != 0 && capabilities&regmap.CommonCapabilitiesDownlinks == 0,
			"this build has no links to the workers, by which sums could leave"},
	}
	for _, r := range refusals {
		if r.bad {
			return fmt.Errorf("%w: %s", ErrRefused, r.say)
		}
	}
	return nil
}

// listSteps returns the steps that configure a disabled queue and then enable it. Each write is followed by a read that
// expects the written value. Engine cycles are written only to a model, because they are fixed on a card.
func (c *QueueConfig) listSteps(capabilities uint32) (steps []regmap.Step) {
	write := func(addr, value uint32) {
		steps = append(steps, regmap.WriteStep(addr, value), regmap.ExpectStep(addr, ^uint32(0), value))
	}
	discipline, _ := engine.FindDiscipline(c.Discipline)
	mode := discipline.Code
	if c.RewardFilter {
		mode |= regmap.QueueModeRewardFilter
	}
	if c.Provenance {
		mode |= regmap.QueueModeProvenance
	}
	write(regmap.QueueMode, mode)
	write(regmap.QueueDepth, uint32(c.Depth))
	write(regmap.QueueRewardThreshold, uint32(c.RewardThreshold))
	write(regmap.QueueLimiterControl, regmap.QueueLimiterControlEnable)
	write(regmap.QueueLimiterIncrement, uint32(cmp.Or(c.Output.Rate, engine.Line)))
	write(regmap.QueueLimiterOverhead, uint32(c.Output.OverheadBytes))
	if capabilities&regmap.CommonCapabilitiesModelCycles != 0 {
		write(regmap.QueueDequeueCycles, uint32(c.Output.DequeueCycles))
		write(regmap.QueueMergeCycles, uint32(c.Output.MergeCycles))
	}
	if capabilities&regmap.CommonCapabilitiesAggregator != 0 {
		c.writeProgram(capabilities, write)
	}
	if c.Program != nil { // counters are left over from an earlier run
		steps = append(steps, regmap.WriteStep(regmap.AggregatorCommand, regmap.AggregatorCommandClear))
	}
	return append(steps, regmap.WriteStep(regmap.QueueControl, regmap.QueueControlEnable))
}

// writeProgram writes the registers that select the switch program before the queue and the destination of its sums.
func (c *QueueConfig) writeProgram(capabilities uint32, write func(addr, value uint32)) {
	if c.Program == nil {
		write(regmap.AggregatorProgram, 0)
		return
	}
	write(regmap.AggregatorProgram, c.Program.Code)
	write(regmap.AggregatorH, uint32(c.H))
	switch {
	case capabilities&regmap.CommonCapabilitiesDownlinks == 0:
	case c.Downlink == 0:
		write(regmap.AggregatorResults, 0)
	default:
		write(regmap.AggregatorResults, regmap.AggregatorResultsToWorkers)
		write(regmap.AggregatorDownlinkIncrement, uint32(c.Downlink))
	}
	if capabilities&regmap.CommonCapabilitiesWireFormats != 0 {
		write(regmap.AggregatorSegments, uint32(max(c.Segments, 1)))
	}
}

// drainStep is the device time between two polls while the queue drains.
const drainStep = 10 * olaf.Microsecond

// StopQueue disables the queue and waits until it is empty. Frames that are still queued after one second of device
// time are flushed.
func StopQueue(ctx context.Context, d Device) error {
	switch _, err := regmap.Do(d, stopSteps()); {
	case errors.Is(err, regmap.ErrUnexpected):
		return drainOrFlush(ctx, d)
	case err != nil:
		return fmt.Errorf("disable the queue: %w", err)
	}
	return nil
}

// stopSteps returns the steps that disable the queue and check that it is empty.
func stopSteps() []regmap.Step {
	return []regmap.Step{regmap.WriteStep(regmap.QueueControl, 0),
		regmap.ExpectStep(regmap.QueueStatus, regmap.QueueStatusEmpty, regmap.QueueStatusEmpty)}
}

// drainOrFlush waits until a disabled queue is empty. If it is not empty after one second of device time, it is
// flushed.
func drainOrFlush(ctx context.Context, d Device) error {
	if err := DrainQueue(ctx, d); err != nil {
		return err
	}
	empty, err := queueEmpty(d)
	if err != nil || empty {
		return err
	}
	if err := d.Write32(regmap.QueueCommand, regmap.QueueCommandFlush); err != nil {
		return fmt.Errorf("flush the queue: %w", err)
	}
	if empty, err = queueEmpty(d); err == nil && !empty {
		err = fmt.Errorf("%w: the queue is not empty after it was flushed; reset the device", ErrDoubtful)
	}
	return err
}

// DrainQueue waits until the queue is empty, for at most one second of device time.
func DrainQueue(ctx context.Context, d Device) error {
	for waited := olaf.Duration(0); waited < olaf.Second; waited += drainStep {
		if empty, err := queueEmpty(d); err != nil || empty {
			return err
		}
		if err := d.Sleep(ctx, drainStep); err != nil {
			return err
		}
	}
	return nil
}

// DrainDownlinks waits until no sum for the workers is queued. The device must have downlinks.
func DrainDownlinks(ctx context.Context, d Device) error {
	for {
		waiting, err := d.Read32(regmap.AggregatorDownlinkWaiting)
		if err != nil || waiting == 0 {
			return err
		}
		if err := d.Sleep(ctx, drainStep); err != nil {
			return err
		}
	}
}

func queueEmpty(d Device) (bool, error) {
	status, err := d.Read32(regmap.QueueStatus)
	return status&regmap.QueueStatusEmpty != 0, err
}

// Counters contains all counter banks of a card, as latched in one cycle.
type Counters struct {
	Queue     regmap.QueueCounters
	Generator regmap.GeneratorCounters
	// Aggregator contains the counters of the program in front of the queue. Only SnapshotProgram fills it.
	Aggregator regmap.AggregatorCounters
	// MostSegments is the peak number of segments with a partial sum in the table.
	MostSegments uint64
}

// Snapshot latches all counters in one cycle and reads them.
func Snapshot(d Device) (Counters, error) {
	var c Counters
	if err := d.Write32(regmap.CommonCommand, regmap.CommonCommandSnapshot); err != nil {
		return c, fmt.Errorf("snapshot the counters: %w", err)
	}
	var err error
	if c.Queue, err = regmap.ReadQueueCounters(d); err != nil {
		return c, fmt.Errorf("read the queue's counters: %w", err)
	}
	if c.Generator, err = regmap.ReadGeneratorCounters(d); err != nil {
		return c, fmt.Errorf("read the generator's counters: %w", err)
	}
	return c, nil
}

// SnapshotProgram does the same as Snapshot and also reads the counters of the switch program before the queue. The
// card's build must include a program.
func SnapshotProgram(d Device) (Counters, error) {
	c, err := Snapshot(d)
	if err != nil {
		return c, err
	}
	version, err := d.Read32(regmap.AggregatorVersion)
	if err != nil {
		return c, fmt.Errorf("read the version of the program's block: %w", err)
	}
	if c.Aggregator, err = regmap.ReadAggregatorCounters(olderBank{d, version}); err != nil {
		return c, fmt.Errorf("read the counters of the program: %w", err)
	}
	most, err := d.Read32(regmap.AggregatorPeakOccupied)
	if err != nil {
		return c, fmt.Errorf("read the most segments of the program: %w", err)
	}
	c.MostSegments = uint64(most)
	return c, nil
}

// bankVersions lists the counters that were added to the aggregator block later, with the version of the block that
// introduced them.
var bankVersions = map[uint32]uint32{
	regmap.AggregatorOccupancyIntegral: 1<<24 | 3<<16,
	regmap.AggregatorOccupancyCycles:   1<<24 | 4<<16,
}

// olderBank reads the counter bank of an aggregator block with the given version. Counters that were added after this
// version read as 0.
type olderBank struct {
	regmap.Reader
	version uint32
}

func (b olderBank) Read32(addr uint32) (uint32, error) {
	if b.version < bankVersions[addr&^4] {
		return 0, nil
	}
	return b.Reader.Read32(addr)
}

// ClearCounters clears all running counters and takes a snapshot to confirm this. The error matches ErrDoubtful if the
// counters still cover the time before the command.
func ClearCounters(d Device) error {
	steps := clearSteps()
	if _, err := regmap.Do(d, steps); err != nil {
		return err
	}
	return checkCleared(d, steps)
}

// clearLength is the number of steps needed to clear the counters.
const clearLength = 4

func clearSteps() []regmap.Step {
	return []regmap.Step{regmap.ReadStep(regmap.CommonCycles), regmap.ReadStep(regmap.CommonCycles + 4),
		regmap.WriteStep(regmap.CommonCommand, regmap.CommonCommandClear),
		regmap.WriteStep(regmap.CommonCommand, regmap.CommonCommandSnapshot)}
}

// checkCleared returns an error if the counters were not cleared by the given steps, which have been performed.
func checkCleared(d Device, steps []regmap.Step) error {
	before := uint64(steps[1].Value)<<32 | uint64(steps[0].Value)
	taken, err := regmap.Read64(d, regmap.QueueSnapshotCycle)
	if err != nil {
		return err
	}
	covered, err := regmap.Read64(d, regmap.QueueCoveredCycles)
	if err != nil {
		return err
	}
	if taken < before+covered {
		return fmt.Errorf("%w: the clear of the counters was lost: they cover %d cycles at cycle %d, and it was given after cycle %d; clear them again", ErrDoubtful, covered, taken, before)
	}
	return nil
}

// ProgramCounters returns the counters of the switch program before the queue, by register address. The map is empty if
// there is no program or if it is not in known.
func ProgramCounters(d Registers, known []program.Description) (map[uint32]*olaf.Counter, error) {
	counters := map[uint32]*olaf.Counter{}
	code, err := d.Read32(regmap.AggregatorProgram)
	if err != nil || code == 0 {
		return counters, err
	}
	for i := range known {
		for k := range known[i].Ledger.Counters {
			if known[i].Code == code {
				counters[regmap.AggregatorCount0+uint32(8*k)] = &known[i].Ledger.Counters[k]
			}
		}
	}
	return counters, nil
}

// HasGeneratorControl reports whether the device's generator can send its frames out of the card. It checks the version
// of the register map. The register generator.control exists since version 1.5, and older images return a placeholder.
func HasGeneratorControl(d Registers) (bool, error) {
	version, err := d.Read32(regmap.CommonMapVersion)
	return version >= 1<<24|5<<16, err
}
