package programtest

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/internal/test/golden"
)

// Story is a sequence of packets for one program, generated from a seed. Its golden file contains all outputs of the
// program: classes, sent packets with all fields, the table and the counts.
type Story struct {
	Name    string
	Config  program.Config
	Jobs    []program.Job
	Packets int
	// Draw returns the next packet and its port; the story adds lanes and trace.
	Draw func(r *rand.Rand) (program.Port, program.Packet)
}

// RunStories plays each story and compares the program's outputs with the golden files in testdata/stories. After the
// story's packets, it removes the first job, adds it again, and resets the program, with some more packets after each
// action.
func RunStories(t *testing.T, d program.Description, stories ...Story) {
	t.Helper()
	for i, s := range stories {
		t.Run(s.Name, func(t *testing.T) {
			teller := teller{story: s, d: &d, r: rand.New(rand.NewPCG(uint64(i), 1))}
			if err := teller.run(); err != nil {
				t.Fatal(err)
			}
			golden.Equal(t, "stories/"+s.Name+".txt", teller.text.Bytes())
		})
	}
}

type teller struct {
	story Story
	d     *program.Description
	p     program.Program
	r     *rand.Rand
	text  bytes.Buffer
	at    olaf.Time
	sent  uint32
}

func (s *teller) run() (err error) {
	if s.p, err = s.d.New(s.story.Config); err != nil {
		return err
	}
	fmt.Fprintf(&s.text, "%+v, %d bytes\n", s.story.Config, s.p.Memory())
	for _, j := range s.story.Jobs {
		if err := s.p.Configure(j); err != nil {
			return err
		}
	}
	s.sendPackets(s.story.Packets)
	s.p.Remove(s.story.Jobs[0].ID)
	s.writeState("removed")
	s.sendPackets(10)
	if err := s.p.Configure(s.story.Jobs[0]); err != nil {
		return err
	}
	s.sendPackets(20)
	s.p.Reset()
	s.writeState("reset")
	s.sendPackets(10)
	return nil
}

func (s *teller) sendPackets(packets int) {
	for i := range packets {
		s.sendPacket()
		if i%10 == 9 {
			s.writeState("state")
		}
	}
}

func (s *teller) sendPacket() {
	from, p := s.story.Draw(s.r)
	s.at += olaf.Time(s.r.IntN(1000))
	s.sent++
	lanes := s.drawLanes(int(p.Lanes))
	if p.Kind == program.Data || p.Kind == program.Result {
		p.Trace = program.NewTrace(p.Worker, s.sent, uint64(s.r.IntN(100)))
		p.ReadSum = uint64(s.r.IntN(10))
	}
	came := FormatPacket(s.d.Arithmetic, &p, lanes)
	var left sink
	class := s.p.Receive(s.at, from, &p, lanes, &left)
	fmt.Fprintf(&s.text, "%d %s %s => %s\n", s.at, program.Dest(from), came, s.d.ClassName(class))
	for _, e := range left {
		fmt.Fprintf(&s.text, "  %s %s\n", e.to, FormatPacket(s.d.Arithmetic, &e.packet, e.lanes))
	}
}

// drawLanes returns random values that are exact in every arithmetic, and sometimes values at the integer limits.
func (s *teller) drawLanes(n int) []uint32 {
	if s.r.IntN(8) == 0 {
		return nil
	}
	lanes := make([]uint32, n)
	for i := range lanes {
		v := s.r.IntN(2001) - 1000
		switch {
		case s.d.Arithmetic == program.Float32:
			lanes[i] = math.Float32bits(float32(v) / 8)
		case s.r.IntN(10) == 0:
			lanes[i] = []uint32{math.MaxInt32, math.MaxInt32 - 1, 1 << 31, 1<<31 + 1}[s.r.IntN(4)]
		default:
			lanes[i] = uint32(int32(v))
		}
	}
	return lanes
}

// FormatPacket returns a packet as text, with its non-zero fields, its lanes and its trace. The trace is printed as
// contributions, mark, oldest and newest generation time, their sum, and the updates read.
func FormatPacket(a program.Arithmetic, p *program.Packet, lanes []uint32) string {
	words := []string{p.Kind.String()}
	for _, f := range []struct {
		name  string
		value uint64
	}{
		{"action", uint64(p.Action)}, {"job", uint64(p.Job)}, {"worker", uint64(p.Worker)}, {"seg", p.Seg},
		{"index", uint64(p.Index)},
		{"round", uint64(p.Round)}, {"bitmap", p.Bitmap}, {"value", p.Value}, {"count", uint64(p.Count)},
		{"fan", uint64(p.Fan)},
		{"flags", uint64(p.Flags)}, {"lanes", uint64(p.Lanes)},
	} {
		if f.value != 0 {
			words = append(words, fmt.Sprintf("%s=%d", f.name, f.value))
		}
	}
	return strings.Join(append(words, formatLanes(a, lanes), formatTrace(p.Trace)), " ")
}

