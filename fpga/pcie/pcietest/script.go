package pcietest

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
)

// Kind is a kind of fault that can be injected.
type Kind uint8

// Kinds of faults, on the way and in the card.
const (
	Delay       Kind = iota // the access takes Bit+1 ms longer
	Lose                    // a write is lost; a read returns all ones
	Double                  // the access is made twice; the first answer of a read counts
	Flip                    // one bit of the value read or written is wrong
	BoxReset                // the blocks are reset before the access
	Adapters                // the packet adapters are reset before the access
	PowerCycles             // the card is power-cycled before the access
	Reprograms              // another image is loaded before the access
	Kinds                   // number of kinds
)

var kindNames = [Kinds]string{"delay", "loss", "doubling", "flip", "reset", "adapter reset", "power cycle", "new image"}

func (k Kind) String() string { return kindNames[k] }

// Fault is a fault to inject at one access.
type Fault struct {
	Access int // index of the access, from 0
	Kind   Kind
	Bit    int // bit of a Flip, 0 to 31; for a Delay, its milliseconds minus one
}

// Met is a fault that was injected, with the access that it affected.
type Met struct {
	Fault
	Write  bool
	Offset uint32
}

func (m Met) String() string {
	verb := map[bool]string{true: "write", false: "read"}[m.Write]
	if m.Kind == Flip {
		return fmt.Sprintf("access %d, %s of %s: flip of bit %d", m.Access, verb, m.Location(), m.Bit)
	}
	return fmt.Sprintf("access %d, %s of %s: %v", m.Access, verb, m.Location(), m.Kind)
}

// Location returns the name of the accessed register, or its offset if there is no register.
func (m Met) Location() string {
	if ref, _, ok := regmap.RegisterAt(m.Offset); ok {
		return ref.Name()
	}
	return fmt.Sprintf("%#x", m.Offset)
}

// Script injects a list of faults into the accesses to a card and records the accesses that were affected.
type Script struct {
	card   *Card
	faults []Fault
	onLoad func(n int, offset, value uint32) uint32 // the card's previous hook
	Done   int                                      // number of accesses
	Writes []int                                    // indexes of writes
	Met    []Met
}

// Play injects the given faults, counting accesses from the next one. Faults whose access is never made are not
// injected.
func (c *Card) Play(faults []Fault) *Script {
	s := &Script{card: c, faults: faults, onLoad: c.OnLoad}
	c.OnLoad, c.OnStore = s.load, s.store
	return s
}

// nextFaults returns the faults for the current access, after applying those that affect the card.
func (s *Script) nextFaults(offset uint32, write bool) (now []Fault) {
	for _, f := range s.faults {
		if f.Access == s.Done {
			now = append(now, f)
			s.Met = append(s.Met, Met{f, write, offset})
			s.applyToCard(f)
		}
	}
	if write {
		s.Writes = append(s.Writes, s.Done)
	}
	s.Done++
	return now
}

// applyToCard applies a fault if it affects the card as a whole, such as a reset or a delay.
func (s *Script) applyToCard(f Fault) {
	switch c := s.card; f.Kind {
	case Delay:
		_ = c.Wait(context.Background(), olaf.Duration(f.Bit+1)*olaf.Millisecond)
	case BoxReset:
		c.Reset()
	case Adapters:
		for port := range uint32(len(c.Ports)) {
			for off := uint32(0); off < 0x50; off += 4 {
				c.Shell[0xB000+port*portStride+off] = 0
			}
		}
	case PowerCycles:
		_ = c.PowerCycle()
	case Reprograms:
		c.Reprogram()
	}
}

// load injects faults into a read. It runs after the card has answered, so it reads again after a fault that changed
// the card.
func (s *Script) load(n int, offset, value uint32) uint32 {
	for _, f := range s.nextFaults(offset, false) {
		switch f.Kind {
		case BoxReset, Adapters, PowerCycles, Reprograms, Delay:
			if regmapWindow(offset) {
				continue // the window's index has already advanced
			}
			value = s.card.load(offset)
		case Double:
			s.card.load(offset)
		case Lose:
			return allOnes
		case Flip:
			value ^= 1 << f.Bit
		}
	}
	if s.onLoad != nil {
		return s.onLoad(n, offset, value)
	}
	return value
}

func regmapWindow(offset uint32) bool {
	return offset == regmap.GeneratorMemData || offset == regmap.ReplicationMemberData
}

func (s *Script) store(_ int, offset, value uint32) (lost bool) {
	for _, f := range s.nextFaults(offset, true) {
		switch f.Kind {
		case Lose:
			lost = true
		case Double:
			s.storeRaw(offset, value)
		case Flip:
			s.storeRaw(offset, value^1<<f.Bit)
			lost = true
		}
	}
	return lost
}

// storeRaw writes a register without injecting faults.
func (s *Script) storeRaw(offset, value uint32) {
	on := s.card.OnStore
	s.card.OnStore = nil
	s.card.Store32(offset, value)
	s.card.OnStore = on
}
