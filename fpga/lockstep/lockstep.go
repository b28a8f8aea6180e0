// Package lockstep leads two cards through the same streams and says where they first differ: in which cycle, in which
// register, in which packet. Streams are drawn from a seed, each of a kind that is hard in a way of its own.
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

// Tap is what sees the frames that leave a card.
type Tap interface {
	Drain([]olaf.Observation) []olaf.Observation
	Record(on bool)
	DrainPackets([]twin.Packet) []twin.Packet
}

// Side is one of two cards, whose tables hold Workers.
type Side struct {
	Device fpga.Device
	Tap    Tap
}

// Seen is what was compared.
type Seen struct {
	Cycles    int64 `json:"cycles"`
	Frames    int   `json:"frames"`
	Registers int   `json:"registers"`
}

// Divergence is where two cards first differ.
type Divergence struct {
	Seed   uint64 `json:"seed"`
	Stream string `json:"stream"`
	Step   string `json:"step"`  // after which it shows
	Cycle  int64  `json:"cycle"` // of the device; at the latest
	What   string `json:"what"`  // a register, or a packet
	A      string `json:"a"`
	B      string `json:"b"`
}

func (d *Divergence) String() string {
	return fmt.Sprintf("seed %d (%s), cycle %d, after %s: %s is %s and %s", d.Seed, d.Stream, d.Cycle, d.Step, d.What,
		d.A, d.B)
}

// Compare leads a and b through the stream of a seed. The divergence is nil where there is none; a returned one names the
// cycle exactly. The error is that of a card which can't go on.
func Compare(ctx context.Context, a, b Side, seed uint64) (*Divergence, Seen, error) {
	var stops []int64
	for {
		r := &run{ctx: ctx, a: a, b: b, story: newStory(seed), stops: stops}
		err := r.play()
		var d *Divergence
		if !errors.As(err, &d) {
			return nil, r.seen, err
		}
		if d.Cycle -= r.start; r.slept <= 1 { // every cycle was looked at
			return d, r.seen, nil
		}
		for i := range int64(looksAtOnce) {
			stops = append(stops, d.Cycle-r.slept+(i+1)*r.slept/looksAtOnce)
		}
		slices.Sort(stops)
	}
}

// looksAtOnce is into how many parts the time is cut in which a divergence lies.
const looksAtOnce = 32

// Error makes a divergence end a run.
func (d *Divergence) Error() string { return d.String() }

// run is one way through a story.
type run struct {
	ctx   context.Context
	a, b  Side
	story *story
	stops []int64 // cycles since the start to look at as well
	start int64   // device cycle
	now   int64
	slept int64 // since the last look
	step  string
	seen  Seen

	observed  []olaf.Observation
	packets   []twin.Packet
	unmatched [len(streams)][2][]string // by side
	matched   [len(streams)]int
}

// play carries the story out. The error is a *Divergence, or what a card says that can't go on.
func (r *run) play() error {
	if err := r.level(); err != nil {
		return err
	}
	for i := range r.story.steps {
		s := &r.story.steps[i]
		r.step = s.String()
		if err := r.take(s); err != nil {
			return err
		}
	}
	return r.finish()
}

// finish lets everything leave, and then compares what is left.
func (r *run) finish() error {
	r.step = "the end"
	for range endsWithin {
		rests, err := r.rests()
		if err != nil {
			return err
		}
		if err := r.take(&step{sleep: endStep}); err != nil || rests {
			return errors.Join(err, r.allMatched())
		}
	}
	return r.allMatched()
}

// A stream ends within so many times so many cycles, the last of which bring out what is on the bus.
const (
	endsWithin = 200
	endStep    = 4000
)

// rests says whether both cards have sent everything.
func (r *run) rests() (bool, error) {
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

// level resets both cards and brings them to the same cycle, in which nothing is left of what was before.
func (r *run) level() error {
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
		if err := side.Device.Write32(regmap.CommonCommand, regmap.CommonCommandReset); err != nil { // what was on the bus
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

// take does one step on both cards and compares their answers, and after time passed everything.
func (r *run) take(s *step) error {
	if s.sleep == 0 {
		return r.write(s)
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
		if err := r.look(); err != nil {
			return err
		}
	}
	return nil
}

// write compares what becomes of a write.
func (r *run) write(s *step) error {
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
	return r.differ(nameOf(s.addr), answers[0], answers[1])
}

// differ is a divergence where two answers are not the same.
func (r *run) differ(what, a, b string) error {
	if a == b {
		return nil
	}
	return &Divergence{Seed: r.story.seed, Stream: r.story.kind, Step: r.step, Cycle: r.now, What: what, A: a, B: b}
}

// look compares everything there is to see: frames that left since the last look, counters as of now, all registers.
func (r *run) look() error {
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
		if err := r.differ(nameOf(at), fmt.Sprintf("%#x", values[0]), fmt.Sprintf("%#x", values[1])); err != nil {
			return err
		}
	}
	return nil
}

// compareFrames compares what both cards have sent by now, in order: what a capture learns of delivered frames, and all bytes
// of these and of those that went around the queue. One card may hand a frame out while the other still has it on its bus.
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
			r.unmatched[kind][i] = append(r.unmatched[kind][i], worded(&r.packets[k]))
		}
	}
	for kind := range r.unmatched {
		q := &r.unmatched[kind]
		n := min(len(q[0]), len(q[1]))
		for k := range n {
			if err := r.differ(fmt.Sprintf("%s %d", streams[kind], r.matched[kind]+k), q[0][k], q[1][k]); err != nil {
				return err
			}
		}
		r.matched[kind] += n
		q[0], q[1] = q[0][n:], q[1][n:]
	}
	return nil
}

// allMatched compares what is left of both.
func (r *run) allMatched() error {
	for kind := range r.unmatched {
		q := &r.unmatched[kind]
		if err := r.differ(fmt.Sprintf("%s %d", streams[kind], r.matched[kind]), first(q[0]), first(q[1])); err != nil {
			return err
		}
	}
	r.seen.Frames = r.matched[deliveries] + r.matched[detours]
	return nil
}

func first(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return list[0]
}

// What is compared in order, one by one.
const (
	observations = iota
	deliveries
	detours
)

var streams = [...]string{"observation", "packet", "bypassed packet"}

// worded is a frame with all its bytes, the gradients as their sum.
func worded(p *twin.Packet) string {
	sum := crc32.NewIEEE()
	_ = binary.Write(sum, binary.LittleEndian, p.Lanes) // a hash takes everything
	some := p.Lanes[:min(len(p.Lanes), 4)]
	header := *p
	header.Lanes = nil
	return fmt.Sprintf("%+v with gradients %v… of CRC %#x", header, some, sum.Sum32())
}

func nameOf(addr uint32) string {
	if ref, high, ok := regmap.At(addr); ok && high {
		return ref.Name() + " (high)"
	} else if ok {
		return ref.Name()
	}
	return fmt.Sprintf("%#x", addr)
}

// own are registers that say what a card was built as, and those whose reading moves something.
var own = []string{
	"common.role", "common.capabilities", "common.build_hash", "common.build_time", "queue.built_slots",
	"queue.built_clusters",
	"queue.built_lanes", "generator.built_flows", "generator.built_descriptors", "generator.built_templates",
	"generator.mem_data",
	"generator.mem_burst", "generator.mem_status",
}

// compared are the words of all other registers of what both cards have: not of a parameter server behind the queue, of copies
// for it, or of a program in front of it.
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
