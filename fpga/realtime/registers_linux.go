package realtime

import (
	"errors"
	"slices"
	"time"

	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/regfile"
	"github.com/olafctl/olaf/fpga/regmap"
)

// queueConfig is the queue's configuration, as read from the registers that take effect when the queue is enabled.
type queueConfig struct {
	discipline uint32 // register value
	settings   dataplane.Settings
	output     engine.Output
}

// engineConfig returns the configuration for an engine that makes the same decisions as the plane.
func (q *queueConfig) engineConfig() engine.Config {
	s := &q.settings
	return engine.Config{
		Slots: s.Depth, Clusters: builtClusters, FreeSlotOnStart: s.FreeSlotOnStart, RewardFilter: s.RewardFilter,
		RewardThreshold: s.RewardThreshold,
	}
}

func (c *Card) readQueueConfig() queueConfig {
	mode := c.file.Reg(regmap.QueueMode)
	q := queueConfig{
		discipline: mode & regmap.QueueModeDisciplineMask,
		settings: dataplane.Settings{
			Depth:           int(c.file.Reg(regmap.QueueDepth)),
			FreeSlotOnStart: mode&regmap.QueueModeFreeOnStart != 0,
			RewardFilter:    mode&regmap.QueueModeRewardFilter != 0,
			RewardThreshold: int32(c.file.Reg(regmap.QueueRewardThreshold)),
		},
		output: engine.Output{OverheadBytes: int(c.file.Reg(regmap.QueueLimiterOverhead))},
	}
	if c.file.Reg(regmap.QueueLimiterControl)&regmap.QueueLimiterControlEnable != 0 {
		q.output.Rate = engine.Increment(c.file.Reg(regmap.QueueLimiterIncrement))
	}
	return q
}

// capabilities returns the capability bits of this build. It has no configurable engine cycles, because merging takes
// the machine's own time. It has no provenance log, because contributors are in the decision log, and no server model.
func (c *Card) capabilities() uint32 {
	bits := regmap.CommonCapabilitiesFreeOnStart | regmap.CommonCapabilitiesLanes
	if c.builtPrograms() != 1 {
		bits |= regmap.CommonCapabilitiesAggregator
	}
	return bits
}

// behaviour defines the effects of accessing the card's registers.
var behaviour = &regfile.Behaviour[*Card]{
	Name: "realtime", Live: live, Limits: limits, Effects: effects, Commands: commands,
	QueueBusy:     func(c *Card) bool { return c.enabled || !c.isEmpty() },
	GeneratorBusy: func(c *Card) bool { return c.generator.busy() },
}

// live lists the registers whose values are calculated from the card's state when they are read. All others return
// their stored value.
var live = map[uint32]func(*Card) uint32{
	regmap.CommonCycles: func(c *Card) uint32 {
		now := uint64(c.cycle(c.clock.now()))
		c.file.Set(regmap.CommonCycles+4, uint32(now>>32))
		return uint32(now)
	},
	regmap.CommonErrors: func(c *Card) uint32 {
		c.raiseEvents()
		return c.file.Reg(regmap.CommonErrors)
	},
	regmap.QueueErrors: func(c *Card) uint32 {
		c.raiseEvents()
		return c.file.Reg(regmap.QueueErrors)
	},
	regmap.QueueStatus: (*Card).queueStatus,
	regmap.QueueOccupancy: func(c *Card) uint32 {
		x := c.viewState()
		return uint32(c.countOccupied(&x))
	},
	regmap.QueueActiveClusters: func(c *Card) uint32 { return uint32(c.viewState().Active) },
	regmap.QueuePeakOccupancy:  func(c *Card) uint32 { return uint32(max(c.viewState().Peak, c.total.peak)) },
	regmap.GeneratorState: func(c *Card) uint32 {
		c.raiseEvents()
		return c.generatorState()
	},
	regmap.GeneratorEvents: func(c *Card) uint32 {
		c.raiseEvents()
		return c.file.Reg(regmap.GeneratorEvents)
	},
	regmap.CommonRole:           (*Card).role,
	regmap.CommonCapabilities:   func(c *Card) uint32 { return c.capabilities() },
	regmap.CommonBuildHash:      (*Card).buildHash,
	regmap.CommonClockHz:        regfile.ConstantRegister[*Card](uint32(clockHz)),
	regmap.CommonMaxPacketBytes: func(c *Card) uint32 { return uint32(c.generator.maxBytes()) },
	regmap.QueueBuiltSlots:      regfile.ConstantRegister[*Card](builtSlots),
	regmap.QueueBuiltClusters:   regfile.ConstantRegister[*Card](builtClusters),
	regmap.QueueBuiltLanes:      regfile.ConstantRegister[*Card](maxLanes),
	regmap.ModelNext: func(c *Card) uint32 {
		if c.builtPrograms() == 1 {
			return 0
		}
		return regmap.AggregatorBase
	},
	regmap.AggregatorBuiltSlots:    regfile.ConstantRegister[*Card](builtSegments),
	regmap.AggregatorBuiltPrograms: func(c *Card) uint32 { return c.builtPrograms() },
	regmap.AggregatorBuiltLanes:    regfile.ConstantRegister[*Card](maxLanes),
	regmap.AggregatorOccupied:      func(c *Card) uint32 { return c.front.readOccupied() },
	regmap.AggregatorPeakOccupied:  func(c *Card) uint32 { return c.front.peakOccupied() },
}

