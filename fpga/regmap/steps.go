package regmap

import (
	"fmt"

	"github.com/olafctl/olaf"
)

// ErrUnexpected is returned if a list of accesses stopped because a read returned an unexpected value.
var ErrUnexpected = olaf.NewError(olaf.Device, "unexpected value")

// Step is an access in a list. If it has Words, it is a burst, and otherwise a read or a write.
type Step struct {
	Addr  uint32
	Write bool
	Value uint32   // value to write, or value read
	Words []uint32 // words to write to Addr, one after the other
	Mask  uint32   // bits of a read that must have their values in Want, or else the list stops
	Want  uint32
}

// ReadStep returns a step that reads a register.
func ReadStep(addr uint32) Step { return Step{Addr: addr} }

// WriteStep returns a step that writes a register.
func WriteStep(addr, value uint32) Step { return Step{Addr: addr, Write: true, Value: value} }

// ExpectStep returns a step that reads a register. The list stops at this step unless the bits in mask have the values
// in want.
func ExpectStep(addr, mask, want uint32) Step { return Step{Addr: addr, Mask: mask, Want: want} }

// Reads reports whether the step is a read.
func (s *Step) Reads() bool { return !s.Write && len(s.Words) == 0 }

// CheckValue returns an error if the step has read a value other than the one that it expects. The error matches
// ErrUnexpected.
func (s *Step) CheckValue() error {
	if s.Value&s.Mask == s.Want {
		return nil
	}
	return fmt.Errorf("%w %#x at %#x; want %#x in the bits %#x", ErrUnexpected, s.Value, s.Addr, s.Want, s.Mask)
}

// Registers reads and writes registers.
type Registers interface {
	Reader
	Writer
	WriteBurst(addr uint32, words []uint32) error
}

// Lister is implemented by devices that perform a list of accesses faster than single accesses, because they are
// reached over a network.
type Lister interface {
	// DoSteps performs the steps as Do does.
	DoSteps(steps []Step) (done int, err error)
}

// Do performs steps in order and stores the values of reads in them. It stops at the first error or unexpected value;
// an unexpected value is stored too. It returns the number of steps that succeeded.
func Do(d Registers, steps []Step) (done int, err error) {
	if far, ok := d.(Lister); ok {
		return far.DoSteps(steps)
	}
	for i := range steps {
		s := &steps[i]
		switch {
		case len(s.Words) > 0:
			err = d.WriteBurst(s.Addr, s.Words)
		case s.Write:
			err = d.Write32(s.Addr, s.Value)
		default:
			if s.Value, err = d.Read32(s.Addr); err == nil {
				err = s.CheckValue()
			}
		}
		if err != nil {
			return i, err
		}
	}
	return len(steps), nil
}
