package remote

import (
	"errors"

	"github.com/olafctl/olaf/fpga/regmap"
)

// ahead contains data from the answer to the last sleep, which the next accesses usually request.
type ahead struct {
	registers map[uint32]uint32 // each is used once, and only before the next request
	drains    int               // drains that updates can still answer without a request
	updates   []byte            // lists of updates, each after its length
}

// read reads the rest of the answer to opWatch.
func (a *ahead) read(r *reader) error {
	if a.registers == nil {
		a.registers = make(map[uint32]uint32)
	}
	for range r.u8() {
		addr, v := r.u32(), r.u32()
		a.registers[addr] = v
	}
	a.updates, a.drains = append(a.updates, r.b...), drainsAhead
	if r.short || len(r.b) < 4 {
		return (&reader{short: true}).checkComplete()
	}
	return nil
}

// drainsAhead is the number of drains that a sleep's answer serves: one while the generator runs, and one when the
// queue is empty, as registers in the same answer report. Further drains send a request.
const drainsAhead = 2

// expire records that a request is made, after which register values may differ.
func (a *ahead) expire() {
	clear(a.registers)
	a.drains = 0
}

// register returns a register's value read after the last sleep. It returns each value once.
func (a *ahead) register(addr uint32) (uint32, bool) {
	v, ok := a.registers[addr]
	delete(a.registers, addr)
	return v, ok
}

// take returns the lists of updates and whether they are current. They are valid until the next sleep.
func (a *ahead) take() (fresh bool, updates []byte) {
	fresh, updates = a.drains > 0, a.updates
	a.drains, a.updates = a.drains-1, a.updates[:0]
	return fresh, updates
}

// DoSteps performs a list of accesses in one round trip (regmap.Do).
func (d *Device) DoSteps(steps []regmap.Step) (done int, err error) {
	if !d.offers.Lists {
		return regmap.Do(single{d}, steps)
	}
	d.startRequest(opList)
	snapshot := false
	for i := range steps {
		s := &steps[i]
		switch {
		case len(s.Words) > 0:
			d.request = append(d.request, opBurst)
			d.putWords(s.Addr, uint32(len(s.Words)))
			d.putWords(s.Words...)
		case s.Write:
			if snapshot = snapshot || s.Addr == regmap.CommonCommand; snapshot {
				clear(d.counters)
			}
			d.request = append(d.request, opWrite)
			d.putWords(s.Addr, s.Value)
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

// readList reads the answer to a list that ended with an error or nil.
func (d *Device) readList(steps []regmap.Step, r *reader, failed error) (done int, err error) {
	n := r.u32()
	if uint64(n) > uint64(len(steps)) || r.short {
		return 0, (&reader{short: true}).checkComplete()
	}
	for i := range steps[:n] {
		if s := &steps[i]; !s.Write && len(s.Words) == 0 {
			s.Value = r.u32()
		}
	}
	for len(r.b) >= 8 {
		addr, v := r.u32(), r.u32()
		d.counters[addr] = v
	}
	if failed == nil && int(n) < len(steps) {
		r.short = true
	}
	return int(n), errors.Join(failed, r.checkComplete())
}

// single is a device without lists.
type single struct{ regmap.Registers }
