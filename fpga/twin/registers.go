package twin

import (
	"hash/crc32"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/regfile"
	"github.com/olafctl/olaf/fpga/regmap"
)

// reg, reg64, set, set64 and raise access the stored value of a register, which must exist.

func (t *Twin) reg(addr uint32) uint32      { return t.file.Reg(addr) }
func (t *Twin) set(addr, value uint32)      { t.file.Set(addr, value) }
func (t *Twin) raise(addr uint32, m uint32) { t.file.Raise(addr, m) }

func (t *Twin) reg64(addr uint32) uint64    { return t.file.Reg64(addr) }
func (t *Twin) set64(addr uint32, v uint64) { t.file.Set64(addr, v) }

// Read32 reads a register. For an unknown address it returns the same placeholder as a card, with fpga.ErrAddress.
func (t *Twin) Read32(addr uint32) (uint32, error) { return t.file.Read32(addr) }

// Write32 writes a register. If the device's state or the register's limits forbid the write, it changes nothing, sets
// the error bits and returns fpga.ErrRefused. For a read-only register or an unknown address it returns
// fpga.ErrAddress.
func (t *Twin) Write32(addr, value uint32) error { return t.file.Write32(addr, value) }

// WriteBurst writes all words to one address, in order. The memory proxy accepts either all words or none.
func (t *Twin) WriteBurst(addr uint32, words []uint32) error { return t.file.WriteBurst(addr, words) }

// behaviour defines the effects of accessing the twin's registers.
var behaviour = &regfile.Behaviour[*Twin]{
	Name: "twin", Live: live, Limits: limits, Effects: effects, Commands: commands,
	QueueBusy:     func(t *Twin) bool { return t.queue.enabled || !t.queue.empty() },
	GeneratorBusy: func(t *Twin) bool { return t.generator.busy() },
}

// live lists the registers whose values are calculated from the twin's state when they are read. All others return
// their stored value.
var live = map[uint32]func(*Twin) uint32{
	regmap.CommonCycles: func(t *Twin) uint32 {
		t.set(regmap.CommonCycles+4, uint32(t.now>>32))
		return uint32(t.now)
	},
	regmap.QueueStatus:          (*Twin).queueStatus,
	regmap.QueueOccupancy:       func(t *Twin) uint32 { return uint32(t.queue.Discipline().Occupancy()) },
	regmap.QueueActiveClusters:  func(t *Twin) uint32 { return uint32(t.queue.Discipline().ActiveClusters()) },
	regmap.QueuePeakOccupancy:   func(t *Twin) uint32 { return uint32(t.counters.peak) },
	regmap.GeneratorState:       func(t *Twin) uint32 { return uint32(t.generator.state) },
	regmap.CommonRole:           regfile.ConstantRegister[*Twin](regmap.CommonRoleAccelerator | regmap.CommonRoleGenerator),
	regmap.CommonCapabilities:   func(t *Twin) uint32 { return t.cfg.capabilities() },
	regmap.CommonBuildHash:      func(*Twin) uint32 { return crc32.ChecksumIEEE([]byte(ModelVersion)) },
	regmap.CommonClockHz:        regfile.ConstantRegister[*Twin](uint32(clockHz)),
	regmap.CommonMaxPacketBytes: regfile.ConstantRegister[*Twin](uint32(olaf.MaxFrame)),
	regmap.QueueBuiltSlots:      func(t *Twin) uint32 { return uint32(t.cfg.Slots) },
	regmap.QueueBuiltClusters:   func(t *Twin) uint32 { return uint32(t.cfg.Clusters) },
	regmap.QueueBuiltLanes:      regfile.ConstantRegister[*Twin](uint32(olaf.MaxLanes)),
	regmap.ModelNext: func(t *Twin) uint32 {
		if t.cfg.buildsPrograms() {
			return regmap.AggregatorBase
		}
		return 0
	},
	regmap.AggregatorBuiltSlots:      func(t *Twin) uint32 { return uint32(min(builtSegments, t.cfg.Clusters)) },
	regmap.AggregatorBuiltPrograms:   func(t *Twin) uint32 { return t.cfg.builtPrograms() },
	regmap.AggregatorBuiltLanes:      regfile.ConstantRegister[*Twin](uint32(olaf.MaxLanes)),
	regmap.AggregatorOccupied:        func(t *Twin) uint32 { return t.front.occupied() },
	regmap.AggregatorPeakOccupied:    func(t *Twin) uint32 { return uint32(t.front.peak) },
	regmap.AggregatorDownlinkWaiting: func(t *Twin) uint32 { return uint32(len(t.down.onTheWay)) },
}

