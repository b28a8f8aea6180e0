package netsim

import (
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/internal/yamlfile"
)

// ErrTopology is matched by the error for any rejected topology. The message names the fix, and the file and line if
// known.
var ErrTopology = olaf.NewError(olaf.Usage, "bad topology")

// Error is one mistake in a topology.
type Error struct {
	File string // empty for a topology built in memory
	Line int    // 0 if unknown
	What string
}

func (e *Error) Error() string {
	switch {
	case e.File == "":
		return e.What
	case e.Line == 0:
		return e.File + ": " + e.What
	}
	return e.File + ":" + strconv.Itoa(e.Line) + ": " + e.What
}

// Unwrap returns ErrTopology.
func (e *Error) Unwrap() error { return ErrTopology }

// ParseTopology parses a topology file, which may name systems of the set. name is for messages. It rejects unknown fields,
// wrong types and bad units with their lines, all at once; Check checks the combination of fields.
func ParseTopology(systems system.Set, name string, text []byte) (*Topology, error) {
	t := &Topology{File: name, systems: systems}
	format := yamlfile.Format{
		Name:   "topology",
		Hint:   "`olafctl topology show --preset multihop -o yaml` prints one to start from",
		Schema: TopologySchema, Fail: func(line int, what string) error { return &Error{name, line, what} },
	}
	if err := format.Decode(text, t); err != nil {
		return nil, err
	}
	return t, nil
}

// LocateExpectation adds the line of the file's expectations to an error about them.
func (t *Topology) LocateExpectation(err error) error {
	if line := t.LineOf("expect"); t.File != "" && t.Has("expect") && olaf.FieldOf(err) != "" {
		return &Error{t.File, line, err.Error()}
	}
	return err
}

// Text returns t as a topology file.
func (t *Topology) Text() ([]byte, error) {
	c := *t
	c.Schema = TopologySchema
	return yaml.Marshal(&c)
}

// Document returns t for a JSON document: the fields of its file.
func (t *Topology) Document() (map[string]any, error) {
	text, err := t.Text()
	if err != nil {
		return nil, err
	}
	doc := map[string]any{}
	return doc, yaml.Unmarshal(text, &doc)
}
