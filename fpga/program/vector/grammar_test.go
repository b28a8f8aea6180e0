package vector

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// recorder is a program that records its calls and has a table to show.
type recorder struct {
	mirror
	cfg      program.Config
	jobs     []program.Job
	packet   program.Packet
	from     program.Port
	at       olaf.Time
	lanes    []uint32
	table    []program.Slot
	refusing bool
}

func (r *recorder) Receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32, out program.Out) program.Class {
	r.packet, r.from, r.at, r.lanes = *p, from, now, lanes
	return r.mirror.Receive(now, from, p, lanes, out)
}

func (r *recorder) Configure(j program.Job) error {
	r.jobs = append(r.jobs, j)
	if r.refusing {
		return program.ErrConfig
	}
	return nil
}
func (r *recorder) Slots() int              { return 10 }
func (r *recorder) Slot(i int) program.Slot { return r.table[i] }

func (r *recorder) describe(a program.Arithmetic) []program.Description {
	return []program.Description{
		{Name: "nobody"},
		{
			Name: "recorder", Arithmetic: a, Classes: 1, Ledger: &olaf.Ledger{Counters: []olaf.Counter{{Name: "answered"}}},
			Actions: map[string]uint8{"shout": 7},
			New: func(cfg program.Config) (program.Program, error) {
				r.cfg = cfg
				return r, nil
			},
		},
	}
}

func (r *recorder) play(a program.Arithmetic, text string) error {
	v, err := ParseVector(strings.NewReader(text))
	if err != nil {
		return err
	}
	s, err := v.Build(r.describe(a))
	if err != nil {
		return err
	}
	return PlayVector(v, s)
}

// TestOptions checks that every option in the program line reaches the program, under each of its names, and that
// values beyond its range are rejected.
func TestOptions(t *testing.T) {
	text := "program recorder profile=p wrap=true parent=1 lanes=3 segments=9 members=3 level=1 fan=5 jobs=7,65535,2\nend\n"
	r := &recorder{}
	if err := r.play(program.Wrapping, text); err != nil {
		t.Fatal(err)
	}
	if want := (program.Config{Slots: 9, LaneMemory: 3, Profile: "p", Wrap: true}); r.cfg != want {
		t.Errorf("built with %+v, want %+v", r.cfg, want)
	}
	members := []program.Member{{Worker: 0, Port: 0}, {Worker: 1, Port: 1}, {Worker: 2, Port: 2}}
	want := []program.Job{
		{ID: 7, Members: members, Fan: 5, Base: 0, Slots: 3, Parent: true, Level: 1},
		{ID: 65535, Members: members, Fan: 5, Base: 3, Slots: 3, Parent: true, Level: 1},
		{ID: 2, Members: members, Fan: 5, Base: 6, Slots: 3, Parent: true, Level: 1},
	}
	if !reflect.DeepEqual(r.jobs, want) {
		t.Errorf("jobs %+v, want %+v", r.jobs, want)
	}
	plain := &recorder{}
	if err := plain.play(program.Wrapping, "program recorder wrap=0\nend\n"); err != nil {
		t.Fatal(err)
	}
	if want := []program.Job{{Members: members[:2]}}; !reflect.DeepEqual(plain.jobs, want) || plain.cfg != (program.Config{}) {
		t.Errorf("without options %+v %+v, want %+v", plain.cfg, plain.jobs, want)
	}
	if err := (&recorder{refusing: true}).play(program.Wrapping, "program recorder\nend\n"); !errors.Is(err, program.ErrConfig) {
		t.Errorf("a refused job: %v", err)
	}
	for name, ends := range map[string][2]int{
		"lanes": {0, 2243}, "slots": {1, 1 << 24}, "segments": {1, 1 << 24}, "aggregators": {1, 1 << 24}, "workers": {1, 1 << 15},
		"members": {1, 1 << 15},
		"level":   {0, 1}, "h": {1, 1 << 20}, "fan": {1, 1 << 20},
	} {
		for value, good := range map[int]bool{ends[0] - 1: false, ends[0]: true, ends[1]: true, ends[1] + 1: false} {
			v, err := ParseVector(strings.NewReader(fmt.Sprintf("program recorder %s=%d\nend\n", name, value)))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := v.Build((&recorder{}).describe(program.Wrapping)); good != (err == nil) || !good &&
				!errors.Is(err, ErrFormat) {
				t.Errorf("%s=%d: %v", name, value, err)
			}
		}
	}
	for _, option := range []string{"wrap=maybe", "parent=2", "jobs=65536", "jobs=a", "jobs=1,", "hue=1", "slots=x"} {
		v := &Vector{Program: "recorder", Options: []Field{{option[:strings.Index(option, "=")],
			option[strings.Index(option, "=")+1:]}}}
		if _, err := v.Build((&recorder{}).describe(program.Wrapping)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", option, err)
		}
	}
	_, err := (&Vector{Program: "x"}).Build((&recorder{}).describe(program.Wrapping))
	if err == nil || !strings.HasSuffix(err.Error(), `unknown program "x"; there are nobody, recorder`) {
		t.Errorf("%v", err)
	}
}

