package netsim

import (
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/yamlfile"
)

// ErrTopology is the kind of every refused topology. The message names file and line where there is one, and the fix.
var ErrTopology = olaf.NewError(olaf.Usage, "bad topology")

// Error is one thing that is wrong with a topology.
type Error struct {
	File string // empty for a topology that was built in memory
	Line int    // 0 when unknown
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

// Unwrap makes every Error match ErrTopology.
func (e *Error) Unwrap() error { return ErrTopology }

// Parse reads a topology file, which may name systems of a set. name is for messages. Unknown fields, wrong types and bad units are refused with their
// line, all of them at once; what the fields mean together is checked by Check.
func Parse(systems system.Set, name string, text []byte) (*Topology, error) {
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

// Locate puts an error about what is expected into the line of the file that says it.
func (t *Topology) Locate(err error) error {
	if line := t.Of("expect"); t.File != "" && t.Has("expect") && olaf.FieldOf(err) != "" {
		return &Error{t.File, line, err.Error()}
	}
	return err
}

// Text writes t as a topology file.
func (t *Topology) Text() ([]byte, error) {
	c := *t
	c.Schema = TopologySchema
	return yaml.Marshal(&c)
}

// Document is t as a JSON document would hold it: the fields of its file.
func (t *Topology) Document() (map[string]any, error) {
	text, err := t.Text()
	if err != nil {
		return nil, err
	}
	doc := map[string]any{}
	return doc, yaml.Unmarshal(text, &doc)
}
