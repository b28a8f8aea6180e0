package pcie

import "errors"

// errNoMap reports that this operating system cannot map a BAR.
var errNoMap = errors.New("driving a card needs Linux")

// Window is a mapping of BAR2. Offsets are multiples of 4 below its size; the device checks them.
type Window interface {
	Load32(offset uint32) uint32
	Store32(offset uint32, value uint32)
	Close() error
}
