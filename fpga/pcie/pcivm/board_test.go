package pcivm

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/olafctl/olaf/fpga/pcie"
)

// Offsets in the configuration space, from the PCI and PCI Express specifications.
const (
	regCommand   = 0x04
	regBAR0      = 0x10
	regBAR2      = 0x18
	regPower     = 0x44 // of the power management capability
	regDeviceCtl = 0x68 // of the PCI Express capability
	configBytes  = 256

	memoryEnabled = 1 << 1
	addressable64 = 1 << 2 // BAR type; the upper half is wired to 0, because QEMU sizes each half separately
	powerD3       = 3
	functionReset = 1 << 15
	bar2Bytes     = 4 << 20
)

// identity contains the ids that a function shows.
type identity struct {
	device uint16
	bar    uint32 // type of its BARs
}

// openNIC identifies OpenNIC's images; narrow has 32-bit BARs.
var (
	openNIC = identity{0x903f, addressable64}
	narrow  = identity{0x903f, 0}
)

// board is the PCI side of one card: its functions, its link, and a log of the accesses that arrive.
type board struct {
	mu        sync.Mutex
	card      backing
	functions []*function
	dead      bool // the link is down: reads return all ones, writes are lost
	// arrive, if set, is called before each access to BAR2 with its number, from 0. It may kill the link.
	arrive func(n int, a access)
	log    []access // accesses to BAR2, by offset
	odd    []access // accesses to any BAR that are not 4 aligned bytes
	errs   []error
}

// backing answers accesses of BAR2.
type backing interface {
	pcie.Window
	// pass advances the card's time to the present.
	pass()
}

// function is one PCI function of a board: all have the same BAR2.
type function struct {
	board    *board
	number   int
	config   [configBytes]byte
	writable [configBytes]byte
	conn     *net.UnixConn
}

// newBoard returns a card with the given number of functions.
func newBoard(card backing, id identity, functions int) *board {
	b := &board{card: card}
	for n := range functions {
		f := &function{board: b, number: n}
		f.describe(id, functions > 1)
		b.functions = append(b.functions, f)
	}
	return b
}

// describe fills the configuration space.
func (f *function) describe(id identity, several bool) {
	header := uint32(0)
	if several {
		header = 0x80 << 16
	}
	for _, r := range []struct {
		at              int
		value, writable uint32
	}{
		{0x00, uint32(id.device+uint16(f.number)<<8)<<16 | 0x10ee, 0},
		{regCommand, 0x0010_0000, 0x0547}, // it has capabilities
		{0x08, 0x0280_0000, 0},
		{0x0C, header, 0xFF},
		{regBAR0, id.bar, ^uint32(256<<10 - 1)},
		{regBAR2, id.bar, ^uint32(bar2Bytes - 1)},
		{0x2C, 0x0007_10ee, 0},
		{0x34, 0x40, 0},
		{0x3C, 0, 0xFF},
		{0x40, 0x0003_6001, 0},
		{regPower, 1 << 3, powerD3}, // registers survive D3hot
		{0x60, 0x0002_0010, 0},
		{0x64, 1<<28 | 2, 0}, // FLR, 512 bytes
		{regDeviceCtl, 0, 0x7FFF},
		{0x6C, 0x103, 0},            // x16, 8 GT/s
		{0x70, 0x0103_0000, 0x01C3}, // link status after training
		{0x88, 0, 0xFFFF},
		{0x8C, 0x0000_000E, 0}, // speeds
		{0x90, 0, 0x000F},
	} {
		binary.LittleEndian.PutUint32(f.config[r.at:], r.value)
		binary.LittleEndian.PutUint32(f.writable[r.at:], r.writable)
	}
}

// connect returns the file to pass to QEMU for a function, and serves its accesses until QEMU closes it.
func (f *function) connect() (*os.File, error) {
	conn, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	f.conn = conn
	go func() {
		if err := serveFunction(conn, f.answer); err != nil {
			f.board.mu.Lock()
			f.board.errs = append(f.board.errs, err)
			f.board.mu.Unlock()
		}
	}()
	return theirs, nil
}

func (f *function) answer(a access) uint64 {
	f.board.mu.Lock()
	defer f.board.mu.Unlock()
	switch {
	case !a.config:
		return f.memory(a)
	case f.board.dead || a.addr+uint64(a.size) > configBytes:
		return 0xFFFFFFFF >> (32 - 8*a.size)
	case a.write:
		f.writeConfig(a)
		return 0
	}
	var b [8]byte
	copy(b[:a.size], f.config[a.addr:])
	return binary.LittleEndian.Uint64(b[:])
}

func (f *function) writeConfig(a access) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], a.value)
	for i := range a.size {
		at := int(a.addr) + i
		f.config[at] = f.config[at]&^f.writable[at] | b[i]&f.writable[at]
	}
	if a.addr <= regDeviceCtl && regDeviceCtl < a.addr+uint64(a.size) && a.value>>(8*(regDeviceCtl-a.addr))&functionReset != 0 {
		f.reset()
	}
}

// reset clears what the guest wrote into the configuration space. The blocks behind BAR2 keep their state, as an
// OpenNIC shell resets only its QDMA.
func (f *function) reset() {
	for at := range f.config {
		f.config[at] &^= f.writable[at]
	}
}

// memory answers an access to a BAR. A function that does not decode memory or is in D3hot does not answer.
func (f *function) memory(a access) uint64 {
	none := ^uint64(0) >> (64 - 8*a.size)
	b := f.board
	if a.size != 4 || a.addr%4 != 0 {
		b.odd = append(b.odd, a)
	}
	bar := binary.LittleEndian.Uint32(f.config[regBAR2:]) &^ addressable64
	offset := a.addr - uint64(bar)
	on := f.config[regCommand]&memoryEnabled != 0 && f.config[regPower]&powerD3 == 0
	if offset >= bar2Bytes || !on {
		return none
	}
	a.addr = offset
	if b.arrive != nil {
		b.arrive(len(b.log), a)
	}
	b.log = append(b.log, a)
	if b.dead {
		return none
	}
	b.card.pass()
	if a.write {
		b.card.Store32(uint32(offset&^3), uint32(a.value))
		return 0
	}
	return uint64(b.card.Load32(uint32(offset &^ 3)))
}

// with calls do while accesses are blocked.
func (b *board) with(do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	do()
}

// kill sets the link to dead, or restores it.
func (b *board) kill(dead bool) { b.with(func() { b.dead = dead }) }

// killAt sets the link to dead at the first access from now on for which at reports true; n counts accesses from 0. The
// channel is closed when the link is dead.
func (b *board) killAt(at func(n int, a access) bool) <-chan struct{} {
	died := make(chan struct{})
	b.with(func() {
		first := len(b.log)
		b.arrive = func(n int, a access) {
			if !b.dead && at(n-first, a) {
				b.dead = true
				close(died)
			}
		}
	})
	return died
}

// counts contains the numbers of accesses to BAR2 since the last call of takeLog.
type counts struct{ reads, writes int }

func (c counts) String() string { return fmt.Sprintf("%d reads, %d writes", c.reads, c.writes) }

// takeLog returns the accesses to BAR2 since the last call, and their numbers.
func (b *board) takeLog() (log []access, n counts) {
	b.with(func() { log, b.log = b.log, nil })
	for _, a := range log {
		if a.write {
			n.writes++
		} else {
			n.reads++
		}
	}
	return log, n
}

// close closes the sockets to QEMU, as happens when the process that serves them ends.
func (b *board) close() {
	for _, f := range b.functions {
		if f.conn != nil {
			_ = f.conn.Close()
		}
	}
}
