// Package rtl runs the card's logic, which consists of OlafQueue and the packet generator in SystemVerilog (folder sv).
// Verilator compiles the logic into a program that runs as a child process. The package is a backend of fpga.Device in
// which every cycle is computed by the logic of an FPGA (docs/notes/rtl.md). VNP4 is not included. Instead, the child
// asks for the worker of each source address, and Config.Tables answers.
package rtl

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

// Tables looks up senders in place of the block VNP4-1. Answers are cached until Version changes.
type Tables interface {
	// Worker returns the parameters of the action set_worker for the source address. ok is false if the table has no
	// entry.
	Worker(source netip.Addr) (olaf.ClusterID, olaf.WorkerID, bool)
	// Version changes with every change of the contents.
	Version() uint64
}

// Config configures the size of the logic and what it is connected to.
type Config struct {
	Build
	// Tables answers the lookups of VNP4-1. If it is nil, all sources are unknown and all frames bypass the queue.
	Tables Tables
	// Cache is the folder for finished builds; empty means the user's folder.
	Cache string
	// Building, if set, is called when a build starts, which takes a minute.
	Building func()
	// Patience is the time for which the child may be silent in addition to the time for its work; 0 means 20 s.
	Patience time.Duration
}

// patience is the default value of Config.Patience.
const patience = 20 * time.Second

// Card is a running simulation of the logic. It is not safe for concurrent use.
type Card struct {
	cfg     Config
	child   *child
	build   string
	version uint64 // version of the tables that the child has cached
	zero    int64  // cycle at which the generator's run clock was 0
	earlier int64  // value of zero before moved, for frames that ended earlier
	moved   int64
	tap     tap
}

var _ fpga.Device = (*Card)(nil)

// Open starts a simulation of the logic in its reset state, at cycle 0. If the cache does not contain the program, Open
// builds it. The error matches ErrTools if a program needed for building is missing, ErrBuild if the sources cannot be
// built, and fpga.ErrGone if the child does not answer.
func Open(ctx context.Context, cfg Config) (*Card, error) {
	cfg.Build.setDefaults()
	if err := cfg.Build.Validate(); err != nil {
		return nil, err
	}
	cfg.Patience = cmp.Or(cfg.Patience, patience)
	c := &Card{cfg: cfg, build: sourcesHash()[:8]}
	if err := c.startChild(ctx); err != nil {
		return nil, err
	}
	return c, c.child.setReports(reportLog)
}

// startChild runs the cached program. If the program does not answer the greeting, it must be damaged and is built
// again, but only once.
func (c *Card) startChild(ctx context.Context) error {
	program, err := c.cfg.findProgram(ctx)
	if err != nil {
		return err
	}
	if c.child, err = startChild(program, c.cfg.Patience, c); err == nil {
		return nil
	}
	if os.Remove(program) != nil {
		return err
	}
	if program, err = c.cfg.findProgram(ctx); err != nil {
		return err
	}
	c.child, err = startChild(program, c.cfg.Patience, c)
	return err
}

// Identity returns the device's identity. Its Build is the hash of the sources.
func (c *Card) Identity() fpga.Identity {
	return fpga.Identity{
		Address:    "rtl:" + c.cfg.Build.addressName(),
		Kind:       "rtl",
		MapVersion: fmt.Sprintf("%d.%d.%d", regmap.VersionMajor, regmap.VersionMinor, regmap.VersionPatch),
		Build:      c.build,
		ClockHz:    uint64(olaf.Second / olaf.Cycle),
	}
}

// Close ends the simulation. All later accesses fail with fpga.ErrGone.
func (c *Card) Close() error { return c.child.close() }

// The 250 MHz user box, which is the base of the logic's addresses.
const (
	boxBase = 0x100000
	boxSize = 0x100000
)

// Read32 reads a register without advancing time. For an unknown address it returns the card's answer with
// fpga.ErrAddress.
func (c *Card) Read32(addr uint32) (uint32, error) {
	if addr-boxBase >= boxSize {
		return regmap.Placeholder, fmt.Errorf("rtl: %w at %#x", fpga.ErrAddress, addr)
	}
	response, value, err := c.child.read(addr - boxBase)
	if err != nil {
		return 0, err
	}
	return value, refusalError(response, "read", addr)
}

// Write32 writes a register without advancing time. If the card rejects the write, the error is fpga.ErrAddress or
// fpga.ErrRefused.
func (c *Card) Write32(addr, value uint32) error {
	if addr-boxBase >= boxSize {
		return fmt.Errorf("rtl: %w at %#x", fpga.ErrAddress, addr)
	}
	response, err := c.child.write(addr-boxBase, value)
	if err != nil {
		return err
	}
	if err := refusalError(response, fmt.Sprintf("write %#x to", value), addr); err != nil {
		return err
	}
	return c.trackRunClock(addr, value)
}

