package bench

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/internal/yamlfile"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/pktgen/trace"
)

// SpecSchema is the schema of the files that ParseFile reads.
const SpecSchema = "olafctl.bench-spec/v1"

// File is a specification file. Its fields are those of the plan in the JSON output; missing ones are as in
// DefaultSpec.
type File struct {
	Name   string `json:"-"` // path, for messages
	Schema string `json:"schema"`
	System string `json:"system,omitempty"` // synonym for queue, as on the command line
	Spec
	// Expect contains expectations for the results, in the syntax of package expect.
	Expect []string `json:"expect,omitempty"`
	lines  yamlfile.Lines
}

// NoVersus is the text for an empty Versus in a file and on the command line.
const NoVersus = "none"

// ParseFile parses a specification for systems of a set; name is for messages, and paths in the file are relative to
// its folder. It rejects unknown fields, wrong types and bad units with their lines, all at once. The combination of
// fields is checked when the specification is used, and Locate adds the line.
func ParseFile(systems system.Set, name string, text []byte) (*File, error) {
	f := &File{Name: name, Spec: DefaultSpec(systems)}
	format := yamlfile.Format{Name: "bench", Hint: "'olafctl bench -o yaml' prints one to start from",
		Schema: SpecSchema, Fail: f.makeError}
	var err error
	if f.lines, err = format.DecodeWithLines(text, f); err != nil {
		return nil, err
	}
	switch {
	case f.Experiment != benchName:
		return nil, f.makeError(f.lines.LineOf("experiment"),
			fmt.Sprintf("a file describes a bench, not the experiment %q; run it with 'olafctl experiment run "+
				"%[1]s', or remove the line", f.Experiment))
	case f.System != "" && f.lines["queue"] > 0 && f.Queue != f.System:
		return nil, f.makeError(f.lines.LineOf("system"),
			fmt.Sprintf("system is %q and queue is %q; they mean the same, so give only one", f.System, f.Queue))
	}
	if f.System != "" {
		f.Queue, f.lines["queue"] = f.System, max(f.lines["queue"], f.lines["system"])
	}
	_, given := f.lines["versus"]
	_, whole := f.lines["experiment"] // copied from a document, which omits empty fields
	versus := f.Versus
	if f.Versus == NoVersus || whole && !given {
		f.Versus = ""
	}
	if wrong := CheckVersus(f.Queue, versus); given && !whole && wrong != "" {
		return nil, f.makeError(f.lines.LineOf("versus"),
			fmt.Sprintf("versus: %s; leave it out, or use %s", wrong, NoVersus))
	}
	switch {
	case f.Trace != nil:
		err = f.findTrace(format, text)
	case f.IsLoop():
		err = f.closeLoop(format, text)
	}
	return f, err
}

func (f *File) makeError(line int, what string) error {
	return &yamlfile.Error{Kind: ErrSpec, File: f.Name, Line: line, What: what}
}

// closeLoop sets defaults for a loop's missing fields.
func (f *File) closeLoop(format yamlfile.Format, text []byte) error {
	again := File{Spec: Spec{Loop: DefaultLoop()}}
	if err := format.Decode(text, &again); err != nil {
		return err
	}
	f.Loop = again.Loop
	f.MakeLoop(func(field string) bool { _, given := f.lines[field]; return given }, false)
	return f.Locate(f.checkLoopOptions())
}

// findTrace loads the trace and reapplies the file's settings to it.
func (f *File) findTrace(format yamlfile.Format, text []byte) error {
	path := f.Trace.Name
	if !strings.HasPrefix(path, trace.Builtin) && !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(f.Name), path)
	}
	t, err := NewTraceTraffic(path, &f.Workload)
	if err != nil {
		return f.makeError(f.lines.LineOf("trace.name"), err.Error())
	}
	again := File{Spec: Spec{Trace: t}}
	digest, updates := t.Digest, t.Updates
	if err := format.Decode(text, &again); err != nil {
		return err
	}
	if t.Digest != digest || t.Updates != updates {
		return f.makeError(f.lines.LineOf("trace.sha256"),
			fmt.Sprintf("%s is now another trace: its digest is %s", path, digest))
	}
	if t.Name = path; updates > 0 {
		f.Runs = 1 // every run would be the same
		f.Workload.Workers, f.Workload.Clusters = f.Workload.Workers*t.frames(), f.Workload.Clusters*t.frames()
	}
	f.Trace = t
	return nil
}

// Locate adds the line to an error about a field of the specification, if the file sets that field.
func (f *File) Locate(err error) error {
	field := olaf.FieldOf(err)
	if f == nil || field == "" {
		return err
	}
	line := f.lines.LineOf(field)
	if line == 0 {
		return err
	}
	return f.makeError(line, err.Error())
}

// Text returns f in the form that ParseFile reads.
func (f File) Text() ([]byte, error) {
	f.Schema, f.System = SpecSchema, f.Queue
	if f.Versus == "" || f.Versus == f.Queue { // the bare system under test has no comparison
		f.Versus = NoVersus
	}
	if f.Trace != nil && !strings.HasPrefix(f.Trace.Name, trace.Builtin) {
		path, err := filepath.Abs(f.Trace.Name) // the new file's folder is unknown
		if err != nil {
			return nil, err
		}
		t := *f.Trace
		t.Name, f.Trace = path, &t
	}
	return yamlfile.Marshal(f, "experiment", "queue")
}

// FileSchema returns the JSON schema of such a file, for editors, with systems of a set.
func FileSchema(systems system.Set) ([]byte, error) {
	narrowed := func(name string) map[string]any { return ofField(systems, name) }
	schema := yamlfile.Schema{ID: SpecSchema, Title: "olafctl bench", Field: narrowed,
		Texts: map[reflect.Type]map[string]any{
			reflect.TypeFor[system.Range](): yamlfile.QuantitySchema("the first and the last slot of a job, such as 0-63",
				"^[0-9]+-[0-9]+$"),
		}}
	return schema.Generate(reflect.TypeFor[File]())
}

// ofField narrows the fields whose type is plain text, with the systems of a set.
func ofField(systems system.Set, name string) map[string]any {
	benched := systems.ForBench().Names()
	switch name {
	case "schema":
		return map[string]any{"const": SpecSchema}
	case "experiment":
		return map[string]any{"const": benchName}
	case "system", "queue":
		return yamlfile.ChoiceSchema(benched...)
	case "versus":
		one := "(" + strings.Join(benched, "|") + ")"
		return map[string]any{"type": "string", "pattern": "^(" + NoVersus + "|" + one + "(,\\s*" + one + ")*)$"}
	case "mode":
		return yamlfile.ChoiceSchema(systems.LoopedOnes().ModeNames()...)
	case "topology":
		return yamlfile.ChoiceSchema(ListTopologies()...)
	case "profile":
		return yamlfile.ChoiceSchema(engine.ProfileNames()...)
	case "burst_dist":
		return yamlfile.ChoiceSchema(pktgen.Fixed, pktgen.Geometric)
	case "gap_dist":
		return yamlfile.ChoiceSchema(pktgen.Fixed, pktgen.Exponential)
	case "averaging":
		return yamlfile.ChoiceSchema(trace.Stationary, trace.WholeRun)
	}
	return nil
}
