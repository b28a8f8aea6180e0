package vector

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// ParseVector reads one vector. Fields may be in any order and may be omitted. The error matches ErrFormat and includes
// the line number.
func ParseVector(r io.Reader) (*Vector, error) {
	p := &parser{v: &Vector{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		p.number++
		if err := p.parseLine(lines.Text()); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrFormat, p.number, err)
		}
	}
	switch err := lines.Err(); {
	case err != nil:
		return nil, fmt.Errorf("%w: line %d: %w", ErrFormat, p.number+1, err)
	case p.v.Program == "":
		return nil, fmt.Errorf("%w: no line names the program", ErrFormat)
	case !p.ended:
		return nil, fmt.Errorf("%w: line %d: the text stops before \"end\"", ErrFormat, p.number)
	}
	return p.v, nil
}

type parser struct {
	v      *Vector
	number int
	last   *Input // packet to which the next out lines belong
	cycle  int64
	ended  bool
}

func (p *parser) parseLine(text string) error {
	if about, ok := strings.CutPrefix(text, "#"); ok {
		if p.v.Program == "" {
			p.v.About = append(p.v.About, strings.TrimSpace(about))
		}
		return nil
	}
	words := strings.Fields(text)
	switch {
	case len(words) == 0:
		return nil
	case p.ended:
		return fmt.Errorf("%q after \"end\"", words[0])
	case p.v.Program == "" && words[0] != "program":
		return fmt.Errorf("%q before the program line", words[0])
	}
	rest := words[1:]
	switch words[0] {
	case "program":
		return p.programLine(rest)
	case "in":
		return p.packetLine(rest, program.Data)
	case "ack":
		return p.packetLine(rest, program.Ack)
	case "control":
		return p.packetLine(rest, program.Control)
	case "out":
		return p.outLine(rest)
	case "slot":
		return p.slotLine(rest)
	case "stat":
		return p.statLine(rest)
	case "end":
		p.ended = true
		return nil
	}
	return fmt.Errorf("unknown word %q; there are program, in, ack, control, out, slot, stat, end", words[0])
}

func (p *parser) programLine(words []string) error {
	if p.v.Program != "" || len(words) == 0 {
		return fmt.Errorf("there is one program line, and it names the program")
	}
	fields, err := splitFields(words[1:])
	if err != nil {
		return err
	}
	p.v.Program, p.v.Options = words[0], fields
	return nil
}

// parseCycle parses the cycle at the start of a line and returns the remaining words.
func (p *parser) parseCycle(words []string) ([]string, error) {
	if len(words) == 0 {
		return nil, fmt.Errorf("a cycle must come first")
	}
	at, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil || at < 0 || at > maxCycle {
		return nil, fmt.Errorf("cycle %q is not a number from 0 to %d", words[0], int64(maxCycle))
	}
	if at < p.cycle {
		return nil, fmt.Errorf("cycle %d comes after cycle %d", at, p.cycle)
	}
	p.cycle = at
	return words[1:], nil
}

func (p *parser) packetLine(words []string, kind program.Kind) error {
	words, err := p.parseCycle(words)
	if err != nil {
		return err
	}
	in := &Input{Packet: program.Packet{Kind: kind, Count: 1}}
	if at := slices.Index(words, "=>"); at >= 0 {
		if len(words) != at+2 {
			return fmt.Errorf("one class must follow \"=>\"")
		}
		words, in.Expect = words[:at], words[at+1]
	}
	fields, err := splitFields(words)
	if err != nil {
		return err
	}
	for _, f := range fields {
		if err := in.setField(f.Name, f.Value); err != nil {
			return err
		}
	}
	in.Packet.Lanes = cmp.Or(in.Packet.Lanes, uint16(len(in.Data)))
	if len(in.Data) > 0 && len(in.Data) != int(in.Packet.Lanes) {
		return fmt.Errorf("%d words of data for %d lanes", len(in.Data), in.Packet.Lanes)
	}
	p.last = in
	p.v.Steps = append(p.v.Steps, Step{Line: p.number, Cycle: p.cycle, In: in})
	return nil
}

// numeric lists the numeric fields of an incoming packet, with their widths in bits.
var numeric = map[string]struct {
	bits int
	put  func(*Input, uint64)
}{
	"job":    {16, func(in *Input, v uint64) { in.Packet.Job = olaf.ClusterID(v) }},
	"worker": {16, func(in *Input, v uint64) { in.Packet.Worker = olaf.WorkerID(v) }},
	"seg":    {64, func(in *Input, v uint64) { in.Packet.Seg = v }},
	"seq":    {64, func(in *Input, v uint64) { in.Packet.Seg = v }},
	"index":  {32, func(in *Input, v uint64) { in.Packet.Index = uint32(v) }},
	"slot":   {32, func(in *Input, v uint64) { in.Packet.Index = uint32(v) }},
	"bitmap": {64, func(in *Input, v uint64) { in.Packet.Bitmap = v }},
	"count":  {16, func(in *Input, v uint64) { in.Packet.Count = uint16(v) }},
	"fan":    {16, func(in *Input, v uint64) { in.Packet.Fan = uint16(v) }},
	"round":  {16, func(in *Input, v uint64) { in.Packet.Round = uint16(v) }},
	"lanes":  {16, func(in *Input, v uint64) { in.Packet.Lanes = uint16(v) }},
	"value":  {64, func(in *Input, v uint64) { in.Packet.Value = v }},
	"set":    {1, func(in *Input, v uint64) { in.Packet.Flags |= program.Set1 * program.Flags(v) }},
}

