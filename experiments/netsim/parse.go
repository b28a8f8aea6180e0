package netsim

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/internal/csvtext"
	"github.com/olafctl/olaf/internal/yamlfile"
)

// ErrTopology is matched by the error for any rejected topology. The message suggests a fix and names the file and the
// line if they are known.
var ErrTopology = olaf.NewError(olaf.Usage, "bad topology")

// Error is one error in a topology.
type Error struct {
	File string // empty for a topology built in memory
	Line int    // 0 if unknown
	What string
}

func (e *Error) Error() string {
	return (&yamlfile.Error{File: e.File, Line: e.Line, What: e.What}).Error()
}

// Unwrap returns ErrTopology.
func (e *Error) Unwrap() error { return ErrTopology }

// ParseTopology parses a topology file. systems contains the available systems. name is used in messages. ParseTopology
// reports all unknown fields, wrong types and bad units at once, with their lines. Check tests whether the fields fit
// together.
func ParseTopology(systems system.Set, name string, text []byte) (*Topology, error) {
	t := &Topology{File: name, systems: systems}
	format := yamlfile.Format{
		Name:   "topology",
		Hint:   "`olafctl topology show --preset multihop -o yaml` prints one to start from",
		Schema: topologySchema, Fail: func(line int, what string) error { return &Error{name, line, what} },
	}
	if err := format.Decode(text, t); err != nil {
		return nil, err
	}
	return t, nil
}

// LocateExpectation adds the line of the expectations in the file to an error about them.
func (t *Topology) LocateExpectation(err error) error {
	if line := t.LineOf("expect"); t.File != "" && t.Has("expect") && olaf.FieldOf(err) != "" {
		return &Error{t.File, line, err.Error()}
	}
	return err
}

// Text returns t in the format of a topology file.
func (t *Topology) Text() ([]byte, error) {
	c := *t
	c.Schema = topologySchema
	return yaml.Marshal(&c)
}

// Document returns t for use in a JSON document, with the fields of a topology file.
func (t *Topology) Document() (map[string]any, error) {
	text, err := t.Text()
	if err != nil {
		return nil, err
	}
	doc := map[string]any{}
	return doc, yaml.Unmarshal(text, &doc)
}

// TopologyJSONSchema returns the JSON schema of topology files, for editors. systems contains the systems that the
// schema allows.
func TopologyJSONSchema(systems system.Set) ([]byte, error) {
	narrowed := func(name string) map[string]any { return ofField(systems, name) }
	schema := yamlfile.Schema{
		ID: topologySchema, Title: "olafctl topology", Texts: texts, Field: narrowed,
		Required: []string{"duration", "queue", "update", "switches", "servers", "links", "clusters"},
	}
	return schema.Generate(reflect.TypeFor[Topology]())
}

// texts maps each type that is written as text to its JSON schema.
var texts = map[reflect.Type]map[string]any{
	reflect.TypeFor[Span]():          yamlfile.QuantitySchema("offsets: 54ms (from 0), 10ms..20ms, or =5ms for one value", ``),
	reflect.TypeFor[Percent]():       yamlfile.QuantitySchema("a share: 10%", `^[0-9.]+%$`),
	reflect.TypeFor[Timing]():        yamlfile.ChoiceSchema(timings...),
	reflect.TypeFor[Count]():         yamlfile.ChoiceSchema(counting...),
	reflect.TypeFor[Acks]():          yamlfile.ChoiceSchema(acks...),
	reflect.TypeFor[LinkState]():     yamlfile.ChoiceSchema(linkStates...),
	reflect.TypeFor[Arrivals]():      yamlfile.ChoiceSchema(arrivals...),
	reflect.TypeFor[tc.Slope]():      yamlfile.ChoiceSchema(tc.Slopes()...),
	reflect.TypeFor[tc.LawName]():    yamlfile.ChoiceSchema(tc.LawNames()...),
	reflect.TypeFor[tc.AckContent](): yamlfile.ChoiceSchema(tc.AckContents()...),
	reflect.TypeFor[Names](): {"description": "one name or a list", "oneOf": []any{
		map[string]any{"type": "string"}, map[string]any{"type": "array", "items": map[string]any{"type": "string"}}}},
}

// ofField returns the JSON schema for a field that is plain text in Go but accepts only certain values, or nil for
// other fields.
func ofField(systems system.Set, name string) map[string]any {
	switch name {
	case "queue":
		return yamlfile.ChoiceSchema(engine.DisciplineNames()...)
	case "system":
		return yamlfile.ChoiceSchema(systems.Rising().Names()...)
	case "program":
		return yamlfile.ChoiceSchema(systems.Adding().Names()...)
	case "profile":
		return yamlfile.ChoiceSchema(engine.ProfileNames()...)
	case "schema":
		return map[string]any{"const": topologySchema}
	}
	return nil
}

// send is the generation of one update, as read from a file.
type send struct {
	At     olaf.Time
	Worker int // dense index over all clusters
}

// sendsHeader is the optional first line of a file with sends.
const sendsHeader = "time_ns,worker"

