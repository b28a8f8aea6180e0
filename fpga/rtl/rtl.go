// Package rtl runs the card's own logic: OlafQueue and the packet generator in SystemVerilog (sv), compiled by Verilator
// into a program that this process starts as a child. It is a backend of fpga.Device in which every cycle is computed by
// the logic that an FPGA would hold (docs/notes/rtl.md).
//
// VNP4 is no part of it: the child asks for the worker of each source, and Config.Tables answers.
package rtl

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

// Tables is what VNP4-1 matches. An answer is kept until Version changes.
type Tables interface {
	// Worker is the action set_worker of the source address, false where the table has no entry.
	Worker(source netip.Addr) (olaf.ClusterID, olaf.WorkerID, bool)
	// Version changes with every change of the contents.
	Version() uint64
}

// Config is what is built and what hangs on its ports.
type Config struct {
	Build
	// Tables answers VNP4-1; nil knows nobody, so that everything is bypassed.
	Tables Tables
	// Cache is the folder of finished builds; empty is the user's.
	Cache string
	// Building is told when a build starts, which takes a minute; nil tells nobody.
	Building func()
	// Patience is how long the child may keep silent beside what its work takes; 0 is 20 s.
	Patience time.Duration
}

// patience is how long a child may keep silent beside what its work takes.
const patience = 20 * time.Second

// Card is one running simulation of the logic. It is not safe for concurrent use.
type Card struct {
	cfg     Config
	child   *child
	build   string
	version uint64 // of the tables that the child knows
	zero    int64  // cycle at which the generator's run clock was 0
	earlier int64  // the same of frames that were over at moved
	moved   int64
	tap     tap
}

var _ fpga.Device = (*Card)(nil)

// Open starts the logic of cfg in its reset state at cycle 0, after building it where no build is in the cache. The error
// matches ErrTools where a program is missing for that, ErrBuild where the sources can't be built, and fpga.ErrGone where
// the child does not answer.
func Open(ctx context.Context, cfg Config) (*Card, error) {
	cfg.Build.defaults()
	if err := cfg.Build.Validate(); err != nil {
		return nil, err
	}
	if cfg.Patience == 0 {
		cfg.Patience = patience
	}
	c := &Card{cfg: cfg, build: sourcesHash()[:8]}
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	return c, c.child.watch(reportLog)
}

// start runs the build from the cache. One that does not even greet was damaged there: it is built again, once.
func (c *Card) start(ctx context.Context) error {
	program, err := c.cfg.program(ctx)
	if err != nil {
		return err
	}
	if c.child, err = start(program, c.cfg.Patience, c); err == nil {
		return nil
	}
	if os.Remove(program) != nil {
		return err
	}
	if program, err = c.cfg.program(ctx); err != nil {
		return err
	}
	c.child, err = start(program, c.cfg.Patience, c)
	return err
}

// Identity says which logic this is: the hash of its sources.
func (c *Card) Identity() fpga.Identity {
	return fpga.Identity{
		Address:    "rtl:" + c.cfg.Build.name(),
		Kind:       "rtl",
		MapVersion: fmt.Sprintf("%d.%d.%d", regmap.VersionMajor, regmap.VersionMinor, regmap.VersionPatch),
		Build:      c.build,
		ClockHz:    uint64(olaf.Second / olaf.Cycle),
	}
}

// Close ends the child. Every later access fails with fpga.ErrGone.
func (c *Card) Close() error { return c.child.close() }

// The 250 MHz user box, to which addresses of the logic are relative.
const (
	boxBase = 0x100000
	boxSize = 0x100000
)

// Read32 reads a register; device time stands. An address without one gives fpga.ErrAddress and what the card answers.
func (c *Card) Read32(addr uint32) (uint32, error) {
	if addr-boxBase >= boxSize {
		return regmap.Placeholder, fmt.Errorf("rtl: %w at %#x", fpga.ErrAddress, addr)
	}
	response, value, err := c.child.read(addr - boxBase)
	if err != nil {
		return 0, err
	}
	return value, refusal(response, "read", addr)
}

// Write32 writes a register; device time stands. The errors are those of the card's answer: fpga.ErrAddress, fpga.ErrRefused.
func (c *Card) Write32(addr, value uint32) error {
	if addr-boxBase >= boxSize {
		return fmt.Errorf("rtl: %w at %#x", fpga.ErrAddress, addr)
	}
	response, err := c.child.write(addr-boxBase, value)
	if err != nil {
		return err
	}
	if err := refusal(response, fmt.Sprintf("write %#x to", value), addr); err != nil {
		return err
	}
	return c.heed(addr, value)
}

// heed takes note of writes that move the run clock.
func (c *Card) heed(addr, value uint32) error {
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

// runTime is a cycle on the run clock that was in force when something was over.
func (c *Card) runTime(cycle, over int64) olaf.Time {
	if over <= c.moved {
		return cycleTime(cycle - c.earlier)
	}
	return cycleTime(cycle - c.zero)
}

// WriteBurst writes all words to one address, in order. The memory proxy takes all or none.
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
	if err := c.fits(len(words)); err != nil {
		return err
	}
	response, err := c.child.burst(addr-boxBase, words)
	if err != nil {
		return err
	}
	return refusal(response, "write to", addr)
}

// fits says whether the selected memory has room for n words from its address on.
func (c *Card) fits(n int) error {
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

// refusal words what the card answered.
func refusal(response uint8, did string, addr uint32) error {
	if response == axiOkay {
		return nil
	}
	name := fmt.Sprintf("%#x", addr)
	ref, _, known := regmap.At(addr)
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

// Sleep lets d of the card's time pass, rounded up to whole cycles. It looks at ctx every few thousand cycles; when ctx is
// done, the context's error is returned.
func (c *Card) Sleep(ctx context.Context, d olaf.Duration) error {
	cycles := int64(max(d, 0)+olaf.Cycle-1) / int64(olaf.Cycle)
	return c.run(ctx, cycles, false)
}

// runAtOnce is how many cycles pass between two looks at the context: a few hundredths of a second.
const runAtOnce = 100_000

// run lets cycles pass, or fewer once nothing is under way any more where that is asked for.
func (c *Card) run(ctx context.Context, cycles int64, untilRest bool) error {
	if err := c.refresh(); err != nil {
		return err
	}
	for cycles > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := min(cycles, runAtOnce)
		now := c.child.cycle
		if err := c.child.run(part, untilRest); err != nil {
			return err
		}
		if c.child.cycle < now+part {
			break // it rests
		}
		cycles -= part
	}
	return ctx.Err()
}

// refresh makes the child forget what it knows of tables that changed.
func (c *Card) refresh() error {
	if c.cfg.Tables == nil {
		return nil
	}
	if v := c.cfg.Tables.Version(); v != c.version {
		c.version = v
		return c.child.forget()
	}
	return nil
}

// worker answers the child's question who sends from an address.
func (c *Card) worker(source netip.Addr) (olaf.ClusterID, olaf.WorkerID, bool) {
	if c.cfg.Tables == nil {
		return 0, 0, false
	}
	return c.cfg.Tables.Worker(source)
}