// limits lists the permitted ranges of numeric registers.
var limits = map[uint32]func(*Card) (low, high uint32){
	regmap.QueueDepth:            fixedLimits(1, builtSlots),
	regmap.QueueLimiterIncrement: fixedLimits(1, uint32(engine.Line)),
	regmap.QueueLimiterOverhead:  fixedLimits(0, engine.MaxOverheadBytes),
	regmap.QueueDequeueCycles:    fixedLimits(0, 0),
	regmap.QueueMergeCycles:      fixedLimits(0, 0),
	regmap.QueueClusterIndex:     fixedLimits(0, builtClusters-1),
	regmap.QueueInspectIndex:     fixedLimits(0, builtSlots),

	regmap.AggregatorH:            fixedLimits(1, 1<<16-1),
	regmap.AggregatorInspectIndex: fixedLimits(0, builtSegments),
}

// role returns the bits of the roles that the card can have.
func (c *Card) role() uint32 {
	switch {
	case c.hosts.isBetween():
		return regmap.CommonRoleAccelerator
	case c.hosts.Generator != "":
		return regmap.CommonRoleGenerator
	}
	return regmap.CommonRoleAccelerator | regmap.CommonRoleGenerator
}

func fixedLimits(low, high uint32) func(*Card) (uint32, uint32) {
	return func(*Card) (uint32, uint32) { return low, high }
}

// effects lists functions that run before a written value is stored. If a function returns a reason, the write is
// refused and must not have changed anything.
var effects = map[uint32]func(*Card, uint32) *regfile.Reason{
	regmap.GeneratorControl: func(c *Card, v uint32) *regfile.Reason {
		if v&regmap.GeneratorControlWire != 0 && c.generator.at == nil {
			return regfile.BadValue("its generator can feed only its own queue")
		}
		return nil
	},
	regmap.QueueMode: func(c *Card, v uint32) *regfile.Reason {
		kind, known := engine.FindByCode(v & regmap.QueueModeDisciplineMask)
		if !known || !slices.Contains(c.backend.Disciplines, kind.Name) {
			return regfile.BadValue("there is no such discipline")
		}
		if v&regmap.QueueModeProvenance != 0 {
			return regfile.BadValue("this build has no provenance log")
		}
		return nil
	},
	regmap.QueueControl: func(c *Card, v uint32) *regfile.Reason {
		return refusalReason(c.setControl(v&regmap.QueueControlEnable != 0, v&regmap.QueueControlFreeze != 0))
	},
	regmap.QueueInspectIndex: func(c *Card, v uint32) *regfile.Reason {
		if !c.frozen {
			c.file.Raise(regmap.QueueErrors, regmap.QueueErrorsNotFrozen)
			return regfile.BadState("freeze the queue first")
		}
		return refusalReason(c.inspectSlot(v))
	},
	regmap.QueueClusterIndex: func(c *Card, v uint32) *regfile.Reason { return refusalReason(c.selectCluster(v)) },
	regmap.AggregatorProgram: func(c *Card, v uint32) *regfile.Reason {
		if c.builtPrograms()>>v&1 == 0 {
			return regfile.BadValue("no program of that code is built")
		}
		return nil
	},
	regmap.AggregatorInspectIndex: func(c *Card, v uint32) *regfile.Reason {
		if !c.frozen {
			return regfile.BadState("freeze the queue first")
		}
		c.inspectFront(v)
		return nil
	},
	regmap.ModelControl: func(_ *Card, v uint32) *regfile.Reason {
		if v&regmap.ModelControlAck != 0 {
			return regfile.BadValue("this device has no model of a parameter server: a real one answers")
		}
		return nil
	},
}

func refusalReason(err error) *regfile.Reason {
	if err == nil {
		return nil
	}
	return regfile.BadState(err.Error())
}

