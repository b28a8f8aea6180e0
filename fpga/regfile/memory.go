package regfile

import (
	"encoding/binary"
	"hash/crc32"
)

// pageWords is the number of words per page, in which memory is allocated. It is a multiple of the size of every record
// except templates.
const pageWords = 1 << 16

// Memory is a memory of words that is accessed through the proxy. Pages are allocated when they are first written.
// Words that were not written read as 0.
type Memory struct {
	pages  [][]uint32
	limit  uint32 // size of the memory in words
	loaded uint32 // index after the highest word written
}

func newMemory(words int) Memory { return Memory{limit: uint32(words)} }

// Clear erases the contents but keeps the pages allocated.
func (m *Memory) Clear() {
	for _, p := range m.pages {
		clear(p)
	}
	m.loaded = 0
}

// write stores words from index at on. It reports whether they fit into the memory.
func (m *Memory) write(at uint32, words []uint32) bool {
	if uint64(at)+uint64(len(words)) > uint64(m.limit) {
		return false
	}
	for len(words) > 0 {
		n := copy(m.page(at / pageWords)[at%pageWords:], words)
		words = words[n:]
		at += uint32(n)
		m.loaded = max(m.loaded, at)
	}
	return true
}

func (m *Memory) page(i uint32) []uint32 {
	for uint32(len(m.pages)) <= i {
		m.pages = append(m.pages, nil)
	}
	if m.pages[i] == nil {
		m.pages[i] = make([]uint32, pageWords)
	}
	return m.pages[i]
}

// View returns up to n words from index at on, within one page. It returns nil if the page was never written.
func (m *Memory) View(at, n uint32) []uint32 {
	i := at / pageWords
	if at >= m.loaded || i >= uint32(len(m.pages)) || m.pages[i] == nil {
		return nil
	}
	at %= pageWords
	return m.pages[i][at:min(at+n, pageWords)]
}

// Word returns the word at index at.
func (m *Memory) Word(at uint32) uint32 {
	if v := m.View(at, 1); v != nil {
		return v[0]
	}
	return 0
}

// crc returns the CRC-32 of the first n words as little-endian bytes.
func (m *Memory) crc(n uint32) uint32 {
	var (
		sum   uint32
		bytes [4096]byte
	)
	for at := uint32(0); at < n; {
		part := min(n-at, uint32(len(bytes)/4)) // pageWords is a multiple of the buffer's length
		words := m.View(at, part)
		for i := range part {
			v := uint32(0)
			if words != nil {
				v = words[i]
			}
			binary.LittleEndian.PutUint32(bytes[4*i:], v)
		}
		sum = crc32.Update(sum, crc32.IEEETable, bytes[:4*part])
		at += part
	}
	return sum
}
