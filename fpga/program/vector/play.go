package vector

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Subject is the system that a vector tests. It is one switch, or a tree of switches with two levels.
type Subject struct {
	Description *program.Description
	// Switches lists the top switches, then the racks, which are children of the first.
	Switches []Switch
	Racks    int
}

// Switch is one switch in a Subject.
type Switch struct {
	Name    string // name in the lines of a vector; the first switch needs none
	Program program.Program
	Members []program.Port // receivers of a packet to "down", in the order of their ports
}

// findSwitch returns the index of the switch with the given name, or -1 if there is none.
func (s *Subject) findSwitch(name string) int {
	if name == "" {
		return 0
	}
	return slices.IndexFunc(s.Switches, func(w Switch) bool { return w.Name == name })
}

// PlayVector applies every step of v to s and compares the results. At the first deviation it returns a *Difference.
// The error matches ErrFormat if v uses a word that s does not know.
func PlayVector(v *Vector, s Subject) error {
	p := player{v: v, s: s}
	for i := range v.Steps {
		if err := p.playStep(&v.Steps[i]); err != nil {
			return err
		}
	}
	return nil
}

type player struct {
	v       *Vector
	s       Subject
	at      int          // switch that processes the current packet
	from    program.Port // port at which that packet arrived
	left    []emitted
	between []hop
}

// hop is a packet that is being sent from one switch to another.
type hop struct {
	at     int
	from   program.Port
	packet program.Packet
	lanes  []uint32
}

// emitted is a packet that was sent by a switch. A multicast packet is recorded once for each receiver.
type emitted struct {
	at     int
	to     program.Dest
	member bool // one copy of a multicast packet
	first  bool // first copy of its multicast packet
	copies int
	packet program.Packet
	lanes  []uint32
}

// Emit implements program.Out. It records the packet for each receiver.
func (p *player) Emit(to program.Dest, packet *program.Packet, lanes []uint32) {
	ports := []program.Port{}
	for _, m := range p.s.Switches[p.at].Members {
		if to == program.Down || to == program.Others && m != p.from {
			ports = append(ports, m)
		}
	}
	e := emitted{at: p.at, to: to, packet: *packet, lanes: slices.Clone(lanes), first: true}
	if len(ports) == 0 {
		p.recordLeft(e)
		return
	}
	for i, port := range ports {
		e.to, e.member, e.first, e.copies = program.Dest(port), true, i == 0, len(ports)
		p.recordLeft(e)
	}
}

// recordLeft records a packet that was sent to one receiver, and queues it if this receiver is another switch.
func (p *player) recordLeft(e emitted) {
	p.left = append(p.left, e)
	racks := len(p.s.Switches) - p.s.Racks
	switch {
	case p.s.Racks == 0:
	case e.at == 0 && e.to >= 0 && int(e.to) < p.s.Racks:
		p.between = append(p.between, hop{racks + int(e.to), program.Uplink, e.packet, e.lanes})
	case e.at >= racks && e.to == program.Up:
		p.between = append(p.between, hop{0, program.Port(e.at - racks), e.packet, e.lanes})
	}
}

// presentPacket passes a packet to a switch and then the resulting packets to other switches. It returns the class of
// the first packet.
func (p *player) presentPacket(now olaf.Time, first hop) program.Class {
	p.left, p.between = p.left[:0], append(p.between[:0], first)
	var class program.Class
	for i := 0; i < len(p.between); i++ {
		h := p.between[i]
		p.at, p.from = h.at, h.from
		became := p.s.Switches[h.at].Program.Receive(now, h.from, &h.packet, h.lanes, p)
		if i == 0 {
			class = became
		}
	}
	return class
}

// switchAt returns the index of the switch that a line refers to by name.
func (p *player) switchAt(line int, name string) (int, error) {
	at := p.s.findSwitch(name)
	if at < 0 {
		return 0, fmt.Errorf("%w: line %d: there is no switch %q", ErrFormat, line, name)
	}
	return at, nil
}

func (p *player) playStep(s *Step) error {
	switch {
	case s.In != nil:
		return p.playPacket(s)
	case s.Slot != nil:
		return p.compareSlot(s)
	default:
		return p.compareStat(s)
	}
}