// commands lists the functions that execute the bits written to command registers, starting with the lowest bit.
var commands = map[uint32]func(*Card, uint32) *regfile.Reason{
	regmap.CommonCommand: func(c *Card, v uint32) *regfile.Reason { return refusalReason(c.runCommand(v)) },
	regmap.QueueCommand: func(c *Card, v uint32) *regfile.Reason {
		if v&regmap.QueueCommandFlush == 0 {
			return nil
		}
		c.front.clearSums()
		return refusalReason(c.flushQueue())
	},
	regmap.AggregatorCommand: func(c *Card, v uint32) *regfile.Reason {
		if v&regmap.AggregatorCommandClear != 0 {
			c.front.clearSums()
		}
		return nil
	},
	regmap.GeneratorCommand: func(c *Card, v uint32) *regfile.Reason {
		c.raiseEvents()
		if v == regmap.GeneratorCommandArm && c.file.Reg(regmap.AggregatorProgram) != 0 {
			return regfile.BadState("the program in aggregator.program is for hosts that wait for answers and passes " +
				"no update from the generator; choose pass")
		}
		if v == regmap.GeneratorCommandArm && c.role()&regmap.CommonRoleGenerator == 0 {
			return regfile.BadState("a queue between two interfaces has no generator; name one with --generator")
		}
		if v == regmap.GeneratorCommandArm && c.generator.at != nil && c.file.Reg(regmap.GeneratorControl)&regmap.GeneratorControlWire == 0 {
			return regfile.BadState("a generator at an interface has no queue; use it as --generator of a device " +
				"with a queue")
		}
		return c.generator.runCommand(v)
	},
}

func (c *Card) runCommand(v uint32) error {
	var errs []error
	if v&regmap.CommonCommandSnapshot != 0 {
		errs = append(errs, c.latchRegisters())
	}
	if v&regmap.CommonCommandClear != 0 {
		errs = append(errs, c.clearCounters())
	}
	if v&regmap.CommonCommandReset != 0 {
		errs = append(errs, c.resetBlocks())
	}
	return errors.Join(errs...)
}

// resetBlocks resets the card to its state after Open, except for the clock and the tables.
func (c *Card) resetBlocks() error {
	c.generator.stopThread()
	c.generator.state.Store(idle)
	if err := errors.Join(c.setControl(false, false), c.flushQueue(), c.clearCounters()); err != nil {
		return err
	}
	c.front.endLoop()
	c.file.Reset()
	c.generator.events.Store(0)
	return c.adoptConfig(c.readQueueConfig())
}

// setControl applies a write to queue.control. Configuration registers that were changed while the queue was disabled
// take effect when it is enabled.
func (c *Card) setControl(enable, freeze bool) error {
	if enable && !c.enabled && c.isEmpty() {
		if err := c.adoptConfig(c.readQueueConfig()); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.plane == nil {
		return c.failure
	}
	if err := c.plane.Run(enable && !freeze); err != nil {
		return err
	}
	c.enabled = enable
	if now := c.clock.now(); freeze != c.frozen {
		c.pacer.setFreeze(freeze, now-c.frozenAt)
		c.frozen, c.frozenAt = freeze, now
	}
	return nil
}

// raiseEvents sets the bits for events that the threads and the plane noticed since its previous call.
func (c *Card) raiseEvents() {
	if c.generator.state.Load() != running {
		c.generator.resumeCollector()
	}
	if events := c.generator.events.Swap(0); events != 0 {
		c.file.Raise(regmap.GeneratorEvents, events)
		if events&regmap.GeneratorEventsError != 0 {
			c.file.Raise(regmap.CommonErrors, regmap.CommonErrorsGenerator)
		}
	}
	if c.total.beyond > 0 {
		c.file.Raise(regmap.QueueErrors, regmap.QueueErrorsClusterRange)
		c.file.Raise(regmap.CommonErrors, regmap.CommonErrorsQueue)
	}
}

func (c *Card) isEmpty() bool {
	x := c.viewState()
	frames, _ := queuedCount(&x)
	return frames == 0
}

func (c *Card) queueStatus() uint32 {
	var s uint32
	empty := c.isEmpty()
	for _, b := range []struct {
		on  bool
		bit uint32
	}{
		{c.enabled && !c.frozen, regmap.QueueStatusRunning},
		{empty, regmap.QueueStatusEmpty},
		{c.frozen, regmap.QueueStatusFrozen},
		{!c.enabled && !empty, regmap.QueueStatusDraining},
	} {
		if b.on {
			s |= b.bit
		}
	}
	return s
}

// Read32 reads a register. For an unknown address it returns the same placeholder as a card, with fpga.ErrAddress.
func (c *Card) Read32(addr uint32) (uint32, error) {
	v, err := c.file.Read32(addr)
	if err == nil {
		err = c.firstFailure()
	}
	return v, err
}

// Write32 writes a register, as described in package regfile.
func (c *Card) Write32(addr, value uint32) error {
	if err := c.firstFailure(); err != nil {
		return err
	}
	c.noteWrite()
	return c.file.Write32(addr, value)
}

// noteWrite records the time of a write and wakes the pacer of a card that was not used for a long time.
func (c *Card) noteWrite() {
	c.writtenNS.Store(c.clock.now())
	select {
	case c.written <- struct{}{}:
	default:
	}
}

// awaitWrite waits until a register is written, but at most for the given time.
func (c *Card) awaitWrite(atMost time.Duration) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-c.written:
	case <-timer.C:
	}
}

// WriteBurst writes all words to one address, in order. The memory proxy accepts either all words or none.
func (c *Card) WriteBurst(addr uint32, words []uint32) error {
	if err := c.firstFailure(); err != nil {
		return err
	}
	return c.file.WriteBurst(addr, words)
}