// TestFields checks that every field of a packet is parsed into the right field, in its full width and not beyond.
func TestFields(t *testing.T) {
	for _, c := range []struct {
		field string
		bits  int
		get   func(p *program.Packet) uint64
	}{
		{"job", 16, func(p *program.Packet) uint64 { return uint64(p.Job) }},
		{"worker", 16, func(p *program.Packet) uint64 { return uint64(p.Worker) }},
		{"seg", 64, func(p *program.Packet) uint64 { return p.Seg }}, {"seq", 64, func(p *program.Packet) uint64 { return p.Seg }},
		{"index", 32, func(p *program.Packet) uint64 { return uint64(p.Index) }},
		{"slot", 32, func(p *program.Packet) uint64 { return uint64(p.Index) }},
		{"bitmap", 64, func(p *program.Packet) uint64 { return p.Bitmap }},
		{"count", 16, func(p *program.Packet) uint64 { return uint64(p.Count) }},
		{"fan", 16, func(p *program.Packet) uint64 { return uint64(p.Fan) }},
		{"round", 16, func(p *program.Packet) uint64 { return uint64(p.Round) }},
		{"lanes", 16, func(p *program.Packet) uint64 { return uint64(p.Lanes) }},
		{"value", 64, func(p *program.Packet) uint64 { return p.Value }},
		{"set", 1, func(p *program.Packet) uint64 { return uint64(p.Flags / program.Set1) }},
	} {
		most := ^uint64(0) >> (64 - c.bits)
		for _, value := range []uint64{1, most, most&0x7654321 | 1} {
			r := &recorder{}
			text := fmt.Sprintf("program recorder\nin 3 %s=%#x port=2\nout 3 to=port:2 %s=%d\nend\n", c.field, value, c.field, value)
			if err := r.play(program.Wrapping, text); err != nil || c.get(&r.packet) != value || r.from != 2 ||
				r.at != 3*olaf.Time(olaf.Cycle) {
				t.Errorf("%s=%d: %+v by %d at %d, %v", c.field, value, r.packet, r.from, r.at, err)
			}
			err := r.play(program.Wrapping, fmt.Sprintf("program recorder\nin 3 %s=%d\nout 3 to=port:0 %s=%d\nend\n", c.field, value,
				c.field, value-1))
			if !errors.Is(err, ErrDiffers) || !strings.Contains(err.Error(), "line 3: "+c.field+": ") {
				t.Errorf("%s=%d when %d is expected: %v", c.field, value, value-1, err)
			}
		}
		if c.bits < 64 {
			if _, err := ParseVector(strings.NewReader(fmt.Sprintf("program recorder\nin 3 %s=%d\nend\n", c.field, most+1))); !errors.Is(err,
				ErrFormat) {
				t.Errorf("%s=%d: %v", c.field, most+1, err)
			}
		}
	}
}

// TestFlags checks that flags are combined in any order, with or without set, and that they are printed in one order.
func TestFlags(t *testing.T) {
	r := &recorder{}
	for text, want := range map[string]program.Flags{
		"flags=resend": program.Resend, "flags=collision": program.Collision, "flags=ecn": program.ECN,
		"flags=overflow": program.Overflow, "flags=second": program.Second,
		"flags=set1": program.Set1, "flags=none": 0, "flags=ecn+resend set=1": program.ECN | program.Resend | program.Set1,
		"set=1 flags=second": program.Second | program.Set1, "set=0": 0,
	} {
		if err := r.play(program.Wrapping, "program recorder\nin 0 "+text+"\nend\n"); err != nil || r.packet.Flags != want {
			t.Errorf("%s: %b, want %b (%v)", text, r.packet.Flags, want, err)
		}
	}
	err := r.play(program.Wrapping, "program recorder\nin 0 flags=set1+ecn+resend\nout 0 to=port:0 flags=none\nend\n")
	if err == nil || err.Error() != "line 3: flags: expected none, got resend+ecn+set1" {
		t.Errorf("%v", err)
	}
	for _, out := range []string{"flags=ecn+set1 set=1", "set=1", "flags=ecn+set1"} {
		if err := r.play(program.Wrapping, "program recorder\nin 0 flags=set1+ecn\nout 0 to=port:0 "+out+"\nend\n"); err != nil {
			t.Errorf("%s: %v", out, err)
		}
	}
}

