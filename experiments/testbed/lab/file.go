package lab

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/internal/yamlfile"
)

// FileSchema is the file format that Parse reads. It also reads the first version, which has no hosts and roles.
const (
	FileSchema  = "olafctl.testbed-spec/v2"
	firstSchema = "olafctl.testbed-spec/v1"
)

// ErrFile is matched by errors in a testbed file.
var ErrFile = olaf.NewError(olaf.Usage, "bad testbed file")

// File is the content of a testbed file. It describes a tree of aggregating servers, a queue between workers and a
// server, or nodes with links and devices.
type File struct {
	yamlfile.Pos `yaml:"-"`
	Path         string   `yaml:"-"` // its path, for messages
	Schema       string   `yaml:"schema"`
	Name         string   `yaml:"name"`
	Job          Job      `yaml:"job"`
	Tree         *Tree    `yaml:"tree"`
	Queue        *Queue   `yaml:"queue"`
	Nodes        []Node   `yaml:"nodes"`
	Links        []Link   `yaml:"links"`
	Devices      []Device `yaml:"devices"`
	// Since the second version.
	Hosts map[string]Host `yaml:"hosts"`
	Roles *Roles          `yaml:"roles"`
	Clock *Clock          `yaml:"clock"`
}

// Job describes the job for which the testbed aggregates. Resolve replaces zero values by defaults.
type Job struct {
	yamlfile.Pos `yaml:"-"`
	ID           int `yaml:"id"`
	Lanes        int `yaml:"lanes"`     // values in a full packet
	Fragments    int `yaml:"fragments"` // packets of a model
	Group        int `yaml:"group"`     // packets of a child that are acknowledged together
}

// Tree describes an aggregation tree by two numbers.
type Tree struct {
	yamlfile.Pos `yaml:"-"`
	Workers      int       `yaml:"workers"`
	Children     int       `yaml:"children"` // maximum per node
	MTU          int       `yaml:"mtu"`
	Mode         string    `yaml:"mode"`
	Arithmetic   string    `yaml:"arithmetic"`
	Rate         olaf.Rate `yaml:"rate"` // rate of every aggregator
}

// Node is a host or a switch. It is a separate namespace or, if it has an interface, the device behind that interface.
type Node struct {
	yamlfile.Pos `yaml:"-"`
	Name         string `yaml:"name"`
	Role         string `yaml:"role"`
	Interface    string `yaml:"interface"`
	Address      string `yaml:"address"` // address of the device behind the interface
	MAC          string `yaml:"mac"`
	Virtual      bool   `yaml:"virtual"` // not a network card; may be removed with the testbed
	// For a worker below a switch: its cluster, its rate, and the threshold of its transmission control.
	Cluster int           `yaml:"cluster"`
	Rate    olaf.Rate     `yaml:"rate"`
	TC      olaf.Duration `yaml:"tc"`
	Host    string        `yaml:"host"` // the machine behind the interface
}

// Link is a cable from a node to its parent. It is virtual or, if it names interfaces, connects two interfaces of this
// machine.
type Link struct {
	yamlfile.Pos `yaml:"-"`
	Child        string   `yaml:"child"`
	Parent       string   `yaml:"parent"`
	MTU          int      `yaml:"mtu"`
	Interfaces   []string `yaml:"interfaces"` // the child's end and the parent's
	Virtual      bool     `yaml:"virtual"`    // not network cards; may be removed with the testbed
	// For a link between roles, instead of all other fields.
	From string `yaml:"from"`
	To   string `yaml:"to"`
}

// Device is a program in the kernel at a node.
type Device struct {
	yamlfile.Pos `yaml:"-"`
	Node         string    `yaml:"node"`
	Program      string    `yaml:"program"`
	Mode         string    `yaml:"mode"`
	Slots        int       `yaml:"slots"` // slots in a queue
	Arithmetic   string    `yaml:"arithmetic"`
	Rate         olaf.Rate `yaml:"rate"` // capacity of the node's link, divided among its children, or of a switch's output
}

// The words in a file.
const (
	Worker     = "worker"     // sends vectors
	Aggregator = "aggregator" // sums its children's packets in the kernel
	Switch     = "switch"     // queues updates for its output in the kernel
	Server     = "server"     // receives the sums

	Native  = "native"  // in the driver
	Generic = "generic" // in the network stack, with every driver
	User    = "user"    // in this process, on the aggregator's socket; testbed files do not have it

	Saturating = "saturating"
	Wrapping   = "wrapping"
)

// programs lists the programs for aggregators. The first is the default.
var programs = []string{"xagg"}

// Parse parses a testbed file. path is used in messages. Unknown fields, wrong types and duplicate fields are errors
// and are reported with their lines. Resolve checks whether the content is valid. The error matches ErrFile.
func Parse(path string, text []byte) (*File, error) {
	f := &File{Path: path}
	format := yamlfile.Format{
		Name: "testbed", Hint: "docs/reference/testbed-file.md has whole ones; the shortest is 'tree: {workers: 4, children: 4}'",
		Fail: func(line int, what string) error {
			return &yamlfile.Error{Kind: ErrFile, File: path, Line: line, What: what}
		},
	}
	if err := format.Decode(text, f); err != nil {
		return nil, err
	}
	return f, f.checkSchema(format.Fail)
}

// checkSchema rejects files with another schema, and fields that the file's version does not have.
func (f *File) checkSchema(fail func(int, string) error) error {
	switch f.Schema {
	case "", FileSchema:
		return nil
	case firstSchema:
	default:
		return fail(f.LineOf("schema"), fmt.Sprintf("schema %q is not %s", f.Schema, FileSchema))
	}
	newer := func(at yamlfile.Pos, key string) error {
		return fail(at.LineOf(key), fmt.Sprintf("%s belongs to schema: %s; this file is of %s", key, FileSchema, firstSchema))
	}
	for _, key := range []string{"hosts", "roles", "clock"} {
		if f.Has(key) {
			return newer(f.Pos, key)
		}
	}
	for i := range f.Nodes {
		if f.Nodes[i].Has("host") {
			return newer(f.Nodes[i].Pos, "host")
		}
	}
	return nil
}

// JSONSchema returns the JSON schema of testbed files, for editors.
func JSONSchema() ([]byte, error) {
	s := yamlfile.Schema{ID: FileSchema, Title: "olafctl testbed", Field: func(name string) map[string]any {
		switch name {
		case "schema":
			return yamlfile.ChoiceSchema(FileSchema, firstSchema)
		case "by":
			return yamlfile.ChoiceSchema(ClockMethods...)
		case "stamps":
			return yamlfile.ChoiceSchema(live.Choices()...)
		case "role":
			return yamlfile.ChoiceSchema(Worker, Aggregator, Switch, Server)
		case "mode":
			return yamlfile.ChoiceSchema(Native, Generic)
		case "arithmetic":
			return yamlfile.ChoiceSchema(Saturating, Wrapping)
		case "program":
			return yamlfile.ChoiceSchema(append(slices.Clone(programs), systems()...)...)
		case "system":
			return yamlfile.ChoiceSchema(systems()...)
		}
		return nil
	}}
	return s.Generate(reflect.TypeFor[File]())
}