func (p *player) playPacket(s *Step) error {
	in := s.In
	packet := in.Packet
	packet.Trace = program.NewTrace(packet.Worker, uint32(packet.Seg), 0)
	if packet.Kind != program.Data {
		packet.Trace = program.Trace{}
	}
	if in.Action != "" {
		action, err := p.actionCode(s.Line, in.Action)
		if err != nil {
			return err
		}
		packet.Action = action
	}
	lanes, err := parseLanes(p.s.Description.Arithmetic, in.Data)
	if err != nil {
		return fmt.Errorf("%w: line %d: %w", ErrFormat, s.Line, err)
	}
	at, err := p.switchAt(s.Line, in.Switch)
	if err != nil {
		return err
	}
	class := p.presentPacket(olaf.Time(s.Cycle)*olaf.Time(olaf.Cycle), hop{at, in.From, packet, lanes})
	if in.Expect != "" {
		have := p.s.Description.ClassName(class)
		switch classes := p.s.Description.ClassNames(); {
		case !slices.Contains(classes, in.Expect):
			return fmt.Errorf("%w: line %d: of %s no packet becomes %q, but %s", ErrFormat, s.Line, p.v.Program,
				in.Expect, strings.Join(classes, ", "))
		case have != in.Expect:
			return &difference{s.Line, "class", in.Expect, have}
		}
	}
	return p.compareOuts(s)
}

func (p *player) actionCode(line int, name string) (uint8, error) {
	if a, ok := p.s.Description.Actions[name]; ok {
		return a, nil
	}
	a, err := olaf.ParseWord(name, 8)
	if err != nil {
		return 0, fmt.Errorf("%w: line %d: %s has no action %q", ErrFormat, line, p.v.Program, name)
	}
	return uint8(a), nil
}

// compareOuts compares the packets that were sent with the out lines of the step.
func (p *player) compareOuts(s *Step) error {
	if !p.v.Outs {
		return nil
	}
	left := p.left
	for i := range s.In.Outs {
		o := &s.In.Outs[i]
		at, err := p.switchAt(o.Line, o.Switch)
		if err != nil {
			return err
		}
		if len(left) == 0 {
			return &difference{o.Line, "what leaves", "to=" + o.To, "nothing more"}
		}
		e := &left[0]
		taken := 1
		if e.at != at {
			return &difference{o.Line, "switch", p.s.Switches[at].Name, p.s.Switches[e.at].Name}
		}
		if whole := e.member && e.first && (o.To == program.Down.String() || o.To == program.Others.String()); whole {
			taken = e.copies
		} else if o.To != e.to.String() {
			return &difference{o.Line, "to", o.To, e.to.String()}
		}
		if err := p.compareFields(o.Line, o.Fields, e); err != nil {
			return err
		}
		left = left[taken:]
	}
	if len(left) > 0 {
		return &difference{s.Line, "what leaves", "nothing more", "to=" + left[0].to.String()}
	}
	return nil
}

// compareFields compares a packet that was sent with the fields in the vector's line.
func (p *player) compareFields(line int, fields []Field, e *emitted) error {
	want := Input{Packet: program.Packet{Kind: e.packet.Kind}}
	for _, f := range fields {
		if f.Name == "data" {
			if err := p.compareData(line, f.Value, e.lanes); err != nil {
				return err
			}
			continue
		}
		if err := want.setField(f.Name, f.Value); err != nil {
			return fmt.Errorf("%w: line %d: %w", ErrFormat, line, err)
		}
		if want.Action != "" {
			action, err := p.actionCode(line, want.Action)
			if err != nil {
				return err
			}
			want.Packet.Action, want.Action = action, ""
		}
		expected, have := formatField(f.Name, &want.Packet), formatField(f.Name, &e.packet)
		if expected != have {
			return &difference{line, f.Name, expected, have}
		}
	}
	return nil
}

// formatField returns the value of a packet's field as it is written in a vector.
func formatField(name string, p *program.Packet) string {
	switch name {
	case "job":
		return fmt.Sprint(p.Job)
	case "worker":
		return fmt.Sprint(p.Worker)
	case "seg", "seq":
		return fmt.Sprint(p.Seg)
	case "index", "slot":
		return fmt.Sprint(p.Index)
	case "bitmap":
		return fmt.Sprintf("%#x", p.Bitmap)
	case "count":
		return fmt.Sprint(p.Count)
	case "fan":
		return fmt.Sprint(p.Fan)
	case "round":
		return fmt.Sprint(p.Round)
	case "lanes":
		return fmt.Sprint(p.Lanes)
	case "value":
		return fmt.Sprint(p.Value)
	case "action":
		return fmt.Sprint(p.Action)
	case "kind":
		return p.Kind.String()
	case "set":
		return fmt.Sprint(p.Flags & program.Set1 / program.Set1)
	}
	return formatFlags(p.Flags)
}