// TestKinds checks that the first word of a line gives the packet's kind, that kind= overrides it, and that only
// gradients have contributors.
func TestKinds(t *testing.T) {
	for text, want := range map[string]program.Kind{
		"in 0": program.Data, "ack 0": program.Ack, "control 0": program.Control, "in 0 kind=other": program.Other,
		"in 0 kind=result":    program.Result,
		"control 0 kind=data": program.Data, "in 0 kind=control": program.Control,
	} {
		r := &recorder{}
		if err := r.play(program.Wrapping, "program recorder\n"+text+" worker=3 seg=4 port=up\nend\n"); err != nil ||
			r.packet.Kind != want || r.from != program.Uplink {
			t.Errorf("%s: %s by %d, want %s (%v)", text, r.packet.Kind, r.from, want, err)
		}
		inside := program.Trace{}
		if want == program.Data {
			inside = program.NewTrace(3, 4, 0)
		}
		if r.packet.Trace != inside || r.packet.Count != 1 {
			t.Errorf("%s: inside %+v, want %+v", text, r.packet.Trace, inside)
		}
	}
	r := &recorder{}
	if err := r.play(program.Wrapping, "program recorder\ncontrol 0 action=8\nout 0 to=others action=sing\nend\n"); !errors.Is(err,
		ErrFormat) || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("an expected action that nobody knows: %v", err)
	}
	for text, want := range map[string]uint8{"action=shout": 7, "action=0x11": 17, "action=255": 255} {
		if err := r.play(program.Wrapping, "program recorder\ncontrol 0 "+text+"\nout 0 to=others "+text+" kind=control\nend\n"); err != nil || r.packet.Action != want {
			t.Errorf("%s: %d, want %d (%v)", text, r.packet.Action, want, err)
		}
	}
	if err := r.play(program.Wrapping, "program recorder\ncontrol 0 action=8\nout 0 to=others action=shout\nend\n"); err == nil ||
		err.Error() != "line 3: action: expected 7, got 8" {
		t.Errorf("%v", err)
	}
}

// TestWords checks that words are parsed in the form in which the arithmetic prints them, up to the limits of their
// range.
func TestWords(t *testing.T) {
	for _, c := range []struct {
		a    program.Arithmetic
		text string
		want uint32
		show string // text in the error if 1 is expected; empty if the lane is rejected
	}{
		{program.Wrapping, "2147483647", 0x7fffffff, "2147483647"}, {program.Wrapping, "-2147483648", 0x80000000, "-2147483648"},
		{program.Sticky, "0xffffffff", 0xffffffff, "-1"},
		{program.Wrapping, "2147483648", 0, ""}, {program.Wrapping, "0x100000000", 0, ""}, {program.Wrapping, "1.5", 0, ""},
		{program.Wrapping, "0x", 0, ""},
		{program.Float32, "1.5", 0x3fc00000, "0x1.8p+00"}, {program.Float32, "0x1p-149", 1, "0x1p-149"},
		{program.Float32, "-inf", 0xff800000, "-Inf"},
		{program.Float32, "0x1.000001p+0", 0x3f800000, ""}, {program.Float32, "a", 0, ""}, {program.Float32, "1e39", 0, ""},
	} {
		r := &recorder{}
		err := r.play(c.a, "program recorder\nin 0 data="+c.text+",1\nout 0 to=port:0 data=1,1\nend\n")
		if c.text == "0x1.000001p+0" { // rounds to 1
			if err != nil {
				t.Errorf("%s: %v", c.text, err)
			}
			continue
		}
		if c.show == "" {
			if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "line 2: lane \""+c.text) {
				t.Errorf("%s: %v", c.text, err)
			}
			continue
		}
		one := map[bool]string{true: "0x1p+00", false: "1"}[c.a == program.Float32]
		if err == nil || err.Error() != fmt.Sprintf("line 3: data: expected %s,%s, got %s,%s", one, one, c.show, one) ||
			r.lanes[0] != c.want || r.packet.Lanes != 2 {
			t.Errorf("%s: %v, lanes %x of %d", c.text, err, r.lanes, r.packet.Lanes)
		}
	}
	r := &recorder{}
	if err := r.play(program.Wrapping, "program recorder\nin 0 lanes=5\nend\n"); err != nil || r.lanes != nil || r.packet.Lanes != 5 {
		t.Errorf("without data: %v of %d, %v", r.lanes, r.packet.Lanes, err)
	}
	if err := r.play(program.Wrapping, "program recorder lanes=2\nin 0 data=1,2,3\nend\n"); !errors.Is(err, ErrFormat) ||
		!strings.Contains(err.Error(), "line 2: 3 words of data where a slot stores 2") {
		t.Errorf("more words than a slot stores: %v", err)
	}
	if err := r.play(program.Wrapping, "program recorder\nin 0 data=1\nout 0 to=port:0 data=x\nend\n"); !errors.Is(err, ErrFormat) ||
		!strings.Contains(err.Error(), "line 3") {
		t.Errorf("an expected word that is none: %v", err)
	}
}

