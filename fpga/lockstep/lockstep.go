// Package lockstep runs two cards through the same stream of register accesses and traffic, and reports the cycle,
// register or packet at which they first differ. Streams are generated from a seed, and each kind of stream stresses a
// different aspect.
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

// Side is one of the two cards to compare. Its tables must contain TableWorkers.
type Side struct {
	Device fpga.Device
	Tap    Tap
}

// Seen counts the cycles, frames and registers that were compared.
type Seen struct {
	Cycles    int64 `json:"cycles"`
	Frames    int   `json:"frames"`
	Registers int   `json:"registers"`
}

// Divergence describes the first difference between two cards.
type Divergence struct {
	Seed   uint64 `json:"seed"`
	Stream string `json:"stream"`
	Step   string `json:"step"`  // step after which the divergence is visible
	Cycle  int64  `json:"cycle"` // device cycle, an upper bound for the divergence
	What   string `json:"what"`  // the register or packet that differs
	A      string `json:"a"`
	B      string `json:"b"`
}

func (d *Divergence) String() string {
	return fmt.Sprintf("seed %d (%s), cycle %d, after %s: %s is %s and %s", d.Seed, d.Stream, d.Cycle, d.Step, d.What,
		d.A, d.B)
}

// CompareCards runs a and b through the stream for a seed. It returns the first divergence with its exact cycle, or nil
// if there is none. It returns an error if a card cannot continue.
func CompareCards(ctx context.Context, a, b Side, seed uint64) (*Divergence, Seen, error) {
	var stops []int64
	for {
		r := &run{ctx: ctx, a: a, b: b, story: newStory(seed), stops: stops}
		err := r.playStory()
		var d *Divergence
		if !errors.As(err, &d) {
			return nil, r.seen, err
		}
		if d.Cycle -= r.start; r.slept <= 1 { // every cycle was compared
			return d, r.seen, nil
		}
		for i := range int64(looksAtOnce) {
			stops = append(stops, d.Cycle-r.slept+(i+1)*r.slept/looksAtOnce)
		}
		slices.Sort(stops)
	}
}

// looksAtOnce is the number of parts into which an interval with a divergence is divided to find the exact cycle.
const looksAtOnce = 32

// Error makes a divergence an error, so that it can end a run.
func (d *Divergence) Error() string { return d.String() }

// run contains the state of two cards that run through the same story.
type run struct {
	ctx   context.Context
	a, b  Side
	story *story
	stops []int64 // additional cycles at which to compare, counted from the start
	start int64   // device cycle
	now   int64
	slept int64 // cycles since the last comparison
	step  string
	seen  Seen

	observed  []olaf.Observation
	packets   []twin.Packet
	unmatched [len(streams)][2][]string // entries without a match, by stream and side
	matched   [len(streams)]int
}

// playStory runs all steps of the story on both cards. It returns a *Divergence if the cards differ, or another error
// if a card cannot continue.
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

// drainCards waits until both cards have sent all frames, and compares the frames and registers.
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

// Limits for the end of a stream. The last step lets frames on the bus leave.
const (
	endsWithin = 200
	endStep    = 4000
)

// bothIdle reports whether both queues are empty and both generators have stopped.
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

// alignCards resets both cards, discards frames from earlier runs and brings the cards to the same cycle.
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
		if err := side.Device.Write32(regmap.CommonCommand, regmap.CommonCommandReset); err != nil { // drops frames on the bus
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

// takeStep runs one step on both cards and compares the results. After a sleep it compares the complete state.
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

// compareWrite writes the same value to both cards and compares the results of the writes.
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

// compareValues returns a *Divergence if a and b differ. what names the compared value.
func (r *run) compareValues(what, a, b string) error {
	if a == b {
		return nil
	}
	return &Divergence{Seed: r.story.seed, Stream: r.story.kind, Step: r.step, Cycle: r.now, What: what, A: a, B: b}
}

// compareState compares the frames sent since its previous call, the counters and all registers.
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

// compareFrames compares the frames sent by both cards, in order. It compares observations, and all bytes of delivered
// and bypassing frames. A frame that only one card has reported is kept for the next call, because it may still be on
// the other card's bus.
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

// compareRest returns a *Divergence if a card has sent a frame that the other has not.
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

// formatPacket returns a frame as text. It contains all fields except the gradients, the first four gradients, and a
// checksum of all gradients.
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

// own lists the registers that are not compared, because they depend on the build or have side effects when they are
// read.
var own = []string{
	"common.role", "common.capabilities", "common.build_hash", "common.build_time", "queue.built_slots",
	"queue.built_clusters",
	"queue.built_lanes", "generator.built_flows", "generator.built_descriptors", "generator.built_templates",
	"generator.mem_data",
	"generator.mem_burst", "generator.mem_status",
}

// compared lists the addresses of the registers to compare. These are the registers in the blocks that both cards have,
// except for those listed in own and those of the server model, replication and switch programs.
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
