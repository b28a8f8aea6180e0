package p4ctl

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/internal/yamldoc"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// tablesSchema is the schema name of files with desired tables.
const tablesSchema = "olafctl.tables/v1"

// fileError describes a fault in a file with desired tables. It matches ErrTables.
type fileError struct {
	Line  int    // line number from 1; 0 if the fault concerns the whole file
	Field string // a path such as workers[2].cluster
	Text  string
}

// Error returns the fault with its line and field.
func (e *fileError) Error() string {
	var b strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	if e.Field != "" {
		fmt.Fprintf(&b, "%s: ", e.Field)
	}
	return b.String() + e.Text
}

func (e *fileError) Unwrap() error { return ErrTables }

// ParseTables reads desired tables from YAML (or JSON, which is YAML too):
//
//	schema: olafctl.tables/v1
//	servers: [192.168.0.1]
//	workers:
//	  - {address: 10.0.0.1, cluster: 0, worker: 0}
//	clusters:                       # clusters and groups may both be omitted; every
//	  - {cluster: 0, group: 1}      # cluster then has a group of all its workers
//	groups:                         # behind multicast_port (default 1)
//	  - {id: 1, members: [{port: 1, instance: 0}]}
//	programs:                       # tables of known switch programs, with the names
//	  isw.members:                  # of their fields; may be omitted
//	    - {job: 0, worker: 0, port: 0}
//
// For unknown fields and values out of range, it returns a *fileError with the line and the field.
func ParseTables(text []byte, known ...program.Description) (Tables, error) {
	root, second, err := yamldoc.FindRoot(text)
	switch {
	case err != nil:
		return Tables{}, &fileError{Text: "not valid YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	case second > 0:
		return Tables{}, &fileError{Line: second, Text: "a second document begins here; a tables file must contain " +
			"only one"}
	case root == nil:
		return Tables{}, &fileError{Text: "the file is empty; start with schema: " + tablesSchema}
	}
	f := tablesFile{port: 1, lines: make(map[string]int)}
	err = readFields(root, "", map[string]visitor{
		"schema":         f.readSchema,
		"servers":        listOf(f.readServer),
		"workers":        listOf(f.readWorker),
		"clusters":       listOf(f.readCluster),
		"groups":         listOf(f.readGroup),
		"programs":       f.programTables(known),
		"multicast_port": func(n *yaml.Node, at string) error { return readUint32(n, at, &f.port) },
	}, "schema")
	if err != nil {
		return Tables{}, err
	}
	if !hasKey(root, "clusters", "groups") {
		f.tables = f.tables.WithGroups(f.port)
	}
	if err := f.tables.Validate(); err != nil {
		return Tables{}, f.locateFault(err)
	}
	return f.tables, nil
}

// tablesFile collects the contents of a file and the line number of each element.
type tablesFile struct {
	tables Tables
	port   uint32
	lines  map[string]int // by path, such as workers[2]
}

// locateFault adds the line number of the faulty element to a *Fault that Validate returned.
func (f *tablesFile) locateFault(err error) error {
	var fault *Fault
	if !errors.As(err, &fault) {
		return err
	}
	element := fmt.Sprintf("%s[%d]", fault.List, fault.Index)
	return &fileError{Line: f.lines[element], Field: element + "." + fault.Field, Text: fault.Text}
}

// visitor reads a value. at is the path of the value in the file.
type visitor func(n *yaml.Node, at string) error

// readFields reads a mapping. It rejects unknown keys and missing required keys.
func readFields(n *yaml.Node, at string, known map[string]visitor, required ...string) error {
	n = resolveAlias(n)
	if n.Kind != yaml.MappingNode {
		return &fileError{n.Line, at, "want fields, got " + kindText(n)}
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		path := strings.TrimPrefix(at+"."+name, ".")
		read, ok := known[name]
		switch {
		case !ok:
			return &fileError{n.Content[i].Line, path, "unknown field"}
		case seen[name]:
			return &fileError{n.Content[i].Line, path, "appears twice"}
		}
		seen[name] = true
		if err := read(n.Content[i+1], path); err != nil {
			return err
		}
	}
	for _, name := range required {
		if !seen[name] {
			return &fileError{n.Line, strings.TrimPrefix(at+"."+name, "."), "is missing"}
		}
	}
	return nil
}

// listOf returns a visitor that calls element for each element of a sequence. It reads null as an empty list.
func listOf(element visitor) visitor {
	return func(n *yaml.Node, at string) error {
		n = resolveAlias(n)
		if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
			return nil
		}
		if n.Kind != yaml.SequenceNode {
			return &fileError{n.Line, at, "want a list, got " + kindText(n)}
		}
		for i, e := range n.Content {
			if err := element(e, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
		return nil
	}
}

// resolveAlias returns the node to which an alias refers, or n if it is not an alias.
func resolveAlias(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

func kindText(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "fields"
	case yaml.SequenceNode:
		return "a list"
	}
	return strconv.Quote(n.Value)
}

func hasKey(n *yaml.Node, names ...string) bool {
	n = resolveAlias(n)
	for i := 0; i < len(n.Content); i += 2 {
		if slices.Contains(names, n.Content[i].Value) {
			return true
		}
	}
	return false
}

// readUnsigned reads a number from 0 to 2^bits-1.
func readUnsigned(n *yaml.Node, at string, bits int) (uint64, error) {
	n = resolveAlias(n)
	v, err := olaf.ParseWord(n.Value, bits)
	if err != nil || n.Kind != yaml.ScalarNode {
		return 0, &fileError{n.Line, at, fmt.Sprintf("want a number from 0 to %d, got %s", uint64(1)<<bits-1, kindText(n))}
	}
	return v, nil
}

func readUint16[T ~uint16](n *yaml.Node, at string, to *T) error {
	v, err := readUnsigned(n, at, 16)
	*to = T(v)
	return err
}

func readUint32(n *yaml.Node, at string, to *uint32) error {
	v, err := readUnsigned(n, at, 32)
	*to = uint32(v)
	return err
}

func readAddress(n *yaml.Node, at string, to *netip.Addr) error {
	n = resolveAlias(n)
	a, err := netip.ParseAddr(n.Value)
	if err != nil || n.Kind != yaml.ScalarNode || !a.Is4() {
		return &fileError{n.Line, at, "want an IPv4 address, got " + kindText(n)}
	}
	*to = a
	return nil
}

func (f *tablesFile) readSchema(n *yaml.Node, at string) error {
	if n = resolveAlias(n); n.Value != tablesSchema {
		return &fileError{n.Line, at, fmt.Sprintf("want %s, got %s", tablesSchema, kindText(n))}
	}
	return nil
}

func (f *tablesFile) readServer(n *yaml.Node, at string) error {
	var a netip.Addr
	f.lines[at] = n.Line
	if err := readAddress(n, at, &a); err != nil {
		return err
	}
	f.tables.Servers = append(f.tables.Servers, a)
	return nil
}

func (f *tablesFile) readWorker(n *yaml.Node, at string) error {
	var w Worker
	f.lines[at] = n.Line
	err := readFields(n, at, map[string]visitor{
		"address": func(n *yaml.Node, at string) error { return readAddress(n, at, &w.Address) },
		"cluster": func(n *yaml.Node, at string) error { return readUint16(n, at, &w.Cluster) },
		"worker":  func(n *yaml.Node, at string) error { return readUint16(n, at, &w.ID) },
	}, "address", "cluster", "worker")
	f.tables.Workers = append(f.tables.Workers, w)
	return err
}

func (f *tablesFile) readCluster(n *yaml.Node, at string) error {
	var c Cluster
	f.lines[at] = n.Line
	err := readFields(n, at, map[string]visitor{
		"cluster": func(n *yaml.Node, at string) error { return readUint16(n, at, &c.ID) },
		"group":   func(n *yaml.Node, at string) error { return readUint32(n, at, &c.Group) },
	}, "cluster", "group")
	f.tables.Clusters = append(f.tables.Clusters, c)
	return err
}

func (f *tablesFile) readGroup(n *yaml.Node, at string) error {
	var g Group
	f.lines[at] = n.Line
	member := func(n *yaml.Node, at string) error {
		var m Member
		err := readFields(n, at, map[string]visitor{
			"port":     func(n *yaml.Node, at string) error { return readUint32(n, at, &m.Port) },
			"instance": func(n *yaml.Node, at string) error { return readUint16(n, at, &m.Instance) },
		}, "port", "instance")
		g.Members = append(g.Members, m)
		return err
	}
	err := readFields(n, at, map[string]visitor{
		"id":      func(n *yaml.Node, at string) error { return readUint32(n, at, &g.ID) },
		"members": listOf(member),
	}, "id", "members")
	f.tables.Groups = append(f.tables.Groups, g)
	return err
}

// programTables returns a visitor for the tables of the known switch programs, by name.
func (f *tablesFile) programTables(known []program.Description) visitor {
	return func(n *yaml.Node, at string) error {
		tables := map[string]visitor{}
		for _, t := range p4.TablesOf(known) {
			tables[t.Name] = listOf(func(n *yaml.Node, at string) error {
				return f.readEntry(n, strings.TrimPrefix(at,
					"programs."), t)
			})
		}
		return readFields(n, at, tables)
	}
}

func (f *tablesFile) readEntry(n *yaml.Node, at string, t p4.Table) error {
	e := Entry{Table: t, Key: make([]uint32, len(t.Key)), Params: make([]uint32, len(t.Params))}
	f.lines[at] = n.Line
	known := map[string]visitor{}
	var required []string
	for _, part := range []struct {
		fields []program.Field
		values []uint32
	}{{t.Key, e.Key}, {t.Params, e.Params}} {
		for i, field := range part.fields {
			required = append(required, field.Name)
			known[field.Name] = func(n *yaml.Node, at string) error {
				v, err := readUnsigned(n, at, field.Bits)
				part.values[i] = uint32(v)
				return err
			}
		}
	}
	f.tables.Entries = append(f.tables.Entries, e)
	return readFields(n, at, known, required...)
}

// AppendYAML appends the tables to b in the form that ParseTables reads. The order is canonical.
func (t Tables) AppendYAML(b []byte) []byte {
	t = t.Canonical()
	b = append(b, "schema: "+tablesSchema+"\n"...)
	b = appendList(b, "servers", t.Servers, func(a netip.Addr) string { return a.String() })
	b = appendList(b, "workers", t.Workers, func(w Worker) string {
		return fmt.Sprintf("{address: %s, cluster: %d, worker: %d}", w.Address, w.Cluster, w.ID)
	})
	b = appendList(b, "clusters", t.Clusters, func(c Cluster) string {
		return fmt.Sprintf("{cluster: %d, group: %d}", c.ID, c.Group)
	})
	b = appendList(b, "groups", t.Groups, func(g Group) string {
		members := make([]string, len(g.Members))
		for i, m := range g.Members {
			members[i] = fmt.Sprintf("{port: %d, instance: %d}", m.Port, m.Instance)
		}
		return fmt.Sprintf("{id: %d, members: [%s]}", g.ID, strings.Join(members, ", "))
	})
	return t.appendPrograms(b)
}

// appendPrograms appends the tables of switch programs to b, if they have entries.
func (t Tables) appendPrograms(b []byte) []byte {
	if len(t.Entries) > 0 {
		b = append(b, "programs:\n"...)
	}
	for i := range t.Entries {
		e := &t.Entries[i]
		if i == 0 || t.Entries[i-1].Table.ID != e.Table.ID {
			b = append(b, "  "+e.Table.Name+":\n"...)
		}
		b = append(b, "    - {"...)
		b = appendFields(b, slices.Concat(e.Table.Key, e.Table.Params), slices.Concat(e.Key, e.Params))
		b = append(b, "}\n"...)
	}
	return b
}

func appendFields(b []byte, fields []program.Field, values []uint32) []byte {
	for i, v := range values {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = fmt.Appendf(b, "%s: %d", fields[i].Name, v)
	}
	return b
}

func appendList[T any](b []byte, name string, elements []T, text func(T) string) []byte {
	if len(elements) == 0 {
		return append(b, name+": []\n"...)
	}
	b = append(b, name+":\n"...)
	for _, e := range elements {
		b = append(b, "  - "+text(e)+"\n"...)
	}
	return b
}
