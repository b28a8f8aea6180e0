// Package vector reads and plays golden vectors of switch programs. A golden vector is a text file with incoming
// packets and the expected results (docs/reference/vectors.md). All programs use the same grammar, so that external
// tests can be adopted.
package vector

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

var (
	// ErrFormat is the error for text that is not a valid vector. The message includes the line number.
	ErrFormat = olaf.NewError(olaf.Usage, "not a program vector")
	// ErrDiffers is the error for a program that deviated from its vector. The error is a *Difference.
	ErrDiffers = olaf.NewError(olaf.Missed, "the program differs from the vector")
)

// Vector is the content of one file. It has a program's configuration, and steps in order of time.
type Vector struct {
	About   []string // comments at the top
	Program string   // a system's name
	Options []Field  // other options of the program line
	Steps   []Step
	// Outs is set if the file lists emitted packets; then all of them must be listed.
	Outs bool
}

// Field is a name=value pair in a line.
type Field struct{ Name, Value string }

// Step is an incoming packet with the packets that must result from it, or an expected state.
type Step struct {
	Line  int
	Cycle int64

	In    *Input
	Slot  *SlotLine
	Stat  string // name of a counter
	Count uint64 // value of the counter
}

// Input is an incoming packet.
type Input struct {
	Switch string // switch that receives the packet; empty means the top one
	From   program.Port
	Packet program.Packet
	Action string   // action of a control packet: a name known to the program, or a number
	Data   []string // words as written; the program's arithmetic interprets them
	Expect string   // expected class; empty means that the class is not compared
	Outs   []Output
}

// Output is an expected packet. Only the fields given in the file are compared.
type Output struct {
	Line   int
	Switch string // sender; empty means the top switch
	To     string // destination: up, down, others, port:N
	Fields []Field
}

// SlotLine is the expected state of a slot in the program's table.
type SlotLine struct {
	Index  int
	Switch string // of the slot; empty means the top one
	Fields []Field
}

// difference describes the first deviation from a vector. It matches ErrDiffers.
type difference struct {
	Line           int
	What           string // field or object that differs
	Expected, Have string
}

// Error returns a message with the expected and the actual value.
func (d *difference) Error() string {
	return fmt.Sprintf("line %d: %s: expected %s, got %s", d.Line, d.What, d.Expected, d.Have)
}

// Unwrap returns ErrDiffers.
func (d *difference) Unwrap() error { return ErrDiffers }

// Limits of the text form.
const (
	maxLine  = 1 << 18 // bytes per line, enough for the lanes of the largest frame
	maxCycle = 1 << 50 // 52 days of 4 ns
	maxPort  = 1 << 15
	maxRacks = 64
)
