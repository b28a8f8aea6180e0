package p4test

import (
	"fmt"
	"strconv"
	"strings"
	"text/scanner"
)

// program is the parsed part of a P4 source. It contains the types, and the tables and actions of the controls.
type program struct {
	fields  map[string]map[string]string // type → field → type, or a width for bit<W>
	tables  []*table
	actions map[string]*action // actions by name, qualified with the control
	order   []string           // names of the actions in order
}

type table struct {
	name, brief string
	id          uint32
	keys        []key
	actions     []actionRef
	defaultName string
	constant    bool
	size        int64
	applied     int
}

type key struct {
	id          uint32
	name, match string
	bits        int32
	expression  string
}

type actionRef struct {
	name        string
	defaultOnly bool
}

type action struct {
	name, brief string
	id          uint32
	params      []param
	conditional bool // has a condition, which VNP4 does not support inside actions
}

type param struct {
	id          uint32
	name        string
	bits        int32
	annotations []string
}

// annotation is an annotation of the form @name(text) before a declaration.
type annotation struct{ name, text string }

// findAnnotation returns the text of the annotation with the given name.
func findAnnotation(all []annotation, name string) (text string, ok bool) {
	for _, a := range all {
		if a.name == name {
			return a.text, true
		}
	}
	return "", false
}

// reader parses the tokens of a source whose #define lines have been processed.
type reader struct {
	tokens []token
	at     int
	macros map[string]string
	err    error
}

type token struct {
	text string
	line int
}

// parseSource parses a source whose own includes have been inlined.
func parseSource(text string, macros map[string]string) (*program, error) {
	r := &reader{macros: macros}
	r.tokenize(r.preprocess(text))
	p := &program{fields: make(map[string]map[string]string), actions: make(map[string]*action)}
	for r.err == nil && r.at < len(r.tokens) {
		r.readDeclaration(p)
	}
	return p, r.err
}

// preprocess collects the #define lines and removes all other directives. Macros that the build defines take
// precedence, as with #ifndef.
func (r *reader) preprocess(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		if words := strings.Fields(line); words[0] == "#define" && len(words) == 3 {
			if _, set := r.macros[words[1]]; !set {
				r.macros[words[1]] = words[2]
			}
		}
		lines[i] = ""
	}
	return strings.Join(lines, "\n")
}

// longestName is the maximum length of a name. It is limited because each qualified declaration copies its name.
const longestName = 255

func (r *reader) tokenize(text string) {
	var s scanner.Scanner
	s.Init(strings.NewReader(text))
	s.Mode = scanner.ScanIdents | scanner.ScanInts | scanner.ScanStrings | scanner.ScanComments | scanner.SkipComments
	s.Error = func(s *scanner.Scanner, message string) { r.fail(s.Line, "%s", message) }
	for t := s.Scan(); t != scanner.EOF; t = s.Scan() {
		text := s.TokenText()
		if t == scanner.Ident && len(text) > longestName {
			r.fail(s.Line, "a name of %d bytes; %d are known here", len(text), longestName)
		}
		r.tokens = append(r.tokens, token{text, s.Line})
	}
}

func (r *reader) fail(line int, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("line %d: %s", line, fmt.Sprintf(format, args...))
	}
}

// next returns the next token, or "" at the end or after an error.
func (r *reader) next() string {
	if r.err != nil || r.at >= len(r.tokens) {
		r.fail(0, "the source ends too early")
		return ""
	}
	r.at++
	return r.tokens[r.at-1].text
}

func (r *reader) peek() string {
	if r.err != nil || r.at >= len(r.tokens) {
		return ""
	}
	return r.tokens[r.at].text
}

func (r *reader) lineNumber() int { return r.tokens[max(r.at-1, 0)].line }

func (r *reader) expect(text string) {
	if got := r.next(); got != text && r.err == nil {
		r.fail(r.lineNumber(), "%q where %q belongs", got, text)
	}
}

// readUntil returns the tokens before the first occurrence of one of ends, which is not consumed. Bracketed tokens in
// between are skipped as a unit.
func (r *reader) readUntil(ends ...string) (taken []string) {
	for depth := 0; r.err == nil; {
		t := r.peek()
		for _, end := range ends {
			if t == end && depth == 0 {
				return taken
			}
		}
		switch t {
		case "(", "{", "[":
			depth++
		case ")", "}", "]":
			depth--
		}
		taken = append(taken, r.next())
	}
	return taken
}

// readBlock returns the tokens between { and }.
func (r *reader) readBlock() []string {
	r.expect("{")
	inside := r.readUntil("}")
	r.expect("}")
	return inside
}

func (r *reader) readAnnotations() (all []annotation) {
	for r.peek() == "@" {
		r.next()
		a := annotation{name: r.next()}
		if r.peek() == "(" {
			r.next()
			a.text = joinTokens(r.readUntil(")"))
			r.expect(")")
		}
		all = append(all, a)
	}
	return all
}

// joinTokens joins the tokens of an annotation in the spelling of P4Info. A single string loses its quotes.
func joinTokens(tokens []string) string {
	if len(tokens) == 1 {
		if text, err := strconv.Unquote(tokens[0]); err == nil {
			return text
		}
	}
	return strings.ReplaceAll(strings.Join(tokens, ""), ",", ", ")
}

func (r *reader) parseNumber(text string) int64 {
	if value, ok := r.macros[text]; ok {
		text = value
	}
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		r.fail(r.lineNumber(), "%q is no number", text)
	}
	return n
}

func (r *reader) readDeclaration(p *program) {
	r.readAnnotations()
	switch word := r.next(); word {
	case "header", "struct":
		name := r.next()
		p.fields[name] = r.readFields()
	case "control":
		r.readControl(p)
	case "parser":
		r.readUntil("{")
		r.readBlock()
	default: // a constant or a package
		r.readUntil(";")
		r.expect(";")
	}
}

