// Package lockstep runs two cards through the same streams and reports where they first differ: cycle, register,
// packet. Streams are drawn from a seed; each kind stresses a different aspect.
package lockstep

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/twin"
)

// Tap records the frames that leave a card.
type Tap interface {
	Drain([]olaf.Observation) []olaf.Observation
	Record(on bool)
	DrainPackets([]twin.Packet) []twin.Packet
}

// Side is one of two cards. Its tables must contain TableWorkers.
type Side struct {
	Device fpga.Device
	Tap    Tap
}

// Seen counts what was compared.
type Seen struct {
	Cycles    int64 `json:"cycles"`
	Frames    int   `json:"frames"`
	Registers int   `json:"registers"`
}

// Divergence is the first difference between two cards.
type Divergence struct {
	Seed   uint64 `json:"seed"`
	Stream string `json:"stream"`
	Step   string `json:"step"`  // step after which it is visible
	Cycle  int64  `json:"cycle"` // device cycle, an upper bound
	What   string `json:"what"`  // a register, or a packet
	A      string `json:"a"`
	B      string `json:"b"`
}

func (d *Divergence) String() string {
	return fmt.Sprintf("seed %d (%s), cycle %d, after %s: %s is %s and %s", d.Seed, d.Stream, d.Cycle, d.Step, d.What,
		d.A, d.B)
}

// CompareCards runs a and b through the stream of a seed. The divergence is nil if there is none; otherwise its
// cycle is exact. The error is that of a card that cannot continue.
func CompareCards(ctx context.Context, a, b Side, seed uint64) (*Divergence, Seen, error) {
	var stops []int64
	for {
		r := &run{ctx: ctx, a: a, b: b, story: newStory(seed), stops: stops}
		err := r.playStory()
		var d *Divergence
		if !errors.As(err, &d) {
			return nil, r.seen, err
		}
		if d.Cycle -= r.start; r.slept <= 1 { // every cycle was checked
			return d, r.seen, nil
		}
		for i := range int64(looksAtOnce) {
			stops = append(stops, d.Cycle-r.slept+(i+1)*r.slept/looksAtOnce)
		}
		slices.Sort(stops)
	}
}

// looksAtOnce is the number of parts into which the interval of a divergence is divided.
const looksAtOnce = 32

// Error makes a divergence an error, which ends a run.
func (d *Divergence) Error() string { return d.String() }

// run is one run of a story.
type run struct {
	ctx   context.Context
	a, b  Side
	story *story
	stops []int64 // additional cycles to compare at, since the start
	start int64   // device cycle
	now   int64
	slept int64 // since the last comparison
	step  string
	seen  Seen

	observed  []olaf.Observation
	packets   []twin.Packet
	unmatched [len(streams)][2][]string // by side
	matched   [len(streams)]int
}

// playStory runs the story. The error is a *Divergence, or that of a card that cannot continue.
func (r *run) playStory() error {
	if err := r.alignCards(); err != nil {
		return err
	}
	for i := range r.story.steps {
		s := &r.story.steps[i]
		r.step = s.String()
		if err := r.takeStep(s); err != nil {
			return err
		}
	}
	return r.drainCards()
}

// drainCards lets all frames leave and compares the rest.
func (r *run) drainCards() error {
	r.step = "the end"
	for range endsWithin {
		rests, err := r.bothIdle()
		if err != nil {
			return err
		}
		if err := r.takeStep(&step{sleep: endStep}); err != nil || rests {
			return errors.Join(err, r.compareRest())
		}
	}
	return r.compareRest()
}

// Limits for the end of a stream; the last step lets frames on the bus leave.
const (
	endsWithin = 200
	endStep    = 4000
)

