package realtime

import (
	"errors"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/regfile"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/xdp"
)

// queueConfig is what the idle registers of the queue say.
type queueConfig struct {
	discipline uint32 // as in the register
	settings   xdp.Settings
	output     engine.Output
}

// engine is the configuration by which the engine decides the same.
func (q *queueConfig) engine() engine.Config {
	s := &q.settings
	return engine.Config{
		Slots: s.Depth, Clusters: builtClusters, FreeSlotOnStart: s.FreeSlotOnStart, RewardFilter: s.RewardFilter,
		RewardThreshold: s.RewardThreshold,
	}
}

func (c *Card) configured() queueConfig {
	mode := c.file.Reg(regmap.QueueMode)
	q := queueConfig{
		discipline: mode & regmap.QueueModeDisciplineMask,
		settings: xdp.Settings{
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

// capabilities are the options of the build. Engine cycles are what the machine takes; who is inside an update is in the log of
// decisions; a server answers only where there is one.
func (b *Backend) capabilities() uint32 {
	bits := regmap.CommonCapabilitiesFreeOnStart | regmap.CommonCapabilitiesLanes
	if b.builtPrograms() != 1 {
		bits |= regmap.CommonCapabilitiesAggregator
	}
	return bits
}

// behaviour is what the registers do.
var behaviour = &regfile.Behaviour[*Card]{
	Name: "realtime", Live: live, Limits: limits, Effects: effects, Commands: commands,
	QueueBusy:     func(c *Card) bool { return c.enabled || !c.empty() },
	GeneratorBusy: func(c *Card) bool { return c.generator.busy() },
}

// live are the registers that show the state of the card; all others read what is stored.
var live = map[uint32]func(*Card) uint32{
	regmap.CommonCycles: func(c *Card) uint32 {
		now := uint64(c.cycle(c.clock.now()))
		c.file.Set(regmap.CommonCycles+4, uint32(now>>32))
		return uint32(now)
	},
	regmap.CommonErrors: func(c *Card) uint32 {
		c.heed()
		return c.file.Reg(regmap.CommonErrors)
	},
	regmap.QueueErrors: func(c *Card) uint32 {
		c.heed()
		return c.file.Reg(regmap.QueueErrors)
	},
	regmap.QueueStatus: (*Card).queueStatus,
	regmap.QueueOccupancy: func(c *Card) uint32 {
		x := c.state()
		return uint32(c.occupied(&x))
	},
	regmap.QueueActiveClusters: func(c *Card) uint32 { return uint32(c.state().Active) },
	regmap.QueuePeakOccupancy:  func(c *Card) uint32 { return uint32(max(c.state().Peak, c.total.peak)) },
	regmap.GeneratorState: func(c *Card) uint32 {
		c.heed()
		return c.generatorState()
	},
	regmap.GeneratorEvents: func(c *Card) uint32 {
		c.heed()
		return c.file.Reg(regmap.GeneratorEvents)
	},
	regmap.CommonRole:           regfile.Constant[*Card](regmap.CommonRoleAccelerator | regmap.CommonRoleGenerator),
	regmap.CommonCapabilities:   func(c *Card) uint32 { return c.backend.capabilities() },
	regmap.CommonBuildHash:      (*Card).buildHash,
	regmap.CommonClockHz:        regfile.Constant[*Card](uint32(clockHz)),
	regmap.CommonMaxPacketBytes: regfile.Constant[*Card](uint32(olaf.FrameSize(maxLanes))),
	regmap.QueueBuiltSlots:      regfile.Constant[*Card](builtSlots),
	regmap.QueueBuiltClusters:   regfile.Constant[*Card](builtClusters),
	regmap.QueueBuiltLanes:      regfile.Constant[*Card](maxLanes),
	regmap.ModelNext: func(c *Card) uint32 {
		if c.backend.builtPrograms() == 1 {
			return 0
		}
		return regmap.AggregatorBase
	},
	regmap.AggregatorBuiltSlots:    regfile.Constant[*Card](builtSegments),
	regmap.AggregatorBuiltPrograms: func(c *Card) uint32 { return c.backend.builtPrograms() },
	regmap.AggregatorBuiltLanes:    regfile.Constant[*Card](maxLanes),
	regmap.AggregatorOccupied:      func(c *Card) uint32 { return c.front.occupied() },
	regmap.AggregatorPeakOccupied:  func(c *Card) uint32 { return c.front.most() },
}

// limits are the ranges of registers whose value is a number.
var limits = map[uint32]func(*Card) (low, high uint32){
	regmap.QueueDepth:            between(1, builtSlots),
	regmap.QueueLimiterIncrement: between(1, uint32(engine.Line)),
	regmap.QueueLimiterOverhead:  between(0, engine.MaxOverheadBytes),
	regmap.QueueDequeueCycles:    between(0, 0),
	regmap.QueueMergeCycles:      between(0, 0),
	regmap.QueueClusterIndex:     between(0, builtClusters-1),
	regmap.QueueInspectIndex:     between(0, builtSlots),

	regmap.AggregatorH:            between(1, 1<<16-1),
	regmap.AggregatorInspectIndex: between(0, builtSegments),
}

func between(low, high uint32) func(*Card) (uint32, uint32) {
	return func(*Card) (uint32, uint32) { return low, high }
}

// effects are what writing a register does beside storing the value; a reason means that nothing was done.
var effects = map[uint32]func(*Card, uint32) *regfile.Reason{
	regmap.GeneratorControl: func(_ *Card, v uint32) *regfile.Reason {
		if v&regmap.GeneratorControlWire != 0 {
			return regfile.BadValue("its generator can only feed its own queue")
		}
		return nil
	},
	regmap.QueueMode: func(c *Card, v uint32) *regfile.Reason {
		kind, known := engine.Coded(v & regmap.QueueModeDisciplineMask)
		if !known || !slices.Contains(c.backend.Disciplines, kind.Name) {
			return regfile.BadValue("there is no such discipline")
		}
		if v&regmap.QueueModeProvenance != 0 {
			return regfile.BadValue("this build has no provenance log")
		}
		return nil
	},
	regmap.QueueControl: func(c *Card, v uint32) *regfile.Reason {
		return refusal(c.control(v&regmap.QueueControlEnable != 0, v&regmap.QueueControlFreeze != 0))
	},
	regmap.QueueInspectIndex: func(c *Card, v uint32) *regfile.Reason {
		if !c.frozen {
			c.file.Raise(regmap.QueueErrors, regmap.QueueErrorsNotFrozen)
			return regfile.BadState("freeze the queue first")
		}
		return refusal(c.inspect(v))
	},
	regmap.QueueClusterIndex: func(c *Card, v uint32) *regfile.Reason { return refusal(c.selectCluster(v)) },
	regmap.AggregatorProgram: func(c *Card, v uint32) *regfile.Reason {
		if c.backend.builtPrograms()>>v&1 == 0 {
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
			return regfile.BadValue("no parameter server is modelled here: what answers is a real one")
		}
		return nil
	},
}

func refusal(err error) *regfile.Reason {
	if err == nil {
		return nil
	}
	return regfile.BadState(err.Error())
}

// commands are what command registers do, lowest bit first.
var commands = map[uint32]func(*Card, uint32) *regfile.Reason{
	regmap.CommonCommand: func(c *Card, v uint32) *regfile.Reason { return refusal(c.command(v)) },
	regmap.QueueCommand: func(c *Card, v uint32) *regfile.Reason {
		if v&regmap.QueueCommandFlush == 0 {
			return nil
		}
		c.front.clear()
		return refusal(c.flush())
	},
	regmap.AggregatorCommand: func(c *Card, v uint32) *regfile.Reason {
		if v&regmap.AggregatorCommandClear != 0 {
			c.front.clear()
		}
		return nil
	},
	regmap.GeneratorCommand: func(c *Card, v uint32) *regfile.Reason {
		c.heed()
		if v == regmap.GeneratorCommandArm && c.file.Reg(regmap.AggregatorProgram) != 0 {
			return regfile.BadState("the program that aggregator.program names is for hosts that wait, and no update of the generator passes it; choose pass")
		}
		return c.generator.command(v)
	},
}

func (c *Card) command(v uint32) error {
	var errs []error
	if v&regmap.CommonCommandSnapshot != 0 {
		errs = append(errs, c.snapshot())
	}
	if v&regmap.CommonCommandClear != 0 {
		errs = append(errs, c.clearCounters())
	}
	if v&regmap.CommonCommandReset != 0 {
		errs = append(errs, c.reset())
	}
	return errors.Join(errs...)
}

// reset returns everything but time and tables to what it was after Open.
func (c *Card) reset() error {
	c.generator.halt()
	c.generator.state.Store(idle)
	if err := errors.Join(c.control(false, false), c.flush(), c.clearCounters()); err != nil {
		return err
	}
	c.front.end()
	c.file.Reset()
	c.generator.events.Store(0)
	return c.adopt(c.configured())
}

// control obeys queue.control. Configuration that changed while the queue was off takes effect when it is enabled.
func (c *Card) control(enable, freeze bool) error {
	if enable && !c.enabled && c.empty() {
		if err := c.adopt(c.configured()); err != nil {
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
		c.pacer.freeze(freeze, now-c.frozenAt)
		c.frozen, c.frozenAt = freeze, now
	}
	return nil
}

// heed raises what the threads and the plane noticed since the last look.
func (c *Card) heed() {
	if c.generator.state.Load() != running {
		c.generator.collect()
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

func (c *Card) empty() bool {
	x := c.state()
	frames, _ := inside(&x)
	return frames == 0
}

func (c *Card) queueStatus() uint32 {
	var s uint32
	empty := c.empty()
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

// Read32 reads a register. An address without one gives fpga.ErrAddress and the placeholder that a card would answer.
func (c *Card) Read32(addr uint32) (uint32, error) {
	v, err := c.file.Read32(addr)
	if err == nil {
		err = c.fault()
	}
	return v, err
}

// Write32 writes a register; see fpga/regfile.
func (c *Card) Write32(addr, value uint32) error {
	if err := c.fault(); err != nil {
		return err
	}
	return c.file.Write32(addr, value)
}

// WriteBurst writes all words to one address, in order. The memory proxy takes them at once; it takes all or none.
func (c *Card) WriteBurst(addr uint32, words []uint32) error {
	if err := c.fault(); err != nil {
		return err
	}
	return c.file.WriteBurst(addr, words)
}