// trackRunClock updates the origin of the run clock after writes that change it.
func (c *Card) trackRunClock(addr, value uint32) error {
	switch {
	case addr == regmap.GeneratorCommand && value&regmap.GeneratorCommandStart != 0,
		addr == regmap.CommonCommand && value&regmap.CommonCommandReset != 0:
		start, err := regmap.Read64(c, regmap.GeneratorStartCycle)
		c.earlier, c.moved = c.zero, c.child.cycle
		c.zero = int64(start)
		return err
	}
	return nil
}

// runTime converts a cycle to time on the run clock. It uses the origin of the run clock that was valid in the cycle
// over.
func (c *Card) runTime(cycle, over int64) olaf.Time {
	if over <= c.moved {
		return cycleTime(cycle - c.earlier)
	}
	return cycleTime(cycle - c.zero)
}

// WriteBurst writes all words to one address, in order. The memory proxy accepts either all words or none.
func (c *Card) WriteBurst(addr uint32, words []uint32) error {
	if addr != regmap.GeneratorMemData {
		for _, w := range words {
			if err := c.Write32(addr, w); err != nil {
				return err
			}
		}
		return nil
	}
	if len(words) == 0 {
		return nil
	}
	if err := c.checkRoom(len(words)); err != nil {
		return err
	}
	response, err := c.child.burst(addr-boxBase, words)
	if err != nil {
		return err
	}
	return refusalError(response, "write to", addr)
}

// checkRoom returns an error if n words do not fit into the selected memory after its current address.
func (c *Card) checkRoom(n int) error {
	selected, err := c.Read32(regmap.GeneratorMemSelect)
	if err != nil {
		return err
	}
	at, err := c.Read32(regmap.GeneratorMemAddress)
	if err != nil {
		return err
	}
	limits := [...]int{c.cfg.Descriptors * regmap.DescriptorWords, c.cfg.Flows * regmap.FlowWords,
		templates * regmap.TemplateWords}
	if int(selected) < len(limits) && int(at)+n > limits[selected] {
		return fmt.Errorf("rtl: write to generator.mem_data: %w: the memory ends at word %d", fpga.ErrRefused,
			limits[selected])
	}
	return nil
}

// AXI responses.
const (
	axiOkay   = 0
	axiSlvErr = 2
	axiDecErr = 3
)

// refusalError returns the error for the card's response to an access, or nil if the access succeeded.
func refusalError(response uint8, did string, addr uint32) error {
	if response == axiOkay {
		return nil
	}
	name := fmt.Sprintf("%#x", addr)
	ref, _, known := regmap.RegisterAt(addr)
	if known {
		name = ref.Name()
	}
	switch {
	case response == axiDecErr && known:
		return fmt.Errorf("rtl: %s %s: %w: the register is read-only", did, name, fpga.ErrAddress)
	case response == axiDecErr:
		return fmt.Errorf("rtl: %w at %s", fpga.ErrAddress, name)
	}
	return fmt.Errorf("rtl: %s %s: %w: its state or limits forbid it; common.errors shows which", did, name,
		fpga.ErrRefused)
}

// Sleep lets d of device time pass, rounded up to whole cycles. It checks ctx every few thousand cycles and returns the
// context's error.
func (c *Card) Sleep(ctx context.Context, d olaf.Duration) error {
	cycles := int64(max(d, 0)+olaf.Cycle-1) / int64(olaf.Cycle)
	return c.runCycles(ctx, cycles, false)
}

// runAtOnce is the number of cycles between two checks of the context. They take a few hundredths of a second.
const runAtOnce = 100_000

// runCycles simulates a number of cycles. If untilRest is set, it stops early when nothing is in flight.
func (c *Card) runCycles(ctx context.Context, cycles int64, untilRest bool) error {
	if err := c.refreshTables(); err != nil {
		return err
	}
	for cycles > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := min(cycles, runAtOnce)
		now := c.child.cycle
		if err := c.child.runCycles(part, untilRest); err != nil {
			return err
		}
		if c.child.cycle < now+part {
			break // the logic is at rest
		}
		cycles -= part
	}
	return ctx.Err()
}

// refreshTables clears the child's cache if the tables have changed.
func (c *Card) refreshTables() error {
	if c.cfg.Tables == nil {
		return nil
	}
	if v := c.cfg.Tables.Version(); v != c.version {
		c.version = v
		return c.child.sendCommand([]byte{'k'}, 0)
	}
	return nil
}

// worker looks up a sender's address for the child.
func (c *Card) worker(source netip.Addr) (olaf.ClusterID, olaf.WorkerID, bool) {
	if c.cfg.Tables == nil {
		return 0, 0, false
	}
	return c.cfg.Tables.Worker(source)
}