// bothIdle reports whether both cards have sent everything.
func (r *run) bothIdle() (bool, error) {
	for _, side := range r.sides() {
		status, err := side.Device.Read32(regmap.QueueStatus)
		if err != nil {
			return false, err
		}
		state, err := side.Device.Read32(regmap.GeneratorState)
		if err != nil || status&regmap.QueueStatusEmpty == 0 || state == generatorRunning {
			return false, err
		}
	}
	return true, nil
}

const generatorRunning = 2

// alignCards resets both cards and brings them to the same cycle, without leftovers from before.
func (r *run) alignCards() error {
	cycles := [2]int64{}
	for i, side := range r.sides() {
		side.Tap.Record(true)
		if err := side.Device.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandAbort); err != nil {
			return err
		}
		if err := side.Device.Write32(regmap.CommonCommand, regmap.CommonCommandReset); err != nil {
			return err
		}
		if err := side.Device.Sleep(r.ctx, 4*olaf.Microsecond); err != nil {
			return err
		}
		if err := side.Device.Write32(regmap.CommonCommand, regmap.CommonCommandReset); err != nil { // frames that were on the bus
			return err
		}
		r.observed = side.Tap.Drain(r.observed[:0])
		r.packets = side.Tap.DrainPackets(r.packets[:0])
		cycle, err := regmap.Read64(side.Device, regmap.CommonCycles)
		if err != nil {
			return err
		}
		cycles[i] = int64(cycle)
	}
	r.start = max(cycles[0], cycles[1])
	for i, side := range r.sides() {
		if err := side.Device.Sleep(r.ctx, olaf.Duration(r.start-cycles[i])*olaf.Cycle); err != nil {
			return err
		}
	}
	r.now = r.start
	return nil
}

func (r *run) sides() [2]Side { return [2]Side{r.a, r.b} }

// takeStep runs one step on both cards and compares their answers; after a sleep it compares everything.
func (r *run) takeStep(s *step) error {
	if s.sleep == 0 {
		return r.compareWrite(s)
	}
	for left := s.sleep; left > 0; {
		part := left
		if i, _ := slices.BinarySearch(r.stops, r.now-r.start+1); i < len(r.stops) {
			part = min(part, r.stops[i]-(r.now-r.start))
		}
		for _, side := range r.sides() {
			if err := side.Device.Sleep(r.ctx, olaf.Duration(part)*olaf.Cycle); err != nil {
				return err
			}
		}
		r.now += part
		r.slept = part
		r.seen.Cycles += part
		left -= part
		if err := r.compareState(); err != nil {
			return err
		}
	}
	return nil
}

// compareWrite makes a write on both cards and compares the results.
func (r *run) compareWrite(s *step) error {
	var answers [2]string
	for i, side := range r.sides() {
		var err error
		if s.words != nil {
			err = side.Device.WriteBurst(s.addr, s.words)
		} else {
			err = side.Device.Write32(s.addr, s.value)
		}
		switch {
		case err == nil:
			answers[i] = "taken"
		case errors.Is(err, fpga.ErrRefused):
			answers[i] = "refused"
		case errors.Is(err, fpga.ErrAddress):
			answers[i] = "no register"
		default:
			return err
		}
	}
	r.slept = 0
	return r.compareValues(nameOf(s.addr), answers[0], answers[1])
}

// compareValues returns a *Divergence if two values differ.
func (r *run) compareValues(what, a, b string) error {
	if a == b {
		return nil
	}
	return &Divergence{Seed: r.story.seed, Stream: r.story.kind, Step: r.step, Cycle: r.now, What: what, A: a, B: b}
}

// compareState compares the frames since the last call, the counters and all registers.
func (r *run) compareState() error {
	if err := r.compareFrames(); err != nil {
		return err
	}
	for _, side := range r.sides() {
		if err := side.Device.Write32(regmap.CommonCommand, regmap.CommonCommandSnapshot); err != nil {
			return err
		}
	}
	for _, at := range compared {
		var values [2]uint32
		for i, side := range r.sides() {
			v, err := side.Device.Read32(at)
			if err != nil {
				return err
			}
			values[i] = v
		}
		r.seen.Registers++
		if err := r.compareValues(nameOf(at), fmt.Sprintf("%#x", values[0]), fmt.Sprintf("%#x", values[1])); err != nil {
			return err
		}
	}
	return nil
}

