// Package yamlfile reads the files that people write: topologies, jobs, specifications. Unknown fields, fields given twice, wrong types
// and bad units are refused with their line, several at once, and what was read remembers its lines, so that a mistake in
// what the fields mean together can be shown in its place, too.
package yamlfile

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/suggest"
	"github.com/olafctl/olaf/internal/yamldoc"
)

// maxSize bounds a file; nobody writes 16 MB by hand, and aliases can blow up.
const maxSize = 16 << 20

// MaxErrors is how many mistakes are listed before the rest is left for the next try.
const MaxErrors = 10

// Pos says where in a file something stood; the zero Pos is no file. A struct that embeds one remembers its lines.
type Pos struct {
	Line int
	keys map[string]int
}

// Has says whether the named field was given.
func (p Pos) Has(key string) bool {
	_, given := p.keys[key]
	return given
}

// Of is the line of the named field, or of the whole where the field is absent.
func (p Pos) Of(key string) int {
	if line, ok := p.keys[key]; ok {
		return line
	}
	return p.Line
}

// Format is how a kind of file calls itself and its mistakes.
type Format struct {
	Name string // the whole document in messages: topology
	Hint string // what to do about an empty file; without one, a file may be empty and leaves everything as it was
	// Schema is what its field of that name may say; empty where nothing is looked at.
	Schema string
	// Fail makes the error of a mistake in a line, 0 where there is none.
	Fail func(line int, what string) error
}

// Decode fills the struct that into points to, and leaves what the file does not name as it was. Fields are named by their
// yaml tags, or else by those for JSON; texts with a unit, and all other types that read themselves, by
// encoding.TextUnmarshaler.
func (f Format) Decode(text []byte, into any) error {
	_, err := f.DecodeWithLines(text, into)
	return err
}

// Lines says where the fields of a file stand, by their path from the document on, such as workload.size or expect[0].
type Lines map[string]int

// Of is the line of a field, or else of the nearest one around it; 0 where there is none.
func (l Lines) Of(path string) int {
	for {
		if line, given := l[path]; given {
			return line
		}
		at := strings.LastIndexAny(path, ".[")
		if at < 0 {
			return 0
		}
		path = path[:at]
	}
}

// DecodeWithLines is Decode for structs that are not made for files alone and so cannot remember their lines.
func (f Format) DecodeWithLines(text []byte, into any) (Lines, error) {
	if len(text) > maxSize {
		return nil, f.Fail(0, fmt.Sprintf("the file has %d bytes; a %s has at most %d", len(text), f.Name, maxSize))
	}
	root, second, err := yamldoc.Root(text)
	switch {
	case err != nil:
		return nil, f.none(text, err)
	case second > 0:
		return nil, f.Fail(second, "a second document begins here; a file has one "+f.Name)
	case root == nil && f.Hint == "":
		return Lines{}, nil
	case root == nil:
		return nil, f.Fail(1, "the file is empty; "+f.Hint)
	}
	d := decoder{name: f.Name, fail: f.Fail, lines: Lines{}, types: map[reflect.Type]map[string]reflect.StructField{}}
	d.value(root, reflect.ValueOf(into).Elem(), f.Name)
	if len(d.errs) == 0 {
		d.schema(root, f.Schema)
	}
	return d.lines, errors.Join(d.errs...)
}

// schema refuses a file of another kind.
func (d *decoder) schema(n *yaml.Node, want string) {
	if want == "" || n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if value := n.Content[i+1]; n.Content[i].Value == "schema" && value.Value != "" && value.Value != want {
			d.refuse(n.Content[i], "schema %q is not %s", value.Value, want)
		}
	}
}

// Error is one thing that is wrong with a file.
type Error struct {
	Kind error  // that it matches
	File string // as messages name it
	Line int    // 0 when unknown
	What string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.What
	}
	return e.File + ":" + strconv.Itoa(e.Line) + ": " + e.What
}

// Unwrap makes it match its kind.
func (e *Error) Unwrap() error { return e.Kind }

// none is a text that is no YAML, with the line where reading it broke off.
func (f Format) none(text []byte, err error) error {
	line, what := 0, err.Error()
	if broken := (*yaml.LoadError)(nil); errors.As(err, &broken) {
		line, what = broken.Mark.Line, broken.Message
		if line == 0 { // of a character that no YAML has, the parser knows the place alone
			line = 1 + bytes.Count(text[:min(broken.Mark.Index, len(text))], []byte("\n"))
		}
	}
	return f.Fail(line, visible("not YAML: "+strings.Join(strings.Fields(what), " ")))
}

