package bench

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/yamlfile"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/pktgen/trace"
)

// SpecSchema names the file format that ParseFile reads.
const SpecSchema = "olafctl.bench-spec/v1"

// File is a specification as people write it. Its fields are those of the plan in a document, and what it leaves out is as
// in DefaultSpec.
type File struct {
	Name   string `json:"-"` // where it was read, for messages
	Schema string `json:"schema"`
	System string `json:"system,omitempty"` // the same as queue, as on the command line
	Spec
	// Expect are rules that what is measured must meet, as package expect reads them.
	Expect []string `json:"expect,omitempty"`
	lines  yamlfile.Lines
}

// Nobody in a file and on the command line is a Versus that is empty.
const Nobody = "none"

// ParseFile reads a specification for systems of a set; name is for messages, and relative paths in the file are relative to its folder. Unknown
// fields, wrong types and bad units are refused with their line, all of them at once; what the fields mean together is
// checked when the specification is used, and Locate says where.
func ParseFile(systems system.Set, name string, text []byte) (*File, error) {
	f := &File{Name: name, Spec: DefaultSpec(systems)}
	format := yamlfile.Format{Name: "bench", Hint: "'olafctl bench -o yaml' prints one to start from", Schema: SpecSchema, Fail: f.fail}
	var err error
	if f.lines, err = format.DecodeWithLines(text, f); err != nil {
		return nil, err
	}
	switch {
	case f.Experiment != benchName:
		return nil, f.fail(f.lines.Of("experiment"), fmt.Sprintf("a file describes a bench, not the experiment %q; 'olafctl experiment run %[1]s' runs that one, or leave the line out", f.Experiment))
	case f.System != "" && f.lines["queue"] > 0 && f.Queue != f.System:
		return nil, f.fail(f.lines.Of("system"), fmt.Sprintf("system says %q and queue %q; they mean the same, give one of them", f.System, f.Queue))
	}
	if f.System != "" {
		f.Queue, f.lines["queue"] = f.System, max(f.lines["queue"], f.lines["system"])
	}
	_, given := f.lines["versus"]
	_, whole := f.lines["experiment"] // out of a document, which leaves out what is empty
	versus := f.Versus
	if f.Versus == Nobody || whole && !given {
		f.Versus = ""
	}
	if wrong := Misnamed(f.Queue, versus); given && !whole && wrong != "" {
		return nil, f.fail(f.lines.Of("versus"), fmt.Sprintf("versus: %s; leave it out, or use %s", wrong, Nobody))
	}
	switch {
	case f.Trace != nil:
		err = f.findTrace(format, text)
	case f.Loops():
		err = f.closeLoop(format, text)
	}
	return f, err
}

func (f *File) fail(line int, what string) error {
	return &yamlfile.Error{Kind: ErrSpec, File: f.Name, Line: line, What: what}
}

// closeLoop gives what the file leaves out of a loop what is usual.
func (f *File) closeLoop(format yamlfile.Format, text []byte) error {
	again := File{Spec: Spec{Loop: DefaultLoop()}}
	if err := format.Decode(text, &again); err != nil {
		return err
	}
	f.Loop = again.Loop
	f.Close(func(field string) bool { _, given := f.lines[field]; return given }, false)
	return f.Locate(f.unheard())
}

// findTrace loads the trace, and says of it again what the file says.
func (f *File) findTrace(format yamlfile.Format, text []byte) error {
	path := f.Trace.Name
	if !strings.HasPrefix(path, trace.Builtin) && !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(f.Name), path)
	}
	t, err := NewTraceTraffic(path, &f.Workload)
	if err != nil {
		return f.fail(f.lines.Of("trace.name"), err.Error())
	}
	again := File{Spec: Spec{Trace: t}}
	digest, updates := t.Digest, t.Updates
	if err := format.Decode(text, &again); err != nil {
		return err
	}
	if t.Digest != digest || t.Updates != updates {
		return f.fail(f.lines.Of("trace.sha256"), fmt.Sprintf("%s is another trace now: its digest is %s", path, digest))
	}
	if t.Name = path; updates > 0 {
		f.Runs = 1 // every run would be the same
	}
	f.Trace = t
	return nil
}

// Locate puts an error about a field of the specification into the line that gives it. What the file does not say, it is not
// blamed for.
func (f *File) Locate(err error) error {
	field := olaf.FieldOf(err)
	if f == nil || field == "" {
		return err
	}
	line := f.lines.Of(field)
	if line == 0 {
		return err
	}
	return f.fail(line, err.Error())
}

// Text writes f as ParseFile reads it back.
func (f File) Text() ([]byte, error) {
	f.Schema, f.System = SpecSchema, f.Queue
	if f.Versus == "" || f.Versus == f.Queue { // as the bare system under test is compared with nobody
		f.Versus = Nobody
	}
	if f.Trace != nil && !strings.HasPrefix(f.Trace.Name, trace.Builtin) {
		path, err := filepath.Abs(f.Trace.Name) // wherever the file is going to be
		if err != nil {
			return nil, err
		}
		t := *f.Trace
		t.Name, f.Trace = path, &t
	}
	return yamlfile.Marshal(f, "experiment", "queue")
}

// FileSchema is the JSON schema of such a file, for editors, with systems of a set.
func FileSchema(systems system.Set) ([]byte, error) {
	narrowed := func(name string) map[string]any { return ofField(systems, name) }
	schema := yamlfile.Schema{ID: SpecSchema, Title: "olafctl bench", Field: narrowed, Texts: map[reflect.Type]map[string]any{
		reflect.TypeFor[system.Range](): yamlfile.Quantity("the first and the last slot of a job, such as 0-63", "^[0-9]+-[0-9]+$"),
	}}
	return schema.Of(reflect.TypeFor[File]())
}

// ofField narrows the fields whose type is a plain text, with the systems of a set that it may name.
func ofField(systems system.Set, name string) map[string]any {
	benched := systems.Benched().Names()
	switch name {
	case "schema":
		return map[string]any{"const": SpecSchema}
	case "experiment":
		return map[string]any{"const": benchName}
	case "system", "queue":
		return yamlfile.Choice(benched...)
	case "versus":
		one := "(" + strings.Join(benched, "|") + ")"
		return map[string]any{"type": "string", "pattern": "^(" + Nobody + "|" + one + "(,\\s*" + one + ")*)$"}
	case "mode":
		return yamlfile.Choice(systems.Looped().ModeNames()...)
	case "topology":
		return yamlfile.Choice(Topologies()...)
	case "profile":
		return yamlfile.Choice(engine.ProfileNames()...)
	case "burst_dist":
		return yamlfile.Choice(pktgen.Fixed, pktgen.Geometric)
	case "gap_dist":
		return yamlfile.Choice(pktgen.Fixed, pktgen.Exponential)
	case "averaging":
		return yamlfile.Choice(trace.Stationary, trace.WholeRun)
	}
	return nil
}
