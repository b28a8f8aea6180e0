package netsim

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/olafctl/olaf"
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

// maxFile bounds a topology file; nobody writes 16 MB by hand, and aliases can blow up.
const maxFile = 16 << 20

// Parse reads a topology file. name is for messages. Unknown fields, wrong types and bad units are refused with their
// line, all of them at once; what the fields mean together is checked by Check.
func Parse(name string, text []byte) (*Topology, error) {
	if len(text) > maxFile {
		return nil, &Error{File: name, What: fmt.Sprintf("the file has %d bytes; a topology has at most %d", len(text), maxFile)}
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, &Error{File: name, What: "not YAML: " + oneLine(err.Error())}
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, &Error{File: name, Line: 1, What: "the file is empty; `olafctl topology show --preset multihop -o yaml` prints one to start from"}
	}
	d := decoder{file: name}
	t := &Topology{File: name}
	d.value(doc.Content[0], reflect.ValueOf(t).Elem(), "topology")
	if len(d.errs) > 0 {
		return nil, errors.Join(d.errs...)
	}
	if t.Schema != "" && t.Schema != TopologySchema {
		return nil, &Error{name, t.Of("schema"), fmt.Sprintf("schema %q is not %s", t.Schema, TopologySchema)}
	}
	return t, nil
}

// Text writes t as a topology file.
func (t *Topology) Text() ([]byte, error) {
	c := *t
	c.Schema = TopologySchema
	return yaml.Marshal(&c)
}

// decoder fills structs from nodes, strictly, and remembers lines.
type decoder struct {
	file string
	errs []error
}

// maxErrors is how many mistakes are listed before the rest is left for the next try.
const maxErrors = 10

func (d *decoder) fail(n *yaml.Node, format string, args ...any) {
	if len(d.errs) < maxErrors {
		d.errs = append(d.errs, &Error{d.file, n.Line, fmt.Sprintf(format, args...)})
	}
}

var posType = reflect.TypeFor[Pos]()

func (d *decoder) value(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind == yaml.AliasNode {
		d.fail(n, "%s: aliases are not supported; write it out", path)
		return
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if n.Kind != yaml.ScalarNode {
			d.fail(n, "%s must be a single value", path)
		} else if err := u.UnmarshalText([]byte(n.Value)); err != nil {
			d.fail(n, "%s: %v", path, err)
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.mapping(n, v, path)
	case reflect.Slice:
		d.sequence(n, v, path)
	default:
		d.scalar(n, v, path)
	}
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, "%s must be a mapping of fields", path)
		return
	}
	pos := Pos{Line: n.Line, keys: map[string]int{}}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		if _, twice := pos.keys[key.Value]; twice {
			d.fail(key, "%s has the field %q twice", path, key.Value)
			continue
		}
		pos.keys[key.Value] = key.Line
		f := fieldByName(v, key.Value)
		if !f.IsValid() {
			d.fail(key, "%s has no field %q%s", path, key.Value, suggestion(key.Value, fieldNames(v.Type())))
			continue
		}
		d.value(val, f, path+"."+key.Value)
	}
	for i := range v.NumField() {
		if v.Type().Field(i).Type == posType {
			v.Field(i).Set(reflect.ValueOf(pos))
		}
	}
}

func (d *decoder) sequence(n *yaml.Node, v reflect.Value, path string) {
	items := []*yaml.Node{n}
	switch {
	case n.Kind == yaml.SequenceNode:
		items = n.Content
	case v.Type().Elem().Kind() != reflect.String:
		d.fail(n, "%s must be a list", path)
		return
	}
	s := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		d.value(item, s.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
	v.Set(s)
}

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.ScalarNode {
		d.fail(n, "%s must be a single value", path)
		return
	}
	var err error
	switch v.Kind() {
	case reflect.String:
		v.SetString(n.Value)
	case reflect.Bool:
		var b bool
		if b, err = strconv.ParseBool(n.Value); err == nil {
			v.SetBool(b)
		}
	case reflect.Int:
		var i int64
		if i, err = strconv.ParseInt(n.Value, 10, 64); err == nil {
			v.SetInt(i)
		}
	case reflect.Uint64:
		var u uint64
		if u, err = strconv.ParseUint(n.Value, 10, 64); err == nil {
			v.SetUint(u)
		}
	}
	if err != nil {
		d.fail(n, "%s: %q is not a %v", path, n.Value, v.Kind())
	}
}

func yamlName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

func fieldNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		if name := yamlName(t.Field(i)); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

func fieldByName(v reflect.Value, name string) reflect.Value {
	for i := range v.NumField() {
		if n := yamlName(v.Type().Field(i)); n == name && n != "-" && n != "" {
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

// suggestion proposes the nearest of names, or lists them all.
func suggestion(got string, names []string) string {
	best, least := "", len(got)/2+1
	for _, name := range names {
		if d := editDistance(got, name); d < least {
			best, least = name, d
		}
	}
	if best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	if len(names) == 0 || len(names) > 20 {
		return ""
	}
	return "; there are " + strings.Join(names, ", ")
}

// editDistance is Levenshtein's.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Document is t as a JSON document would hold it: the fields of its file.
func (t *Topology) Document() (map[string]any, error) {
	text, err := t.Text()
	if err != nil {
		return nil, err
	}
	doc := map[string]any{}
	return doc, yaml.Unmarshal(text, &doc)
}
