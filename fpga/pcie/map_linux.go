package pcie

import (
	"fmt"
	"os"
	"runtime/debug"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapping is a memory mapping of BAR2. The BAR is not prefetchable, so the kernel maps it uncached. Every access is one
// aligned 32-bit load or store; copies and atomic instructions are never used.
type mapping struct{ bytes []byte }

// mapFile maps a sysfs resource file.
func mapFile(path string, size int64, writable bool) (Window, error) {
	flags, protection := os.O_RDONLY|os.O_SYNC, unix.PROT_READ
	if writable {
		flags, protection = os.O_RDWR|os.O_SYNC, unix.PROT_READ|unix.PROT_WRITE
	}
	file, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, fmt.Errorf("open BAR2: %w", err)
	}
	defer file.Close()
	bytes, err := unix.Mmap(int(file.Fd()), 0, int(size), protection, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes of %s: %w", size, path, err)
	}
	return &mapping{bytes}, nil
}

func (m *mapping) word(offset uint32) *uint32 {
	return (*uint32)(unsafe.Pointer(&m.bytes[offset]))
}

// load32 reads a register with one 32-bit load. It is not inlined, so that the compiler can neither repeat the load nor
// merge it with others.
//
//go:noinline
func load32(register *uint32) uint32 { return *register }

// store32 writes a register with one 32-bit store. It does not use an atomic store, which on amd64 is an XCHG. This
// instruction reads the register first, which moves a window's index twice, and needs a bus lock, which PCIe cards do
// not support.
//
//go:noinline
func store32(register *uint32, value uint32) { *register = value }

// Load32 reads a register. If the access causes a page fault, for example because a driver has taken the BAR, it
// returns all ones, as for a dead link.
func (m *mapping) Load32(offset uint32) (value uint32) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if isFault(recover()) {
			value = allOnes
		}
	}()
	return load32(m.word(offset))
}

// Store32 writes a register. If the access causes a page fault, the write is lost, which the read that confirms it
// detects.
func (m *mapping) Store32(offset uint32, value uint32) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { isFault(recover()) }()
	store32(m.word(offset), value)
}

// isFault reports whether a recovered panic is a fault in mapped memory. It panics again for any other value.
func isFault(r any) bool {
	if r == nil {
		return false
	}
	if _, ok := r.(interface{ Addr() uintptr }); !ok {
		panic(r)
	}
	return true
}

// Close unmaps the BAR.
func (m *mapping) Close() error {
	bytes := m.bytes
	m.bytes = nil
	return unix.Munmap(bytes)
}