func formatFlags(f program.Flags) string {
	var names []string
	for _, n := range flagNames {
		if f&n.flag != 0 {
			names = append(names, n.name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, "+")
}

func (p *player) compareData(line int, text string, have []uint32) error {
	want, err := parseLanes(p.s.Description.Arithmetic, strings.Split(text, ","))
	if err != nil {
		return fmt.Errorf("%w: line %d: %w", ErrFormat, line, err)
	}
	if !slices.EqualFunc(want, have, laneEqual(p.s.Description.Arithmetic)) {
		return &difference{line, "data", formatLanes(p.s.Description.Arithmetic, want), formatLanes(p.s.Description.Arithmetic, have)}
	}
	return nil
}

func (p *player) compareSlot(s *Step) error {
	at, err := p.switchAt(s.Line, s.Slot.Switch)
	if err != nil {
		return err
	}
	of := p.s.Switches[at].Program
	if s.Slot.Index >= of.Slots() {
		return fmt.Errorf("%w: line %d: slot %d of %d", ErrFormat, s.Line, s.Slot.Index, of.Slots())
	}
	v := of.Slot(s.Slot.Index)
	for _, f := range s.Slot.Fields {
		if f.Name == "data" {
			if err := p.compareData(s.Line, f.Value, v.Lanes); err != nil {
				return err
			}
			continue
		}
		have, known := map[string]uint64{
			"count": uint64(v.Count), "bitmap": v.Bitmap, "seg": v.Seg, "key": v.Seg, "job": uint64(v.Job),
			"held": uint64(map[bool]int{true: 1}[v.Occupied]),
		}[f.Name]
		want, err := olaf.ParseWord(f.Value, 64)
		if err != nil || !known {
			return fmt.Errorf("%w: line %d: %s=%s says nothing of a slot", ErrFormat, s.Line, f.Name, f.Value)
		}
		if want != have {
			return &difference{s.Line, fmt.Sprintf("slot %d %s", s.Slot.Index, f.Name), f.Value, fmt.Sprint(have)}
		}
	}
	return nil
}

func (p *player) compareStat(s *Step) error {
	i := p.s.Description.Ledger.Index(s.Stat)
	if i < 0 {
		return fmt.Errorf("%w: line %d: %s counts no %q", ErrFormat, s.Line, p.v.Program, s.Stat)
	}
	have := uint64(0)
	for k := range p.s.Switches {
		have += p.s.Switches[k].Program.Counts()[i]
	}
	if have != s.Count {
		return &difference{s.Line, s.Stat, fmt.Sprint(s.Count), fmt.Sprint(have)}
	}
	return nil
}

// parseLanes parses lanes for the program's arithmetic. Floats may have any form that strconv accepts, and hexadecimal
// floats are exact. Integers are signed decimal numbers or 0x words.
func parseLanes(a program.Arithmetic, data []string) ([]uint32, error) {
	if len(data) == 0 {
		return nil, nil
	}
	out := make([]uint32, len(data))
	for i, text := range data {
		switch {
		case a == program.Float32:
			f, err := strconv.ParseFloat(text, 32)
			if err != nil {
				return nil, fmt.Errorf("lane %q is not a float32", text)
			}
			out[i] = math.Float32bits(float32(f))
		case strings.HasPrefix(text, "0x"):
			v, err := olaf.ParseWord(text, 32)
			if err != nil {
				return nil, fmt.Errorf("lane %q is not 32 bits", text)
			}
			out[i] = uint32(v)
		default:
			v, err := strconv.ParseInt(text, 10, 32)
			if err != nil {
				return nil, fmt.Errorf("lane %q is not an int32", text)
			}
			out[i] = uint32(int32(v))
		}
	}
	return out, nil
}

// laneEqual returns a function that compares lanes bit by bit, except that all NaNs are equal, because IEEE 754 does
// not specify their bits.
func laneEqual(a program.Arithmetic) func(want, have uint32) bool {
	number := func(w uint32) bool { f := math.Float32frombits(w); return f == f }
	return func(want, have uint32) bool {
		return want == have || a == program.Float32 && !number(want) && !number(have)
	}
}

func formatLanes(a program.Arithmetic, lanes []uint32) string {
	text := make([]string, len(lanes))
	for i, w := range lanes {
		if a == program.Float32 {
			text[i] = strconv.FormatFloat(float64(math.Float32frombits(w)), 'x', -1, 32)
		} else {
			text[i] = strconv.Itoa(int(int32(w)))
		}
	}
	return strings.Join(text, ",")
}
