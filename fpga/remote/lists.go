package remote

import (
	"encoding/binary"
	"errors"

	"github.com/olafctl/olaf/fpga/regmap"
)

// ahead contains data from the last answer, which the next accesses usually request.
type ahead struct {
	registers map[uint32]uint32 // each is used once, and only before the next request
	drains    int               // drains that updates can still answer without a request
	updates   []byte            // lists of updates
}

// addRegisters reads registers: their number, addresses and values.
func (a *ahead) addRegisters(r *reader) {
	if a.registers == nil {
		a.registers = make(map[uint32]uint32)
	}
	for range r.u8() {
		addr, v := r.u32(), r.u32()
		a.registers[addr] = v
	}
}

// addUpdates adds the rest of an answer, a list of updates that serves some drains.
func (a *ahead) addUpdates(r *reader, drains int) error {
	if r.short || len(r.b) < 4 {
		return errBrokenAnswer
	}
	a.updates, a.drains = append(a.updates, r.b...), drains
	return nil
}

// Drains that the answer to a list, or to a sleep, serves. After a sleep there is one drain while the generator runs, and one
// when the queue is empty, as registers in the same answer report. Further drains send a request.
const drainsAfterList, drainsAfterSleep = 1, 2

// expire discards the data, because a request is about to be made that may change register values.
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

// answerDrain reports whether the updates serve another drain.
func (a *ahead) answerDrain() bool {
	a.drains--
	return a.drains >= 0
}

// takeUpdates returns the lists of updates. They are valid until the next request.
func (a *ahead) takeUpdates() []byte {
	lists := a.updates
	a.updates = a.updates[:0]
	return lists
}

// DoSteps performs a list of accesses in one round trip (regmap.Do). The updates delivered so far come with it.
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

// appendDifferences appends words as differences from the word that is wordsBack before, in as few bytes as they need.
func appendDifferences(b []byte, words []uint32) []byte {
	for i, w := range words {
		if i >= wordsBack {
			w -= words[i-wordsBack]
		}
		b = binary.AppendVarint(b, int64(int32(w)))
	}
	return b
}

// wordsBack is the distance of words that are alike in long bursts, which load descriptors.
const wordsBack = regmap.DescriptorWords

// readDifferences reads n words that appendDifferences wrote.
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