// visible writes what is no letter, sign or blank as Go does, as names of fields may hold anything and a mistake is one line.
func visible(text string) string {
	if !strings.ContainsFunc(text, unicode.IsControl) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if quoted := strconv.QuoteRune(r); unicode.IsControl(r) {
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// decoder fills structs from nodes, strictly, and remembers lines.
type decoder struct {
	name  string // of the document
	fail  func(line int, what string) error
	errs  []error
	lines Lines
	types map[reflect.Type]map[string]reflect.StructField // by name; looking a struct's fields up takes long
}

func (d *decoder) refuse(n *yaml.Node, format string, args ...any) {
	if len(d.errs) < MaxErrors {
		d.errs = append(d.errs, d.fail(n.Line, visible(fmt.Sprintf(format, args...))))
	}
}

var posType = reflect.TypeFor[Pos]()

func (d *decoder) value(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind == yaml.AliasNode {
		d.refuse(n, "%s: aliases are not supported; write it out", path)
		return
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if n.Kind != yaml.ScalarNode {
			d.refuse(n, "%s must be a single value", path)
		} else if err := u.UnmarshalText([]byte(n.Value)); err != nil {
			d.refuse(n, "%s: %v", path, err)
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		d.value(n, v.Elem(), path)
	case reflect.Struct:
		d.structure(n, v, path)
	case reflect.Map:
		d.mapping(n, v, path)
	case reflect.Slice:
		d.sequence(n, v, path)
	default:
		d.scalar(n, v, path)
	}
}

// stands remembers the line of a field or of a list's item.
func (d *decoder) stands(path string, n *yaml.Node) {
	d.lines[strings.TrimPrefix(path, d.name+".")] = n.Line
}

// fields visits the fields of a mapping once each and gives their lines.
func (d *decoder) fields(n *yaml.Node, path string, visit func(key, value *yaml.Node)) map[string]int {
	lines := map[string]int{}
	if n.Kind != yaml.MappingNode {
		d.refuse(n, "%s must be a mapping of fields", path)
		return lines
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if _, twice := lines[key.Value]; twice {
			d.refuse(key, "%s has the field %q twice", path, key.Value)
			continue
		}
		lines[key.Value] = key.Line
		d.stands(path+"."+key.Value, key)
		visit(key, value)
	}
	return lines
}

func (d *decoder) structure(n *yaml.Node, v reflect.Value, path string) {
	lines := d.fields(n, path, func(key, value *yaml.Node) {
		f, known := d.fieldsOf(v.Type())[key.Value]
		if !known {
			d.refuse(key, "%s has no field %q%s", path, key.Value, Suggest(key.Value, FieldNames(v.Type())))
			return
		}
		d.value(value, v.FieldByIndex(f.Index), path+"."+key.Value)
	})
	for i := range v.NumField() {
		if v.Type().Field(i).Type == posType {
			v.Field(i).Set(reflect.ValueOf(Pos{Line: n.Line, keys: lines}))
		}
	}
}

// fieldsOf are the fields of a struct by their names.
func (d *decoder) fieldsOf(t reflect.Type) map[string]reflect.StructField {
	named, known := d.types[t]
	if known {
		return named
	}
	named = map[string]reflect.StructField{}
	for _, f := range Fields(t) {
		named[FieldName(f)] = f
	}
	d.types[t] = named
	return named
}

// mapping fills a map from names.
func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string) {
	v.Set(reflect.MakeMap(v.Type()))
	d.fields(n, path, func(key, value *yaml.Node) {
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(value, item, path+"."+key.Value)
		v.SetMapIndex(reflect.ValueOf(key.Value), item)
	})
}

func (d *decoder) sequence(n *yaml.Node, v reflect.Value, path string) {
	items := []*yaml.Node{n}
	switch {
	case n.Kind == yaml.SequenceNode:
		items = n.Content
	case v.Type().Elem().Kind() != reflect.String:
		d.refuse(n, "%s must be a list", path)
		return
	}
	s := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", path, i)
		d.stands(at, item)
		d.value(item, s.Index(i), at)
	}
	v.Set(s)
}

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.ScalarNode {
		d.refuse(n, "%s must be a single value", path)
		return
	}
	var err error
	want := "a whole number"
	switch v.Kind() {
	case reflect.String:
		v.SetString(n.Value)
	case reflect.Bool:
		var b bool
		want = "true or false"
		if b, err = strconv.ParseBool(n.Value); err == nil {
			v.SetBool(b)
		}
	case reflect.Int:
		var i int64
		if i, err = olaf.ParseInt(n.Value); err == nil {
			v.SetInt(i)
		}
	case reflect.Uint64:
		var u uint64
		if u, err = olaf.ParseUint(n.Value, 64); err == nil {
			v.SetUint(u)
		}
	case reflect.Float64:
		var f float64
		want = "a number"
		if f, err = olaf.ParseNumber(n.Value); err == nil {
			v.SetFloat(f)
		}
	}
	if err != nil {
		d.refuse(n, "%s: %q is not %s", path, n.Value, want)
	}
}

// FieldName is what a struct's field is called in a file; "" or "-" for one that isn't in it.
func FieldName(f reflect.StructField) string {
	tag, given := f.Tag.Lookup("yaml")
	if !given {
		tag = f.Tag.Get("json")
	}
	name, _, _ := strings.Cut(tag, ",")
	return name
}

// FieldNames lists what a struct's fields are called in a file, those of structs that it embeds among them.
func FieldNames(t reflect.Type) []string {
	var names []string
	for _, f := range Fields(t) {
		names = append(names, FieldName(f))
	}
	return names
}

// Fields are those of a struct that a file can name, in their order.
func Fields(t reflect.Type) []reflect.StructField {
	var fields []reflect.StructField
	for _, f := range reflect.VisibleFields(t) {
		if name := FieldName(f); f.IsExported() && name != "" && name != "-" {
			fields = append(fields, f)
		}
	}
	return fields
}

// Suggest proposes the nearest of names, or lists them all, as the end of a message.
func Suggest(got string, names []string) string {
	if near := suggest.Names(got, names, 1); len(near) > 0 {
		return fmt.Sprintf("; did you mean %q?", near[0])
	}
	if len(names) == 0 || len(names) > 20 {
		return ""
	}
	return "; there are " + strings.Join(names, ", ")
}
