// Package yamlfile reads files that users write by hand: topologies, jobs and specifications. It rejects unknown and
// duplicate fields, wrong types and bad units, and reports several mistakes at once with their line numbers. The result
// contains the line numbers of its fields, so that later checks can also report the place of a mistake.
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

// maxSize is the maximum size of a file in bytes. Handwritten files are much smaller than 16 MB, and aliases could
// otherwise expand exponentially.
const maxSize = 16 << 20

// MaxErrors is the maximum number of mistakes that are reported at once.
const MaxErrors = 10

// Pos is a position in a file. The zero Pos means that there is no file. A struct that embeds a Pos records the lines
// of its fields.
type Pos struct {
	Line int
	keys map[string]int
}

// Has reports whether the file contains the named field.
func (p Pos) Has(key string) bool {
	_, given := p.keys[key]
	return given
}

// LineOf returns the line of the named field. If the field is absent, it returns the line of the whole struct.
func (p Pos) LineOf(key string) int {
	if line, ok := p.keys[key]; ok {
		return line
	}
	return p.Line
}

// Format describes a kind of file and the errors for it.
type Format struct {
	Name string // name of the document in messages, such as topology
	Hint string // advice for an empty file; if not set, an empty file is valid and changes nothing
	// Schema is the required value of the field named schema; empty disables the check.
	Schema string
	// Fail returns the error for a mistake in a line; line is 0 if unknown.
	Fail func(line int, what string) error
}

// Decode fills the struct to which into points. Fields that do not occur in the file are left unchanged. The names of
// fields are those in their yaml tags, or else in their json tags. Types that implement encoding.TextUnmarshaler, such
// as quantities with a unit, decode themselves.
func (f Format) Decode(text []byte, into any) error {
	_, err := f.DecodeWithLines(text, into)
	return err
}

// Lines maps the fields in a file to their line numbers. The keys are paths in the document, such as workload.size or
// expect[0].
type Lines map[string]int

// LineOf returns the line of a field, or of the nearest enclosing field, or 0 if there is none.
func (l Lines) LineOf(path string) int {
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

// DecodeWithLines is like Decode, for structs that do not embed a Pos.
func (f Format) DecodeWithLines(text []byte, into any) (Lines, error) {
	if len(text) > maxSize {
		return nil, f.Fail(0, fmt.Sprintf("the file has %d bytes; a %s has at most %d", len(text), f.Name, maxSize))
	}
	root, second, err := yamldoc.FindRoot(text)
	switch {
	case err != nil:
		return nil, f.syntaxError(text, err)
	case second > 0:
		return nil, f.Fail(second, "a second document begins here; a file has one "+f.Name)
	case root == nil && f.Hint == "":
		return Lines{}, nil
	case root == nil:
		return nil, f.Fail(1, "the file is empty; "+f.Hint)
	}
	d := decoder{name: f.Name, fail: f.Fail, lines: Lines{}, types: map[reflect.Type]map[string]reflect.StructField{}}
	d.decodeValue(root, reflect.ValueOf(into).Elem(), f.Name)
	if len(d.errs) == 0 {
		d.checkSchema(root, f.Schema)
	}
	return d.lines, errors.Join(d.errs...)
}

// checkSchema reports a mistake if the file's schema differs from want.
func (d *decoder) checkSchema(n *yaml.Node, want string) {
	if want == "" || n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if value := n.Content[i+1]; n.Content[i].Value == "schema" && value.Value != "" && value.Value != want {
			d.reject(n.Content[i], "schema %q is not %s", value.Value, want)
		}
	}
}

