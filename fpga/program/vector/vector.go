// Package vector reads and plays golden vectors of switch programs: text files of packets in, and of what becomes of them
// (docs/reference/vectors.md). One grammar serves all programs, so that other people's tests can become ours.
package vector

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

var (
	// ErrFormat is the kind of a text that is no vector; the message names the line.
	ErrFormat = olaf.NewError(olaf.Usage, "not a program vector")
	// ErrDiffers says that a program did something else than its vector; it is a *Difference.
	ErrDiffers = olaf.NewError(olaf.Missed, "the program differs from the vector")
)

// Vector is one file: a program as it is built, and steps in order of time.
type Vector struct {
	About   []string // the comments at its top
	Program string   // a system's name
	Options []Field  // what else the program line says
	Steps   []Step
	// Outs says that the file lists what leaves: then whatever leaves must be listed.
	Outs bool
}

// Field is one name=value of a line, in the order written.
type Field struct{ Name, Value string }

// Step is one line: a packet in, the packets that it causes to leave, or an expectation of state.
type Step struct {
	Line  int
	Cycle int64

	In    *Input
	Slot  *SlotLine
	Stat  string // name of a counter
	Count uint64 // its value
}

// Input is a packet that comes in.
type Input struct {
	Switch string // by which it comes in; empty is the one at the top
	From   program.Port
	Packet program.Packet
	Action string   // of a control packet: a name that the program knows, or a number
	Data   []string // words as written; the program's arithmetic reads them
	Expect string   // name of the class; empty is not compared
	Outs   []Output
}

// Output is an expected packet: only the fields that the file names are compared.
type Output struct {
	Line   int
	Switch string // that sends it; empty is the one at the top
	To     string // up, down, others, port:N
	Fields []Field
}

// SlotLine is an expected place of the table.
type SlotLine struct {
	Index  int
	Switch string // whose it is; empty is the one at the top
	Fields []Field
}

// Difference is the first thing that was not as the vector says.
type Difference struct {
	Line           int
	What           string // the field or thing compared
	Expected, Have string
}

// Error shows both sides.
func (d *Difference) Error() string {
	return fmt.Sprintf("line %d: %s: expected %s, got %s", d.Line, d.What, d.Expected, d.Have)
}

// Unwrap says that it is an ErrDiffers.
func (d *Difference) Unwrap() error { return ErrDiffers }

// Limits of the text form.
const (
	MaxLine  = 1 << 18 // bytes a line, enough for the largest frame's lanes
	MaxCycle = 1 << 50 // 52 days of 4 ns
	MaxPort  = 1 << 15
	MaxRacks = 64
)
