package pcie

import (
	"fmt"
	"os"
	"runtime/debug"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapping is BAR2 mapped into this process. The BAR is not prefetchable, so the kernel maps it uncached. Every
// access is one aligned 32-bit load or store, never a copy and never atomic.
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

// load32 reads a register with one 32-bit load. It is not inlined, so that the compiler can neither repeat nor merge it.
//
//go:noinline
func load32(register *uint32) uint32 { return *register }

// store32 writes a register with one 32-bit store. An atomic store would be an XCHG on amd64, which reads the register
// first: that moves a window's index twice and needs a bus lock, which a PCIe card does not support.
//
//go:noinline
func store32(register *uint32, value uint32) { *register = value }

// Load32 reads one register. A page fault, as after a driver took the BAR, reads as all ones, like a dead link.
func (m *mapping) Load32(offset uint32) (value uint32) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if isFault(recover()) {
			value = allOnes
		}
	}()
	return load32(m.word(offset))
}

// Store32 writes one register. A write that faults is lost; the read that confirms it notices.
func (m *mapping) Store32(offset uint32, value uint32) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { isFault(recover()) }()
	store32(m.word(offset), value)
}

// isFault reports whether a recovered panic is a fault of mapped memory. It repeats every other panic.
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