// Error is a mistake in a file.
type Error struct {
	Kind error  // kind of error, for errors.Is
	File string // name for messages; empty for a value built in memory
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

// Unwrap returns the kind of the error, so that errors.Is matches it.
func (e *Error) Unwrap() error { return e.Kind }

// syntaxError returns the error for text that is not valid YAML, with the line at which parsing stopped.
func (f Format) syntaxError(text []byte, err error) error {
	line, what := 0, err.Error()
	if broken := (*yaml.LoadError)(nil); errors.As(err, &broken) {
		line, what = broken.Mark.Line, broken.Message
		if line == 0 { // for a character that YAML forbids, the parser reports only its offset
			line = 1 + bytes.Count(text[:min(broken.Mark.Index, len(text))], []byte("\n"))
		}
	}
	return f.Fail(line, escapeControls("not YAML: "+strings.Join(strings.Fields(what), " ")))
}

// escapeControls escapes control characters in the same way as Go. Field names may contain any character, but an error
// message must fit on one line.
func escapeControls(text string) string {
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

// decoder strictly decodes YAML nodes into structs and records the lines of fields.
type decoder struct {
	name  string // the document's name
	fail  func(line int, what string) error
	errs  []error
	lines Lines
	types map[reflect.Type]map[string]reflect.StructField // fields by name; cached because looking up a struct's fields is slow
}

func (d *decoder) reject(n *yaml.Node, format string, args ...any) {
	if len(d.errs) < MaxErrors {
		d.errs = append(d.errs, d.fail(n.Line, escapeControls(fmt.Sprintf(format, args...))))
	}
}

var posType = reflect.TypeFor[Pos]()

func (d *decoder) decodeValue(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind == yaml.AliasNode {
		d.reject(n, "%s: aliases are not supported; write it out", path)
		return
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if n.Kind != yaml.ScalarNode {
			d.reject(n, "%s must be a single value", path)
		} else if err := u.UnmarshalText([]byte(n.Value)); err != nil {
			d.reject(n, "%s: %v", path, err)
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		d.decodeValue(n, v.Elem(), path)
	case reflect.Struct:
		d.decodeStruct(n, v, path)
	case reflect.Map:
		d.decodeMap(n, v, path)
	case reflect.Slice:
		d.decodeList(n, v, path)
	default:
		d.decodeScalar(n, v, path)
	}
}

// recordLine records the line of a field or a list item.
func (d *decoder) recordLine(path string, n *yaml.Node) {
	d.lines[strings.TrimPrefix(path, d.name+".")] = n.Line
}

// visitFields calls visit once for each field in a mapping and returns the lines of the fields.
func (d *decoder) visitFields(n *yaml.Node, path string, visit func(key, value *yaml.Node)) map[string]int {
	lines := map[string]int{}
	if n.Kind != yaml.MappingNode {
		d.reject(n, "%s must be a mapping of fields", path)
		return lines
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if _, twice := lines[key.Value]; twice {
			d.reject(key, "%s has the field %q twice", path, key.Value)
			continue
		}
		lines[key.Value] = key.Line
		d.recordLine(path+"."+key.Value, key)
		visit(key, value)
	}
	return lines
}

func (d *decoder) decodeStruct(n *yaml.Node, v reflect.Value, path string) {
	lines := d.visitFields(n, path, func(key, value *yaml.Node) {
		f, known := d.fieldsOf(v.Type())[key.Value]
		if !known {
			d.reject(key, "%s has no field %q%s", path, key.Value, Suggest(key.Value, FieldNames(v.Type())))
			return
		}
		d.decodeValue(value, v.FieldByIndex(f.Index), path+"."+key.Value)
	})
	for i := range v.NumField() {
		if v.Type().Field(i).Type == posType {
			v.Field(i).Set(reflect.ValueOf(Pos{Line: n.Line, keys: lines}))
		}
	}
}

// fieldsOf returns the fields of a struct by their names.
func (d *decoder) fieldsOf(t reflect.Type) map[string]reflect.StructField {
	named, known := d.types[t]
	if known {
		return named
	}
	named = map[string]reflect.StructField{}
	for _, f := range Fields(t) {
		named[fieldName(f)] = f
	}
	d.types[t] = named
	return named
}

// decodeMap fills a map with string keys.
func (d *decoder) decodeMap(n *yaml.Node, v reflect.Value, path string) {
	v.Set(reflect.MakeMap(v.Type()))
	d.visitFields(n, path, func(key, value *yaml.Node) {
		item := reflect.New(v.Type().Elem()).Elem()
		d.decodeValue(value, item, path+"."+key.Value)
		v.SetMapIndex(reflect.ValueOf(key.Value), item)
	})
}

func (d *decoder) decodeList(n *yaml.Node, v reflect.Value, path string) {
	items := []*yaml.Node{n}
	switch {
	case n.Kind == yaml.SequenceNode:
		items = n.Content
	case v.Type().Elem().Kind() != reflect.String:
		d.reject(n, "%s must be a list", path)
		return
	}
	s := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", path, i)
		d.recordLine(at, item)
		d.decodeValue(item, s.Index(i), at)
	}
	v.Set(s)
}

func (d *decoder) decodeScalar(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.ScalarNode {
		d.reject(n, "%s must be a single value", path)
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
		d.reject(n, "%s: %q is not %s", path, n.Value, want)
	}
}

// fieldName returns the name of a struct field in a file, or "" or "-" if the field does not occur in files.
func fieldName(f reflect.StructField) string {
	tag, given := f.Tag.Lookup("yaml")
	if !given {
		tag = f.Tag.Get("json")
	}
	name, _, _ := strings.Cut(tag, ",")
	return name
}

// FieldNames returns the names that a struct's fields have in a file, including the fields of embedded structs.
func FieldNames(t reflect.Type) []string {
	var names []string
	for _, f := range Fields(t) {
		names = append(names, fieldName(f))
	}
	return names
}

// Fields returns the struct fields that may occur in a file, in order.
func Fields(t reflect.Type) []reflect.StructField {
	var fields []reflect.StructField
	for _, f := range reflect.VisibleFields(t) {
		if name := fieldName(f); f.IsExported() && name != "" && name != "-" {
			fields = append(fields, f)
		}
	}
	return fields
}

// Suggest returns the end of an error message: a suggestion of the name nearest to got, or a list of all names.
func Suggest(got string, names []string) string {
	if near := suggest.NearestNames(got, names, 1); len(near) > 0 {
		return fmt.Sprintf("; did you mean %q?", near[0])
	}
	if len(names) == 0 || len(names) > 20 {
		return ""
	}
	return "; there are " + strings.Join(names, ", ")
}