// TestSlotLines checks that a slot line compares each of its fields with the slot that it names.
func TestSlotLines(t *testing.T) {
	r := &recorder{table: make([]program.Slot, 10)}
	r.table[9] = program.Slot{Occupied: true, Job: 2, Seg: 3, Bitmap: 4, Count: 5, Lanes: []uint32{6, 7}}
	if err := r.play(program.Wrapping, "program recorder\nslot 9 held=1 job=2 seg=3 key=3 bitmap=0x4 count=5 data=6,7\nslot 8 held=0 count=0\nend\n"); err != nil {
		t.Error(err)
	}
	for field, want := range map[string]string{
		"held=0": "slot 9 held: expected 0, got 1", "job=1": "slot 9 job: expected 1, got 2", "seg=1": "slot 9 seg: expected 1, got 3",
		"key=1":      "slot 9 key: expected 1, got 3",
		"bitmap=0x1": "slot 9 bitmap: expected 0x1, got 4", "count=1": "slot 9 count: expected 1, got 5",
		"data=6": "data: expected 6, got 6,7",
	} {
		if err := r.play(program.Wrapping, "program recorder\nslot 9 "+field+"\nend\n"); !errors.Is(err, ErrDiffers) ||
			err.Error() != "line 2: "+want {
			t.Errorf("%s: %v, want %s", field, err, want)
		}
	}
	for _, line := range []string{"slot 10 held=0", "slot 9 held=x", "slot", "slot 2147483648", "slot x", "slot 1 held",
		"slot 9 data=x"} {
		if err := r.play(program.Wrapping, "program recorder\n"+line+"\nend\n"); !errors.Is(err, ErrFormat) ||
			!strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s: %v", line, err)
		}
	}
	v, err := ParseVector(strings.NewReader("program recorder\nslot 2147483647\nend\n"))
	if err != nil || v.Steps[0].Slot.Index != 1<<31-1 {
		t.Errorf("the last number of a slot: %+v, %v", v, err)
	}
}

