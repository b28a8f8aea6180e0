package pcie

import "errors"

// errNoMap is returned on operating systems on which a BAR cannot be mapped.
var errNoMap = errors.New("using a card needs Linux")

// Window is a mapping of BAR2. Offsets must be multiples of 4 and smaller than its size; the device checks this.
type Window interface {
	Load32(offset uint32) uint32
	Store32(offset uint32, value uint32)
	Close() error
}