// readFields parses the members of a header or a struct.
func (r *reader) readFields() map[string]string {
	fields := make(map[string]string)
	r.expect("{")
	for r.err == nil && r.peek() != "}" {
		r.readAnnotations()
		kind := r.typeName()
		fields[r.next()] = kind
		r.expect(";")
	}
	r.expect("}")
	return fields
}

// typeName parses a type and returns its name, or the width for bit<W>.
func (r *reader) typeName() string {
	name := r.next()
	if name != "bit" {
		return name
	}
	r.expect("<")
	width := r.next()
	r.expect(">")
	return width
}

func (r *reader) readControl(p *program) {
	name := r.next()
	scope := make(map[string]string) // parameter → type
	r.expect("(")
	for r.err == nil && r.peek() != ")" {
		words := r.readUntil(",", ")")
		if n := len(words); n >= 2 {
			scope[words[n-1]] = words[n-2]
		}
		if r.peek() == "," {
			r.next()
		}
	}
	r.expect(")")
	r.expect("{")
	first := len(p.tables)
	applied := make(map[string]int) // indexed by the name within this control
	for r.err == nil && r.peek() != "}" {
		notes := r.readAnnotations()
		switch r.peek() {
		case "action":
			r.next()
			a := r.readAction(name, notes)
			p.actions[a.name] = a
			p.order = append(p.order, a.name)
		case "table":
			r.next()
			p.tables = append(p.tables, r.readTable(p, name, notes, scope))
		case "apply":
			r.next()
			countApplies(r.readBlock(), applied)
		default:
			r.readUntil(";")
			r.expect(";")
		}
	}
	r.expect("}")
	for _, t := range p.tables[first:] {
		t.applied = applied[strings.TrimPrefix(t.name, name+".")]
	}
}

// countApplies counts the calls of apply for each name.
func countApplies(body []string, applied map[string]int) {
	for i := 0; i+2 < len(body); i++ {
		if body[i+1] == "." && body[i+2] == "apply" {
			applied[body[i]]++
		}
	}
}

func (r *reader) readID(notes []annotation) uint32 {
	text, ok := findAnnotation(notes, "id")
	if !ok {
		r.fail(r.lineNumber(), "a declaration has no @id")
		return 0
	}
	return uint32(r.parseNumber(text))
}

func (r *reader) readAction(control string, notes []annotation) *action {
	a := &action{id: r.readID(notes), name: control + "." + r.next()}
	a.brief, _ = findAnnotation(notes, "brief")
	r.expect("(")
	for r.err == nil && r.peek() != ")" {
		notes := r.readAnnotations()
		p := param{id: r.readID(notes)}
		p.bits = int32(r.parseNumber(r.typeName()))
		p.name = r.next()
		for _, n := range notes {
			if n.name != "id" {
				p.annotations = append(p.annotations, "@"+n.name+"("+n.text+")")
			}
		}
		a.params = append(a.params, p)
		if r.peek() == "," {
			r.next()
		}
	}
	r.expect(")")
	for _, t := range r.readBlock() {
		a.conditional = a.conditional || t == "if" || t == "?"
	}
	return a
}

func (r *reader) readTable(p *program, control string, notes []annotation, scope map[string]string) *table {
	t := &table{id: r.readID(notes), name: control + "." + r.next()}
	t.brief, _ = findAnnotation(notes, "brief")
	r.expect("{")
	for r.err == nil && r.peek() != "}" {
		switch property := r.next(); property {
		case "const":
			t.constant = true
		case "key":
			r.expect("=")
			r.readKeys(p, t, scope)
		case "actions":
			r.expect("=")
			r.actionRefs(control, t)
		case "default_action":
			r.expect("=")
			t.defaultName = control + "." + r.next()
			r.readUntil(";")
			r.expect(";")
		case "size":
			r.expect("=")
			t.size = r.parseNumber(r.next())
			r.expect(";")
		default:
			r.fail(r.lineNumber(), "table property %q is not known here", property)
		}
	}
	r.expect("}")
	return t
}

func (r *reader) readKeys(p *program, t *table, scope map[string]string) {
	r.expect("{")
	for r.err == nil && r.peek() != "}" {
		words := r.readUntil(":")
		r.expect(":")
		k := key{match: strings.ToUpper(r.next()), expression: strings.Join(words, "")}
		notes := r.readAnnotations()
		k.id = r.readID(notes)
		k.name = k.expression
		if name, ok := findAnnotation(notes, "name"); ok {
			k.name = name
		}
		k.bits = r.keyWidth(p, scope, words)
		t.keys = append(t.keys, k)
		r.expect(";")
	}
	r.expect("}")
}

// keyWidth returns the bit width of a path such as hdr.ipv4.src.
func (r *reader) keyWidth(p *program, scope map[string]string, path []string) int32 {
	if len(path) == 0 {
		r.fail(r.lineNumber(), "a key without an expression")
		return 0
	}
	kind := scope[path[0]]
	for i := 2; i < len(path); i += 2 {
		kind = p.fields[kind][path[i]]
	}
	bits, err := strconv.ParseInt(kind, 10, 32)
	if err != nil {
		r.fail(r.lineNumber(), "%s has no known width", strings.Join(path, ""))
	}
	return int32(bits)
}

func (r *reader) actionRefs(control string, t *table) {
	r.expect("{")
	for r.err == nil && r.peek() != "}" {
		_, only := findAnnotation(r.readAnnotations(), "defaultonly")
		t.actions = append(t.actions, actionRef{name: control + "." + r.next(), defaultOnly: only})
		r.expect(";")
	}
	r.expect("}")
}