// TestLines checks the parts of a text: comments at the top, times that do not decrease, and classes after an arrow.
func TestLines(t *testing.T) {
	v, err := ParseVector(strings.NewReader("# one\n#two \n\nprogram mirror\n# not about it\nin 1125899906842624 => answered\nend\n# after\n\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"one", "two"}; !reflect.DeepEqual(v.About, want) {
		t.Errorf("about %q", v.About)
	}
	if s := v.Steps[0]; s.Line != 6 || s.Cycle != maxCycle || s.In.Expect != "answered" || v.Outs {
		t.Errorf("%+v", s)
	}
	for text, want := range map[string]string{
		"in":                        "a cycle must come first",
		"out":                       "a cycle must come first",
		"in -1":                     `cycle "-1" is not a number`,
		"in 1125899906842625":       "is not a number from 0 to 1125899906842624",
		"in 0 =>":                   "one class must follow",
		"in 0 => a b":               "one class must follow",
		"program again":             "there is one program line",
		"stat":                      "a stat line is a name and a number",
		"stat a 1 2":                "a stat line is a name and a number",
		"stat a -1":                 `"-1" is not a count`,
		"in 0 port=32768":           `neither "up" nor a number below 32768`,
		"in 0 port=-1":              "neither",
		"in 0 kind=odd":             `unknown kind "odd"`,
		"in 0 hue=1":                `unknown field "hue"`,
		"in 0 =1":                   "is not name=value",
		"in 0 seg=":                 "is not name=value",
		"in 0 data=1,2,3 lanes=2":   "3 words of data for 2 lanes",
		"in 0\nout 0 to=up to=down": "to stands twice",
		"in 0\nout 0 to":            "is not name=value",
		"in 0\nout 0 seg=1":         "says where to: up, down, others or port:N",
		"in 0\nout 0 to=group":      "to=group: an out line says where to: up, down, others or port:N",
		"in 0\nout 0 to=port:":      "to=port:: an out line says where to",
		"in 0\nout 0 to=port:01":    "to=port:01: an out line says where to",
		"in 0\nout 0 to=port:32768": "to=port:32768: an out line says where to",
	} {
		last := 2 + strings.Count(text, "\n")
		if _, err := ParseVector(strings.NewReader("program mirror\n" + text + "\nend\n")); !errors.Is(err, ErrFormat) ||
			!strings.Contains(err.Error(), fmt.Sprintf("line %d: ", last)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{"program\nend\n", "program mirror x\nend\n"} {
		if _, err := ParseVector(strings.NewReader(text)); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "line 1: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if v, err := ParseVector(strings.NewReader("program mirror\nin 0 => a port=1\nend\n")); err == nil {
		t.Errorf("fields behind the class: %+v", v)
	}
	for word, want := range map[string]string{"=> a": "a", "port=1 => a": "a"} {
		if v, err := ParseVector(strings.NewReader("program mirror\nin 0 " + word + "\nend\n")); err != nil || v.Steps[0].In.Expect != want {
			t.Errorf("%q: %v", word, err)
		}
	}
	long := "program mirror\n# " + strings.Repeat("x", 1<<18-3) // enough for the lanes of the largest frame
	if _, err := ParseVector(strings.NewReader(long + "\nend\n")); err != nil {
		t.Errorf("the longest line: %v", err)
	}
	if _, err := ParseVector(strings.NewReader(long + "xx\nend\n")); !errors.Is(err, ErrFormat) ||
		!strings.Contains(err.Error(), "line 2: ") {
		t.Errorf("a longer line: %v", err)
	}
}

// wide answers with multicast packets of every kind.
type wide struct{ mirror }

func (w *wide) Receive(_ olaf.Time, _ program.Port, p *program.Packet, _ []uint32, out program.Out) program.Class {
	for _, to := range []program.Dest{program.Down, program.Others, program.Up, 1} {
		out.Emit(to, p, nil)
	}
	return 0
}

// TestMulticasts checks that a multicast packet may be written as one line, or as one line per receiver in the order of
// ports, and that each copy is compared.
func TestMulticasts(t *testing.T) {
	described := []program.Description{{
		Name: "wide", Ledger: &olaf.Ledger{Counters: []olaf.Counter{{Name: "answered"}}}, Classes: 1,
		New: func(program.Config) (program.Program, error) { return &wide{}, nil },
	}}
	for text, want := range map[string]string{
		"out 0 to=down\nout 0 to=others\nout 0 to=up\nout 0 to=port:1":                                                                     "",
		"out 0 to=port:0\nout 0 to=port:1\nout 0 to=port:2 seg=4\nout 0 to=others\nout 0 to=up\nout 0 to=port:1":                           "",
		"out 0 to=down\nout 0 to=port:0\nout 0 to=port:2\nout 0 to=up\nout 0 to=port:1":                                                    "",
		"out 0 to=port:0\nout 0 to=down\nout 0 to=port:0\nout 0 to=port:2\nout 0 to=up\nout 0 to=port:1":                                   "line 4: to: expected down, got port:1",
		"out 0 to=down\nout 0 to=others\nout 0 to=down":                                                                                    "line 5: to: expected down, got up",
		"out 0 to=down\nout 0 to=others\nout 0 to=up":                                                                                      "line 2: what leaves: expected nothing more, got to=port:1",
		"out 0 to=down\nout 0 to=others\nout 0 to=up\nout 0 to=port:1\nout 0 to=port:1":                                                    "line 7: what leaves: expected to=port:1, got nothing more",
		"out 0 to=port:0\nout 0 to=port:1\nout 0 to=port:2 seg=5":                                                                          "line 5: seg: expected 5, got 4",
		"out 0 to=port:0\nout 0 to=port:1\nout 0 to=port:2\nout 0 to=port:0\nout 0 to=port:1":                                              "line 7: to: expected port:1, got port:2",
		"out 0 to=down\nout 0 to=others\nout 0 to=up\nout 0 to=port:1\nin 0\nout 0 to=down\nout 0 to=others\nout 0 to=up\nout 0 to=port:1": "",
	} {
		v, err := ParseVector(strings.NewReader("program wide workers=3\nin 0 port=1 seg=4\n" + text + "\nend\n"))
		if err != nil {
			t.Fatal(err)
		}
		s, err := v.Build(described)
		if err != nil {
			t.Fatal(err)
		}
		if err := PlayVector(v, s); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