// setField sets a field of an incoming packet from its text.
func (in *Input) setField(name, value string) error {
	if n, ok := numeric[name]; ok {
		v, err := olaf.ParseWord(value, n.bits)
		if err != nil {
			return fmt.Errorf("%s=%s is not a number of %d bits", name, value, n.bits)
		}
		n.put(in, v)
		return nil
	}
	switch name {
	case "port":
		return in.setPort(value)
	case "switch":
		in.Switch = value
	case "data":
		in.Data = strings.Split(value, ",")
	case "action":
		in.Action = value
	case "flags":
		return in.setFlags(value)
	case "kind":
		return in.setKind(value)
	default:
		return fmt.Errorf("unknown field %q", name)
	}
	return nil
}

func (in *Input) setPort(value string) error {
	if value == "up" {
		in.From = program.Uplink
		return nil
	}
	v, err := strconv.ParseUint(value, 10, 15)
	if err != nil {
		return fmt.Errorf("port=%s is neither \"up\" nor a number below %d", value, maxPort)
	}
	in.From = program.Port(v)
	return nil
}

func (in *Input) setKind(value string) error {
	for k := program.Other; k <= program.Control; k++ {
		if k.String() == value {
			in.Packet.Kind = k
			return nil
		}
	}
	return fmt.Errorf("unknown kind %q", value)
}

// flagNames lists the names that may appear in flags=…, joined by plus signs, with their values.
var flagNames = []struct {
	name string
	flag program.Flags
}{
	{"resend", program.Resend}, {"collision", program.Collision}, {"ecn", program.ECN},
	{"overflow", program.Overflow}, {"second", program.Second}, {"set1", program.Set1},
}

func (in *Input) setFlags(value string) error {
	for word := range strings.SplitSeq(value, "+") {
		known := false
		for _, f := range flagNames {
			if f.name == word {
				in.Packet.Flags |= f.flag
				known = true
			}
		}
		if !known && word != "none" {
			return fmt.Errorf("unknown flag %q", word)
		}
	}
	return nil
}

func (p *parser) outLine(words []string) error {
	words, err := p.parseCycle(words)
	if err != nil {
		return err
	}
	if p.last == nil {
		return fmt.Errorf("nothing came in that could leave")
	}
	fields, err := splitFields(words)
	if err != nil {
		return err
	}
	o := Output{Line: p.number}
	o.To, fields = takeField(fields, "to")
	o.Switch, o.Fields = takeField(fields, "switch")
	if !isDest(o.To) {
		return fmt.Errorf("to=%s: an out line says where to: up, down, others or port:N", o.To)
	}
	p.last.Outs = append(p.last.Outs, o)
	p.v.Outs = true
	return nil
}

// isDest reports whether a word is a packet destination, as printed by program.Dest.
func isDest(word string) bool {
	if number, numbered := strings.CutPrefix(word, "port:"); numbered {
		v, err := strconv.ParseUint(number, 10, 15)
		return err == nil && program.Dest(v).String() == word
	}
	return slices.ContainsFunc([]program.Dest{program.Up, program.Down, program.Others},
		func(d program.Dest) bool { return d.String() == word })
}

func (p *parser) slotLine(words []string) error {
	if len(words) == 0 {
		return fmt.Errorf("a slot line starts with the slot's number")
	}
	index, err := strconv.ParseUint(words[0], 10, 31)
	if err != nil {
		return fmt.Errorf("slot %q is not a number", words[0])
	}
	fields, err := splitFields(words[1:])
	if err != nil {
		return err
	}
	at, fields := takeField(fields, "switch")
	p.v.Steps = append(p.v.Steps, Step{Line: p.number, Cycle: p.cycle,
		Slot: &SlotLine{Index: int(index), Switch: at, Fields: fields}})
	return nil
}

func (p *parser) statLine(words []string) error {
	if len(words) != 2 {
		return fmt.Errorf("a stat line is a name and a number")
	}
	n, err := strconv.ParseUint(words[1], 10, 64)
	if err != nil {
		return fmt.Errorf("%q is not a count", words[1])
	}
	p.v.Steps = append(p.v.Steps, Step{Line: p.number, Cycle: p.cycle, Stat: words[0], Count: n})
	return nil
}

// takeField removes the named field from a list. It returns the field's value, or "" if there is no such field, and the
// other fields.
func takeField(fields []Field, name string) (value string, others []Field) {
	for _, f := range fields {
		if f.Name == name {
			value = f.Value
		} else {
			others = append(others, f)
		}
	}
	return value, others
}

// splitFields parses words of the form name=value. Each name may appear only once.
func splitFields(words []string) ([]Field, error) {
	fields := make([]Field, 0, len(words))
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		if !ok || name == "" || value == "" {
			return nil, fmt.Errorf("%q is not name=value", w)
		}
		if slices.ContainsFunc(fields, func(f Field) bool { return f.Name == name }) {
			return nil, fmt.Errorf("%s stands twice", name)
		}
		fields = append(fields, Field{name, value})
	}
	return fields, nil
}