// capabilities returns the capability bits of the build.
func (c *Config) capabilities() uint32 {
	bits := regmap.CommonCapabilitiesModelCycles | regmap.CommonCapabilitiesProvenance |
		regmap.CommonCapabilitiesFreeOnStart |
		regmap.CommonCapabilitiesFaultInjection | regmap.CommonCapabilitiesServerModel
	if c.Wire {
		bits |= regmap.CommonCapabilitiesLanes
	}
	if c.buildsPrograms() {
		bits |= regmap.CommonCapabilitiesAggregator | regmap.CommonCapabilitiesDownlinks |
			regmap.CommonCapabilitiesWireFormats
	}
	return bits
}

// limits lists the permitted ranges of numeric registers.
var limits = map[uint32]func(*Twin) (low, high uint32){
	regmap.QueueDepth:                  func(t *Twin) (uint32, uint32) { return 1, uint32(t.cfg.Slots) },
	regmap.QueueLimiterIncrement:       func(*Twin) (uint32, uint32) { return 1, uint32(engine.Line) },
	regmap.QueueLimiterOverhead:        func(*Twin) (uint32, uint32) { return 0, engine.MaxOverheadBytes },
	regmap.QueueDequeueCycles:          func(*Twin) (uint32, uint32) { return 0, engine.MaxCostCycles },
	regmap.QueueMergeCycles:            func(*Twin) (uint32, uint32) { return 0, engine.MaxCostCycles },
	regmap.QueueClusterIndex:           func(t *Twin) (uint32, uint32) { return 0, uint32(t.cfg.Clusters - 1) },
	regmap.QueueInspectIndex:           func(t *Twin) (uint32, uint32) { return 0, uint32(t.cfg.Slots) },
	regmap.AggregatorH:                 func(*Twin) (uint32, uint32) { return 1, 1<<16 - 1 },
	regmap.AggregatorInspectIndex:      func(*Twin) (uint32, uint32) { return 0, builtSegments },
	regmap.AggregatorDownlinkIncrement: func(*Twin) (uint32, uint32) { return 1, uint32(engine.Line) },
	regmap.AggregatorSegments: func(t *Twin) (uint32, uint32) {
		return 1,
			uint32(min(builtSegments, t.cfg.Clusters))
	},
}

// effects lists functions that run before a written value is stored. If a function returns a reason, the write is
// refused and must not have changed anything.
var effects = map[uint32]func(*Twin, uint32) *regfile.Reason{
	regmap.QueueMode: func(_ *Twin, v uint32) *regfile.Reason {
		if _, known := engine.FindByCode(v & regmap.QueueModeDisciplineMask); !known {
			return regfile.BadValue("there is no such discipline")
		}
		return nil
	},
	regmap.QueueControl: func(t *Twin, v uint32) *regfile.Reason {
		if err := t.queue.setControl(t, v); err != nil {
			return regfile.BadValue(err.Error())
		}
		return nil
	},
	regmap.QueueInspectIndex: func(t *Twin, v uint32) *regfile.Reason {
		if !t.queue.frozen {
			t.raise(regmap.QueueErrors, regmap.QueueErrorsNotFrozen)
			return regfile.BadState("freeze the queue first")
		}
		t.inspectSlot(v)
		return nil
	},
	regmap.AggregatorProgram: func(t *Twin, v uint32) *regfile.Reason {
		if t.cfg.builtPrograms()>>v&1 == 0 {
			return regfile.BadValue("no program of that code is built")
		}
		return nil
	},
	regmap.AggregatorInspectIndex: func(t *Twin, v uint32) *regfile.Reason {
		if !t.queue.frozen {
			return regfile.BadState("freeze the queue first")
		}
		t.inspectFront(v)
		return nil
	},
	regmap.QueueClusterIndex: func(t *Twin, v uint32) *regfile.Reason {
		t.selectCluster(v)
		return nil
	},
}

// commands lists the functions that execute the bits written to command registers, starting with the lowest bit.
var commands = map[uint32]func(*Twin, uint32) *regfile.Reason{
	regmap.CommonCommand: (*Twin).commonCommand,
	regmap.QueueCommand: func(t *Twin, v uint32) *regfile.Reason {
		if v&regmap.QueueCommandFlush != 0 {
			t.flushQueue()
		}
		return nil
	},
	regmap.AggregatorCommand: func(t *Twin, v uint32) *regfile.Reason {
		if v&regmap.AggregatorCommandClear != 0 {
			t.endSums()
		}
		return nil
	},
	regmap.GeneratorCommand: func(t *Twin, v uint32) *regfile.Reason {
		if !t.generatorCommand(v) {
			return regfile.BadState("the generator's state does not allow it")
		}
		return nil
	},
}

func (t *Twin) commonCommand(value uint32) *regfile.Reason {
	if value&regmap.CommonCommandSnapshot != 0 {
		t.latchCounters()
	}
	if value&regmap.CommonCommandClear != 0 {
		t.clearCounters()
	}
	if value&regmap.CommonCommandReset != 0 {
		if err := t.powerOn(); err != nil {
			return regfile.BadState(err.Error())
		}
	}
	return nil
}
