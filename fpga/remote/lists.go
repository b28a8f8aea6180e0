package remote

import (
	"encoding/binary"
	"errors"

	"github.com/olafctl/olaf/fpga/regmap"
)

// ahead contains data from the last answer, which the next accesses are likely to request.
type ahead struct {
	registers map[uint32]uint32 // each value is used once, and only before the next request
	drains    int               // number of drains that updates can still answer without a request
	updates   []byte            // lists of updates, each preceded by the number of its updates
}

// addRegisters reads registers from an answer. They are a number, followed by addresses and values.
func (a *ahead) addRegisters(r *reader) {
	if a.registers == nil {
		a.registers = make(map[uint32]uint32)
	}
	for range r.u8() {
		addr, v := r.u32(), r.u32()
		a.registers[addr] = v
	}
}

// addUpdates adds the list of updates at the end of an answer. drains is the number of drains that can be served from
// it.
func (a *ahead) addUpdates(r *reader, drains int) error {
	if r.short || len(r.b) < 4 {
		return errBrokenAnswer
	}
	a.updates, a.drains = append(a.updates, r.b...), drains
	return nil
}

// drainsAfterList and drainsAfterSleep are the numbers of drains that are served from the answer to a list and to a
// sleep. After a sleep, one drain follows while the generator runs, and a second one when the queue is empty, as
// reported by registers in the same answer. Further drains send a request.
const drainsAfterList, drainsAfterSleep = 1, 2

// expire discards the register values, because a request is about to be made that may change them. Stored updates are
// kept, but the next drain makes a request.
func (a *ahead) expire() {
	clear(a.registers)
	a.drains = 0
}

// register returns the value that a register had after the last sleep. It returns each value only once.
func (a *ahead) register(addr uint32) (uint32, bool) {
	v, ok := a.registers[addr]
	delete(a.registers, addr)
	return v, ok
}

// answerDrain reports whether another drain can be served from the stored updates, and counts it.
func (a *ahead) answerDrain() bool {
	a.drains--
	return a.drains >= 0
}

// takeUpdates removes and returns the lists of updates. They are valid until the next request.
func (a *ahead) takeUpdates() []byte {
	lists := a.updates
	a.updates = a.updates[:0]
	return lists
}

// DoSteps performs a list of register accesses in one round trip (see regmap.Do). The answer also contains the updates
// delivered so far.
func (d *Device) DoSteps(steps []regmap.Step) (done int, err error) {
	d.startRequest(opList)
	snapshot := false
	for i := range steps {
		s := &steps[i]
		switch {
		case len(s.Words) > 0:
			d.request = append(d.request, opBurst)
			d.putWords(s.Addr, uint32(len(s.Words)))
			d.request = appendDifferences(d.request, s.Words)
		case s.Write:
			if snapshot = snapshot || s.Addr == regmap.CommonCommand; snapshot {
				clear(d.counters)
			}
			d.request = append(d.request, opWrite)
			d.putWords(s.Addr, s.Value)
		case s.Mask != 0 || s.Want != 0:
			d.request = append(d.request, opExpect)
			d.putWords(s.Addr, s.Mask, s.Want)
		default:
			d.request = append(d.request, opRead)
			d.putWords(s.Addr)
		}
	}
	r, err := d.sendRequest()
	if d.failed != nil {
		return 0, err
	}
	return d.readList(steps, &r, err)
}

// appendDifferences appends each word as its difference from the word wordsBack positions earlier, in as few bytes as
// possible.
func appendDifferences(b []byte, words []uint32) []byte {
	for i, w := range words {
		if i >= wordsBack {
			w -= words[i-wordsBack]
		}
		b = binary.AppendVarint(b, int64(int32(w)))
	}
	return b
}

// wordsBack is the distance between words that have similar values in a long burst. Such bursts load descriptors.
const wordsBack = regmap.DescriptorWords

// readDifferences reads n words that were written by appendDifferences.
func (r *reader) readDifferences(n uint32) []uint32 {
	if n > maxBurstWords || uint64(n) > uint64(len(r.b)) {
		r.short, r.b = true, nil
		return nil
	}
	words := make([]uint32, n)
	for i := range words {
		if words[i] = uint32(r.varint()); i >= wordsBack {
			words[i] += words[i-wordsBack]
		}
	}
	return words
}

// readList reads the answer to a list. failed is the error in the answer's status, or nil.
func (d *Device) readList(steps []regmap.Step, r *reader, failed error) (done int, err error) {
	if failed != nil && len(r.b) == 0 {
		return 0, failed
	}
	n := r.u32()
	if uint64(n) > uint64(len(steps)) || r.short || failed == nil && int(n) < len(steps) {
		return 0, errBrokenAnswer
	}
	for i := range steps[:n] {
		if s := &steps[i]; s.Reads() {
			s.Value = r.u32()
		}
	}
	if errors.Is(failed, regmap.ErrUnexpected) && int(n) < len(steps) {
		steps[n].Value = r.u32()
	}
	for range r.u32() {
		if r.short {
			break
		}
		addr, v := r.u32(), r.u32()
		d.counters[addr] = v
	}
	if !d.readOnly {
		return int(n), errors.Join(failed, d.ahead.addUpdates(r, drainsAfterList))
	}
	return int(n), errors.Join(failed, r.checkComplete())
}
