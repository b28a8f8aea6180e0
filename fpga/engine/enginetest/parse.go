package enginetest

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
)

// Limits of the text form.
const (
	MaxLine  = 1 << 18 // bytes per line, enough for the gradients of the largest frame
	MaxCycle = 1 << 50 // 52 days
)

// ParseVector reads one vector. Fields may be in any order. A field may be omitted if its value is the default, 1 for a
// count and 0 otherwise. Classes, departures and counters may be missing, as in a stimulus. The error matches ErrFormat
// and includes the line number.
func ParseVector(r io.Reader) (*Vector, error) {
	p := &parser{v: &Vector{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, MaxLine)
	for lines.Scan() {
		p.number++
		if err := p.line(lines.Text()); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrFormat, p.number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: line %d: %w", ErrFormat, p.number+1, err)
	}
	if !p.ended {
		return nil, fmt.Errorf("%w: line %d: the text stops before \"end\"", ErrFormat, p.number)
	}
	return p.v, nil
}

type parser struct {
	v      *Vector
	number int
	queue  bool // the queue line was read
	output bool
	ended  bool
	last   int64 // cycle of the last event
}

// line parses one line of the vector.
func (p *parser) line(text string) error {
	if about, ok := strings.CutPrefix(text, "#"); ok {
		if p.queue {
			return nil // only comments at the top are kept
		}
		p.v.About = append(p.v.About, strings.TrimSpace(about))
		return nil
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil
	}
	if p.ended {
		return fmt.Errorf("%q after \"end\"", words[0])
	}
	rest := words[1:]
	switch words[0] {
	case "vector":
		return p.name(rest)
	case "queue":
		return p.queueLine(rest)
	case "output":
		return p.outputLine(rest)
	case "in", "out", "flush":
		return p.event(words[0], rest)
	case "stat":
		return p.stat(rest)
	case "end":
		if p.v.Name == "" || !p.queue || !p.output {
			return fmt.Errorf("a vector, a queue and an output line must come before \"end\"")
		}
		p.ended = true
		return nil
	}
	return fmt.Errorf("unknown word %q", words[0])
}

func (p *parser) name(words []string) error {
	if len(words) != 1 || p.v.Name != "" {
		return fmt.Errorf("a vector has one name")
	}
	p.v.Name = words[0]
	return nil
}

func (p *parser) queueLine(words []string) error {
	if p.queue || len(words) == 0 {
		return fmt.Errorf("there is one queue line and it names the engine")
	}
	p.queue = true
	p.v.Engine = words[0]
	if !slices.Contains(engine.DisciplineNames(), p.v.Engine) {
		return fmt.Errorf("unknown queue %q; there are %s", p.v.Engine, strings.Join(engine.DisciplineNames(), ", "))
	}
	c := &p.v.Config
	err := setFields(words[1:], map[string]setter{
		"slots":              intSetter(&c.Slots),
		"clusters":           intSetter(&c.Clusters),
		"lanes":              intSetter(&c.LaneMemory),
		"free_slot_on_start": boolSetter(&c.FreeSlotOnStart),
		"reward_filter":      boolSetter(&c.RewardFilter),
		"reward_threshold":   intSetter(&c.RewardThreshold),
		"provenance":         boolSetter(&c.Provenance),
	})
	if err != nil {
		return err
	}
	return c.Validate()
}

func (p *parser) outputLine(words []string) error {
	if p.output {
		return fmt.Errorf("there is one output line")
	}
	p.output = true
	o := &p.v.Output
	err := setFields(words, map[string]setter{
		"rate":     intSetter(&o.Rate),
		"overhead": intSetter(&o.OverheadBytes),
		"dequeue":  intSetter(&o.DequeueCycles),
		"merge":    intSetter(&o.MergeCycles),
	})
	if err != nil {
		return err
	}
	return o.Validate()
}

func (p *parser) stat(words []string) error {
	if len(words) != 2 {
		return fmt.Errorf("a stat has a name and a value")
	}
	s := Stat{Name: words[0]}
	if err := intSetter(&s.Value)(words[1]); err != nil {
		return err
	}
	p.v.Stats = append(p.v.Stats, s)
	return nil
}

func (p *parser) event(kind string, words []string) error {
	if !p.queue || !p.output {
		return fmt.Errorf("an event stands before the queue and output lines")
	}
	if len(words) == 0 {
		return fmt.Errorf("%s has no cycle", kind)
	}
	var ev Event
	if err := intSetter(&ev.Cycle)(words[0]); err != nil {
		return err
	}
	if ev.Cycle < p.last || ev.Cycle > MaxCycle {
		return fmt.Errorf("cycle %d does not lie between the latest event's %d and %d", ev.Cycle, p.last,
			int64(MaxCycle))
	}
	p.last = ev.Cycle
	words, err := ev.head(kind, words[1:])
	if err != nil {
		return err
	}
	if err := ev.body(words); err != nil {
		return err
	}
	if err := ev.validate(&p.v.Config); err != nil {
		return err
	}
	p.v.Events = append(p.v.Events, ev)
	return nil
}

// head sets the event's kind and, for an arrival, its class, which is the last word. It returns the remaining words.
func (ev *Event) head(kind string, words []string) ([]string, error) {
	switch kind {
	case "flush":
		ev.Kind = Flush
		if len(words) > 0 {
			return nil, fmt.Errorf("flush has only a cycle, not %q", words[0])
		}
	case "out":
		ev.Kind = Out
	case "in":
		ev.Class = engine.Classes
		n := len(words)
		if n < 2 || words[n-2] != "=>" {
			break
		}
		for c := range engine.Classes {
			if c.String() == words[n-1] {
				ev.Class = c
				return words[:n-2], nil
			}
		}
		return nil, fmt.Errorf("unknown class %q", words[n-1])
	}
	return words, nil
}

func (ev *Event) body(words []string) error {
	if ev.Kind == Flush {
		return nil
	}
	u := &ev.Update
	u.Count = 1
	set := map[string]setter{
		"cluster": intSetter(&u.Cluster),
		"worker":  intSetter(&u.Worker),
		"seq":     intSetter(&u.Seq),
		"gen":     intSetter(&u.GenNS),
		"reward":  intSetter(&u.Reward),
		"count":   intSetter(&u.Count),
		"lanes":   intSetter(&u.Lanes),
		"flags":   ev.flags,
		"data":    ev.data,
		"inside":  ev.inside,
	}
	if ev.Kind == Out {
		set["queued"] = intSetter(&ev.Queued)
	}
	return setFields(words, set)
}

func (ev *Event) validate(c *engine.Config) error {
	if ev.Kind == Flush {
		return nil
	}
	u := &ev.Update
	switch {
	case int(u.Cluster) >= c.Clusters:
		return fmt.Errorf("cluster %d does not exist; there are %d", u.Cluster, c.Clusters)
	case u.Count == 0:
		return fmt.Errorf("count is 0; an update holds at least itself")
	case u.GenNS >= olaf.GenModulus:
		return fmt.Errorf("gen %d does not fit 48 bits", u.GenNS)
	case int(u.Lanes) > olaf.MaxLanes:
		return fmt.Errorf("%d lanes; a frame holds at most %d", u.Lanes, olaf.MaxLanes)
	case ev.Kind == In && ev.Data != nil && len(ev.Data) != int(u.Lanes):
		return fmt.Errorf("data has %d values for %d lanes", len(ev.Data), u.Lanes)
	}
	return nil
}

func (ev *Event) flags(s string) error {
	for _, name := range strings.Split(s, "+") {
		i := slices.IndexFunc(flags, func(f namedFlag) bool { return f.name == name })
		if i < 0 {
			return fmt.Errorf("unknown flag %q", name)
		}
		ev.Update.Flags |= flags[i].flag
	}
	return nil
}

func (ev *Event) data(s string) error {
	for _, v := range strings.Split(s, ",") {
		var lane int32
		if err := intSetter(&lane)(v); err != nil {
			return err
		}
		ev.Data = append(ev.Data, lane)
	}
	return nil
}

func (ev *Event) inside(s string) error {
	for _, v := range strings.Split(s, ",") {
		parts := strings.Split(v, ":")
		if len(parts) != 3 {
			return fmt.Errorf("contributor %q is not worker:seq:gen", v)
		}
		var who olaf.Contributor
		for i, set := range []setter{intSetter(&who.Worker), intSetter(&who.Seq), intSetter(&who.GenNS)} {
			if err := set(parts[i]); err != nil {
				return err
			}
		}
		ev.Inside = append(ev.Inside, who)
	}
	return nil
}

// setter parses the text of a value and stores it.
type setter func(string) error

// setFields parses words of the form key=value with the setters in set.
func setFields(words []string, set map[string]setter) error {
	seen := map[string]bool{}
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		if !ok || set[key] == nil {
			return fmt.Errorf("unknown field %q", w)
		}
		if seen[key] {
			return fmt.Errorf("%s stands twice", key)
		}
		seen[key] = true
		if err := set[key](value); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

type integer interface {
	~int | ~int32 | ~int64 | ~uint16 | ~uint32 | ~uint64
}

// intSetter returns a setter for a decimal integer that must fit in *dst.
func intSetter[T integer](dst *T) setter {
	return func(s string) error {
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil || int64(T(v)) != v || (T(0)-1 > 0 && v < 0) {
			return fmt.Errorf("%q is not a number that fits", s)
		}
		*dst = T(v)
		return nil
	}
}

func boolSetter(dst *bool) setter {
	return func(s string) error {
		if s != "0" && s != "1" {
			return fmt.Errorf("%q is neither 0 nor 1", s)
		}
		*dst = s == "1"
		return nil
	}
}
