package pcie

import (
	"fmt"
	"os"
	"runtime/debug"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapping is BAR2 in this process's memory. The BAR is not prefetchable, so that the kernel maps it uncached; every
// access is one aligned 32-bit load or store, never a copy.
type mapping struct{ bytes []byte }

// mapFile maps a sysfs resource file.
func mapFile(path string, size int64, writable bool) (Window, error) {
	flags, protection := os.O_RDONLY|os.O_SYNC, unix.PROT_READ
	if writable {
		flags, protection = os.O_RDWR|os.O_SYNC, unix.PROT_READ|unix.PROT_WRITE
	}
	file, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, fmt.Errorf("open BAR2: %w; this needs root, or a udev rule that gives your group the file", err)
	}
	defer file.Close()
	bytes, err := unix.Mmap(int(file.Fd()), 0, int(size), protection, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes of %s: %w; a smaller BAR or a locked-down kernel refuses this", size, path, err)
	}
	return &mapping{bytes}, nil
}

func (m *mapping) word(offset uint32) *uint32 {
	return (*uint32)(unsafe.Pointer(&m.bytes[offset]))
}

// Load32 reads one register. A card that was pulled out faults; that reads as all ones, like a dead link.
func (m *mapping) Load32(offset uint32) (value uint32) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if isFault(recover()) {
			value = allOnes
		}
	}()
	return atomic.LoadUint32(m.word(offset))
}

// Store32 writes one register. A write to a card that was pulled out is lost; the read that follows tells.
func (m *mapping) Store32(offset uint32, value uint32) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { isFault(recover()) }()
	atomic.StoreUint32(m.word(offset), value)
}

// isFault tells a fault of the mapped memory from every other panic, which it lets pass.
func isFault(r any) bool {
	if r == nil {
		return false
	}
	if _, ok := r.(interface{ Addr() uintptr }); !ok {
		panic(r)
	}
	return true
}

// Close unmaps.
func (m *mapping) Close() error {
	bytes := m.bytes
	m.bytes = nil
	return unix.Munmap(bytes)
}
