package rtl

import (
	"encoding/binary"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
)

// injection is a frame that a test puts on the input bus.
type injection struct {
	cycle   int64 // the first beat arrives in this cycle, or as soon after it as the input accepts it
	known   bool
	cluster olaf.ClusterID
	worker  olaf.WorkerID
	bytes   []byte
}

func (i *injection) encode(to []byte) []byte {
	to = binary.LittleEndian.AppendUint64(to, uint64(i.cycle))
	to = append(to, 0)
	if i.known {
		to[len(to)-1] = 1
	}
	to = binary.LittleEndian.AppendUint16(to, uint16(i.cluster))
	to = binary.LittleEndian.AppendUint16(to, uint16(i.worker))
	to = binary.LittleEndian.AppendUint16(to, 0)
	to = binary.LittleEndian.AppendUint16(to, 0)
	to = binary.LittleEndian.AppendUint16(to, uint16(len(i.bytes)))
	return append(to, i.bytes...)
}

// inject puts a frame on the input bus while time passes.
func (c *child) inject(i *injection) error { return c.sendCommand(i.encode([]byte{'i'}), 0) }

// ready sets in how many of 65,536 cycles a consumer accepts a beat, drawn from a seed. around selects the bypass
// instead of the output to the parameter server.
func (c *child) ready(around bool, of65536 uint32, seed uint64) error {
	command := []byte{'o', 0}
	if around {
		command[1] = 1
	}
	command = binary.LittleEndian.AppendUint32(command, of65536)
	return c.sendCommand(binary.LittleEndian.AppendUint64(command, seed), 0)
}

// present offers a frame while the output's clock is stopped, and returns its class.
func (c *child) present(i *injection) (engine.Class, error) {
	if err := c.sendCommand(i.encode([]byte{'v'}), 10_000); err != nil {
		return 0, err
	}
	b, err := c.readRecords('v', 1, 10_000)
	if err != nil {
		return 0, err
	}
	if b[0] == 0xff {
		return engine.Classes, nil
	}
	return engine.Class(b[0]), nil
}

// leastClocks is the number of clocks that a posted write needs on the bus.
const leastClocks = 8

// post writes a register. The write takes effect after the given number of clocks in the next commands.
func (c *child) post(addr, value uint32, clocks uint16) error {
	command := binary.LittleEndian.AppendUint32([]byte{'p'}, addr)
	command = binary.LittleEndian.AppendUint32(command, value)
	return c.sendCommand(binary.LittleEndian.AppendUint16(command, clocks), 0)
}

// step advances the output's clock by the given number of cycles, each with more clocks for the rest of the logic, or
// stops when the output is idle.
func (c *child) step(cycles int64, untilIdle bool) error {
	command := binary.LittleEndian.AppendUint64([]byte{'s'}, uint64(cycles))
	command = append(command, 0)
	if untilIdle {
		command[len(command)-1] = 1
	}
	if err := c.sendCommand(command, 1<<20); err != nil {
		return err
	}
	b, err := c.readRecords('s', 8, 1<<20)
	if err != nil {
		return err
	}
	c.cycle = int64(binary.LittleEndian.Uint64(b))
	return nil
}