// compareFrames compares the frames sent by both cards, in order: observations, and all bytes of delivered and
// bypassing frames. One card may report a frame while it is still on the other's bus.
func (r *run) compareFrames() error {
	for i, side := range r.sides() {
		r.observed = side.Tap.Drain(r.observed[:0])
		for k := range r.observed {
			r.unmatched[observations][i] = append(r.unmatched[observations][i], fmt.Sprintf("%+v", r.observed[k]))
		}
		r.packets = side.Tap.DrainPackets(r.packets[:0])
		for k := range r.packets {
			kind := deliveries
			if r.packets[k].Kind == twin.Bypassed {
				kind = detours
			}
			r.unmatched[kind][i] = append(r.unmatched[kind][i], formatPacket(&r.packets[k]))
		}
	}
	for kind := range r.unmatched {
		q := &r.unmatched[kind]
		n := min(len(q[0]), len(q[1]))
		for k := range n {
			if err := r.compareValues(fmt.Sprintf("%s %d", streams[kind], r.matched[kind]+k), q[0][k], q[1][k]); err != nil {
				return err
			}
		}
		r.matched[kind] += n
		q[0], q[1] = q[0][n:], q[1][n:]
	}
	return nil
}

// compareRest compares the remaining frames of both.
func (r *run) compareRest() error {
	for kind := range r.unmatched {
		q := &r.unmatched[kind]
		if err := r.compareValues(fmt.Sprintf("%s %d", streams[kind], r.matched[kind]), firstOrNone(q[0]), firstOrNone(q[1])); err != nil {
			return err
		}
	}
	r.seen.Frames = r.matched[deliveries] + r.matched[detours]
	return nil
}

func firstOrNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return list[0]
}

// Streams compared in order.
const (
	observations = iota
	deliveries
	detours
)

var streams = [...]string{"observation", "packet", "bypassed packet"}

// formatPacket formats a frame with all its bytes; gradients are shown as a checksum.
func formatPacket(p *twin.Packet) string {
	sum := crc32.NewIEEE()
	_ = binary.Write(sum, binary.LittleEndian, p.Lanes) // a hash accepts everything
	some := p.Lanes[:min(len(p.Lanes), 4)]
	header := *p
	header.Lanes = nil
	return fmt.Sprintf("%+v with gradients %v… of CRC %#x", header, some, sum.Sum32())
}

func nameOf(addr uint32) string {
	if ref, high, ok := regmap.RegisterAt(addr); ok && high {
		return ref.Name() + " (high)"
	} else if ok {
		return ref.Name()
	}
	return fmt.Sprintf("%#x", addr)
}

// own lists registers that depend on the build or have side effects when read.
var own = []string{
	"common.role", "common.capabilities", "common.build_hash", "common.build_time", "queue.built_slots",
	"queue.built_clusters",
	"queue.built_lanes", "generator.built_flows", "generator.built_descriptors", "generator.built_templates",
	"generator.mem_data",
	"generator.mem_burst", "generator.mem_status",
}

// compared lists the words of all other registers of blocks that both cards have: not the server model,
// replication, or a program.
var compared = func() (at []uint32) {
	for _, b := range regmap.BuiltBlocks(0) {
		if b.Name == "model" || b.Name == "replication" {
			continue
		}
		for i := range b.Registers {
			r := &b.Registers[i]
			if r.Access == regmap.Command || slices.Contains(own, b.Name+"."+r.Name) {
				continue
			}
			for word := uint32(0); word < r.Bytes(); word += 4 {
				at = append(at, b.Base+r.Offset+word)
			}
		}
	}
	return at
}()
