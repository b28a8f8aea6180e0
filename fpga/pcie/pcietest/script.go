package pcietest

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
)

// Kind is something that goes wrong at one access.
type Kind uint8

// What goes wrong: on the way, and at the card.
const (
	Delay       Kind = iota // the access takes a millisecond longer for each bit
	Lose                    // a write does not arrive, the answer to a read is all ones
	Double                  // it is done twice; of two answers the first one counts
	Flip                    // one bit is wrong, in what is written or in what is answered
	BoxReset                // somebody resets the blocks before it
	Adapters                // somebody resets the packet adapters before it
	PowerCycles             // the card is switched off and on before it
	Reprograms              // another image is loaded before it
	Kinds                   // how many there are
)

var kindNames = [Kinds]string{"delay", "loss", "doubling", "flip", "reset", "adapter reset", "power cycle", "new image"}

func (k Kind) String() string { return kindNames[k] }

// Fault is one thing that goes wrong.
type Fault struct {
	Access int // at which access from now on, counted from 0
	Kind   Kind
	Bit    int // of a Flip, 0 to 31; milliseconds less one of a Delay
}

// Met is a fault that an access met.
type Met struct {
	Fault
	Write  bool
	Offset uint32
}

func (m Met) String() string {
	verb := map[bool]string{true: "write", false: "read"}[m.Write]
	if m.Kind == Flip {
		return fmt.Sprintf("access %d, %s of %s: flip of bit %d", m.Access, verb, m.Where(), m.Bit)
	}
	return fmt.Sprintf("access %d, %s of %s: %v", m.Access, verb, m.Where(), m.Kind)
}

// Where is the register, or its offset where it has no name.
func (m Met) Where() string {
	if ref, _, ok := regmap.At(m.Offset); ok {
		return ref.Name()
	}
	return fmt.Sprintf("%#x", m.Offset)
}

// Script is faults that come one after the other, and what they met.
type Script struct {
	card   *Card
	faults []Fault
	onLoad func(n int, offset, value uint32) uint32 // what the card does besides
	Done   int                                      // accesses
	Writes []int                                    // of these
	Met    []Met
}

// Play lets faults happen from the next access on. Those that come too late for what is done do not happen.
func (c *Card) Play(faults []Fault) *Script {
	s := &Script{card: c, faults: faults, onLoad: c.OnLoad}
	c.OnLoad, c.OnStore = s.load, s.store
	return s
}

// next is what goes wrong at this access.
func (s *Script) next(offset uint32, write bool) (now []Fault) {
	for _, f := range s.faults {
		if f.Access == s.Done {
			now = append(now, f)
			s.Met = append(s.Met, Met{f, write, offset})
			s.befall(f)
		}
	}
	if write {
		s.Writes = append(s.Writes, s.Done)
	}
	s.Done++
	return now
}

// befall does what concerns the whole card.
func (s *Script) befall(f Fault) {
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

// load is asked after the card has answered, so that it answers again where something befell it before.
func (s *Script) load(n int, offset, value uint32) uint32 {
	for _, f := range s.next(offset, false) {
		switch f.Kind {
		case BoxReset, Adapters, PowerCycles, Reprograms, Delay:
			if regmapWindow(offset) {
				continue // its index has moved on
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
	for _, f := range s.next(offset, true) {
		switch f.Kind {
		case Lose:
			lost = true
		case Double:
			s.put(offset, value)
		case Flip:
			s.put(offset, value^1<<f.Bit)
			lost = true
		}
	}
	return lost
}

// put is a write that goes wrong no more.
func (s *Script) put(offset, value uint32) {
	on := s.card.OnStore
	s.card.OnStore = nil
	s.card.Store32(offset, value)
	s.card.OnStore = on
}