func formatLanes(a program.Arithmetic, lanes []uint32) string {
	text := make([]string, len(lanes))
	for i, w := range lanes {
		if text[i] = fmt.Sprint(int32(w)); a == program.Float32 {
			text[i] = fmt.Sprint(math.Float32frombits(w))
		}
	}
	return "[" + strings.Join(text, " ") + "]"
}

func formatTrace(t program.Trace) string {
	if t == (program.Trace{}) {
		return "-"
	}
	return fmt.Sprintf("%d:%04x:%d-%d/%d:%d", t.Vectors, t.Inside>>48, t.OldestNS, t.NewestNS, t.SumNS, t.ReadSum)
}

// writeState writes the occupied slots and the counts that are not 0.
func (s *teller) writeState(what string) {
	fmt.Fprintf(&s.text, "%s: %d of %d in use", what, s.p.CountOccupied(), s.p.Slots())
	account := s.d.CountsOf(s.p)
	for _, c := range s.d.Ledger.Counters {
		if n := account.Of(c.Name); n != 0 {
			fmt.Fprintf(&s.text, " %s=%d", c.Name, n)
		}
	}
	s.text.WriteByte('\n')
	for i := range s.p.Slots() {
		v := s.p.Slot(i)
		fmt.Fprintf(&s.text, "  %d held=%t job=%d seg=%d bitmap=%b count=%d since=%d %s %s\n", i, v.Occupied, v.Job, v.Seg,
			v.Bitmap, v.Count, v.Since,
			formatLanes(s.d.Arithmetic, v.Lanes), formatTrace(v.Trace))
	}
}

type emission struct {
	to     program.Dest
	packet program.Packet
	lanes  []uint32
}

type sink []emission

func (s *sink) Emit(to program.Dest, p *program.Packet, lanes []uint32) {
	*s = append(*s, emission{to, *p, slices.Clone(lanes)})
}

// TestBounds writes a program's description and tables, the result of each configuration, and the result of adding each
// job in turn to a program with the first configuration. Jobs that were added remain. It compares this text with
// testdata/bounds.txt.
func TestBounds(t *testing.T, d program.Description, configs []program.Config, jobs []program.Job) {
	t.Helper()
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s code=%d open=%t profiles=%q %s\n", d.Name, d.Code, d.Open, d.Profiles, d.Arithmetic)
	for _, c := range d.Ledger.Counters {
		fmt.Fprintf(&text, "counts %s in %s, column %q, gauge %t\n", c.Name, c.Unit, c.Column, c.Gauge)
	}
	fmt.Fprintf(&text, "output %v parts %v inside %v identities %v\n", d.Ledger.Output, d.Ledger.Parts, d.Ledger.Inside,
		d.Ledger.Identities)
	for _, name := range slices.Sorted(maps.Keys(d.Actions)) {
		fmt.Fprintf(&text, "action %s %d\n", name, d.Actions[name])
	}
	for _, table := range d.Tables {
		fmt.Fprintf(&text, "table %+v, others are %s\n", table, d.ClassName(d.Stranger))
	}
	for _, cfg := range configs {
		p, err := d.New(cfg)
		fmt.Fprintf(&text, "%+v: %v", cfg, err)
		if err == nil {
			fmt.Fprintf(&text, ", %d slots, %d bytes", p.Slots(), p.Memory())
		}
		text.WriteByte('\n')
	}
	p, err := d.New(configs[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs {
		members := len(j.Members)
		err := p.Configure(j)
		j.Members = nil
		fmt.Fprintf(&text, "%+v of %d: %v\n", j, members, err)
	}
	golden.Equal(t, "bounds.txt", text.Bytes())
}

// NewMembers returns n members, whose ports are 0 to n-1.
func NewMembers(n int) []program.Member {
	m := make([]program.Member, n)
	for w := range m {
		m[w] = program.Member{Worker: olaf.WorkerID(w), Port: program.Port(w)}
	}
	return m
}
