package regfile

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
)

// Values of generator.mem_select.
const (
	descriptorMemory = iota
	flowMemory
	templateMemory
)

// Memories contains the generator's memories, indexed by the value of register mem_select.
type Memories [3]Memory

func (m *Memories) descriptors() uint32 { return m[descriptorMemory].limit / regmap.DescriptorWords }

// Descriptor reads descriptor n into d. It returns false if the descriptor was not loaded.
func (m *Memories) Descriptor(n uint64, d *regmap.Descriptor) bool {
	at, memory := n*regmap.DescriptorWords, &m[descriptorMemory]
	if at+regmap.DescriptorWords > uint64(memory.loaded) {
		return false
	}
	if w := memory.View(uint32(at), regmap.DescriptorWords); w != nil {
		d.Get(w)
	} else {
		*d = regmap.Descriptor{} // a gap between loaded pages
	}
	return true
}

// Flow reads flow n into f. A flow that was never written is disabled.
func (m *Memories) Flow(n int, f *regmap.Flow) {
	*f = regmap.Flow{}
	if w := m[flowMemory].View(uint32(n*regmap.FlowWords), regmap.FlowWords); w != nil {
		f.Get(w)
	}
}

// Lanes fills lanes with the values of a template. Template 0 is built in.
func (m *Memories) Lanes(template int, lanes []int32) {
	for j := range lanes {
		if template == 0 {
			lanes[j] = regmap.UnitLane
		} else {
			lanes[j] = int32(m[templateMemory].Word(uint32(template*regmap.TemplateWords + j)))
		}
	}
}

// FlowUsable reports whether frames can be sent for a flow.
func FlowUsable(f *regmap.Flow) bool { return f.Enable && f.Template < Templates }

// FrameLength returns the length of the frame that a descriptor specifies, in bytes, and whether this length is valid.
func FrameLength(d *regmap.Descriptor, f *regmap.Flow) (size int, ok bool) {
	if size = int(d.Length); size == 0 {
		size = int(f.Length)
	}
	return size, size >= olaf.HeaderBytes && size <= int(olaf.MaxFrame) && size%olaf.LaneBytes == 0
}

// memory returns the memory selected by register mem_select.
func (f *File[C]) memory() *Memory { return &f.Memories[f.Reg(regmap.GeneratorMemSelect)] }

func (f *File[C]) readMemory() uint32 {
	at, m := f.Reg(regmap.GeneratorMemAddress), f.memory()
	v := m.Word(at)
	if f.Reg(regmap.GeneratorMemSelect) == templateMemory && at < regmap.TemplateWords {
		v = uint32(regmap.UnitLane)
	}
	f.Set(regmap.GeneratorMemAddress, min(at+1, m.limit))
	return v
}

func (f *File[C]) writeMemory(words []uint32) *Reason {
	if f.behaviour.GeneratorBusy(f.device) {
		return BadState("the generator is armed or running")
	}
	at, m := f.Reg(regmap.GeneratorMemAddress), f.memory()
	if f.Reg(regmap.GeneratorMemSelect) == templateMemory && at < regmap.TemplateWords {
		return BadValue("template 0 is built in")
	}
	if !m.write(at, words) {
		return BadValue(fmt.Sprintf("the memory ends at word %d", m.limit))
	}
	f.Set(regmap.GeneratorMemAddress, at+uint32(len(words)))
	return nil
}

func (f *File[C]) memoryCommand(value uint32) *Reason {
	m := f.memory()
	if value&regmap.GeneratorMemCommandCRC != 0 {
		n := f.Reg(regmap.GeneratorMemLength)
		if n > m.loaded {
			return BadValue(fmt.Sprintf("mem_length is %d, but only %d words are loaded", n, m.loaded))
		}
		f.Set(regmap.GeneratorMemCRC, m.crc(n))
	}
	if value&regmap.GeneratorMemCommandClear != 0 {
		if f.behaviour.GeneratorBusy(f.device) {
			return BadState("the generator is armed or running")
		}
		m.Clear()
	}
	return nil
}