// SetSends replaces all arrivals in t by those in a CSV file with the columns time_ns,worker. Each line is one update.
// Workers are counted from 0 over all clusters, in the order of the topology. Lines may be in any order; sends at the
// same instant stay in the file's order. Errors name the file and the line and match ErrTopology.
func (t *Topology) SetSends(name string, r io.Reader) error {
	_, workers := t.countWorkers()
	sends, err := readSends(name, r, workers)
	if err != nil {
		return err
	}
	t.Sends, t.sends = name, sends
	return nil
}

// SendsDigest returns a digest of the arrivals that SetSends set, or "" if none were set. Document contains only the
// file name of the arrivals.
func (t *Topology) SendsDigest() string {
	if t.sends == nil {
		return ""
	}
	h := sha256.New()
	for _, s := range t.sends {
		fmt.Fprintf(h, "%d,%d\n", s.At.NS(), s.Worker)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// LateSends returns the number of sends in the file that are ignored because they come at or after the end of the run,
// and the number of all sends.
func (t *Topology) LateSends() (late, all int) {
	end := olaf.Time(t.Warmup + t.Duration)
	at, _ := slices.BinarySearchFunc(t.sends, end, func(s send, end olaf.Time) int { return cmp.Compare(s.At, end) })
	return len(t.sends) - at, len(t.sends)
}

func readSends(name string, r io.Reader, workers int) ([]send, error) {
	sc, err := scanCSV(name, r)
	if err != nil {
		return nil, err
	}
	sends := []send{}
	for line := 1; sc.Scan(); line++ {
		text := strings.TrimSpace(sc.Text())
		if err := csvtext.CheckSeparator(text); err != nil && line == 1 {
			return nil, &Error{name, line, err.Error()}
		}
		if text == "" || line == 1 && strings.EqualFold(strings.ReplaceAll(text, " ", ""), sendsHeader) {
			continue
		}
		s, err := parseSend(text, workers)
		if err != nil {
			return nil, &Error{name, line, err.Error()}
		}
		sends = append(sends, s)
	}
	if err := sc.Err(); err != nil {
		return nil, &Error{File: name, What: fmt.Sprintf("cannot be read as lines of %s: %v", sendsHeader, err)}
	}
	if len(sends) == 0 {
		return nil, &Error{name, 1, "there are no sends; write lines of " + sendsHeader}
	}
	if len(sends) > 1<<31 {
		return nil, &Error{File: name, What: fmt.Sprintf("there are %d sends; at most %d", len(sends), 1<<31)}
	}
	slices.SortStableFunc(sends, func(a, b send) int { return cmp.Compare(a.At, b.At) })
	return sends, nil
}

// scanCSV returns a scanner for the lines of a CSV file, which another program may have written.
func scanCSV(name string, r io.Reader) (*bufio.Scanner, error) {
	in, err := csvtext.Open(r)
	if err != nil {
		return nil, &Error{File: name, What: err.Error()}
	}
	sc := bufio.NewScanner(in)
	sc.Buffer(make([]byte, 0, 1<<16), 1<<16)
	return sc, nil
}

func parseSend(text string, workers int) (send, error) {
	at, worker, ok := strings.Cut(text, ",")
	ns, errAt := olaf.ParseInt(strings.TrimSpace(at))
	w, errWorker := strconv.Atoi(strings.TrimSpace(worker))
	switch {
	case !ok || errAt != nil || errWorker != nil:
		return send{}, fmt.Errorf("%q is not a line of %s with whole numbers", text, sendsHeader)
	case ns < 0 || ns > int64(maxSimulated/olaf.Nanosecond):
		return send{}, fmt.Errorf("time %d ns is outside of 0 to %v", ns, maxSimulated)
	case w < 0 || w >= workers:
		return send{}, fmt.Errorf("worker %d does not exist; the topology has workers 0 to %d", w, workers-1)
	}
	return send{olaf.Time(ns) * olaf.Time(olaf.Nanosecond), w}, nil
}

// script contains the sends in a file. They are sorted by worker and keep the file's order.
type script struct {
	first []int32 // per worker, the index of its first entry; one more at the end
	at    []int64
	line  []uint32 // line number from 1; orders simultaneous sends
}

func newScript(sends []send, workers int) *script {
	s := &script{first: make([]int32, workers+1), at: make([]int64, len(sends)), line: make([]uint32, len(sends))}
	for _, x := range sends {
		s.first[x.Worker+1]++
	}
	for w := range workers {
		s.first[w+1] += s.first[w]
	}
	fill := append([]int32(nil), s.first...)
	for i, x := range sends {
		at := fill[x.Worker]
		fill[x.Worker]++
		s.at[at], s.line[at] = int64(x.At), uint32(i+1)
	}
	return s
}

// sendOf returns the time at which worker w generates update seq, and the line in the file, counted from 1.
func (s *script) sendOf(w int, seq uint32) (at int64, place uint64) {
	i := int64(s.first[w]) + int64(seq)
	if i >= int64(s.first[w+1]) {
		return never, 0
	}
	return s.at[i], uint64(s.line[i])
}
