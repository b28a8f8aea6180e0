// Package bench runs measurements. A Spec describes the work, and a Plan fixes every seed and setting. A testbed (a
// card or its twin) or a Simulation of networks runs it and reports progress as a stream of Events. A Keeper stores the
// result in the run store, from which the measurement can be run again.
package bench

import (
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/internal/yamlfile"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/pktgen/trace"
)

// ErrSpec is matched by the error for any rejected specification.
var ErrSpec = olaf.NewError(olaf.Usage, "bad specification")

// Spec describes the work on a single-queue testbed, before names and defaults are resolved. Optional fields that are
// zero stand for the defaults in Table1.
type Spec struct {
	Experiment string `json:"experiment"`
	Queue      string `json:"queue"`            // the system under test
	Versus     string `json:"versus,omitempty"` // systems for comparison, separated by commas; may be empty
	// H is the number of updates per sum for systems whose switches add; nil for a cluster's number of workers.
	H *int `json:"h,omitempty"`
	// Accelerator adds the time of the published hardware in front of programs, with room for as many updates as slots.
	Accelerator bool `json:"accelerator,omitempty"`
	// Topology selects where results go: to a server, back to the workers, or both in turn.
	Topology Topology `json:"topology,omitempty"`
	// Loop configures closed-loop hosts; nil for an open loop.
	Loop *Loop `json:"loop,omitempty"`
	// Systems is the set of available systems. It is not in the JSON form, whose readers must set it.
	Systems system.Set `json:"-"`

	Workload pktgen.Burst `json:"workload"`
	// Trace replaces the bursts with a recorded training run; only workers, clusters, updates, size and rates of
	// Workload then apply.
	Trace    *trace.Traffic `json:"trace,omitempty"`
	OutRates []olaf.Rate    `json:"out_rates"`
	Slots    int            `json:"slots"`

	Profile       engine.Profile `json:"profile"` // profile of engine cycles
	DequeueCycles *int           `json:"dequeue_cycles,omitempty"`
	MergeCycles   *int           `json:"merge_cycles,omitempty"`
	Overhead      olaf.Size      `json:"overhead"` // bytes the limiter adds to every frame

	RewardFilter    bool    `json:"reward_filter"`
	RewardThreshold float64 `json:"reward_threshold"`

	// Control is the workers' transmission control, on a device that answers updates; nil to send every update.
	Control *Control `json:"control,omitempty"`

	Runs int    `json:"runs"`
	Seed uint64 `json:"seed"`
}

// maxRuns is the maximum number of runs in a specification. A device's own limits are checked against its registers.
const maxRuns = 100_000

// Validate returns the first error in s, with its field. The error matches ErrSpec, or pktgen.ErrWorkload for the
// traffic.
func (s *Spec) Validate() error {
	if err := s.Workload.Validate(); err != nil {
		return olaf.InField("workload", err)
	}
	if s.Trace != nil {
		if err := checkTrace(s.Trace, &s.Workload); err != nil {
			return olaf.InField("trace", err)
		}
	}
	checks := []struct {
		field string
		bad   bool
		say   string
	}{
		{"out_rates", len(s.OutRates) == 0, "no output rate given"},
		{"slots", s.Loop == nil && (s.Slots < 1 || s.Slots > engine.MaxSlots),
			fmt.Sprintf("%d slots; the queue has 1 to %d", s.Slots, engine.MaxSlots)},
		{"runs", s.Runs < 1 || s.Runs > maxRuns, fmt.Sprintf("%d runs; use 1 to %d", s.Runs, maxRuns)},
	}
	for _, c := range checks {
		if c.bad {
			return olaf.InField(c.field, fmt.Errorf("%w: %s", ErrSpec, c.say))
		}
	}
	if err := s.checkSystems(); err != nil {
		return err
	}
	if _, err := engine.FixedReward(s.RewardThreshold); err != nil {
		return olaf.InField("reward_threshold", fmt.Errorf("%w: %w", ErrSpec, err))
	}
	if s.RewardThreshold != 0 && !s.RewardFilter {
		return olaf.InField("reward_threshold",
			fmt.Errorf("%w: a reward threshold does nothing without the reward filter; switch reward_filter on "+
				"(--reward-filter), or leave the threshold out", ErrSpec))
	}
	if err := s.checkControl(); err != nil {
		return olaf.InField("control", fmt.Errorf("%w: %w", ErrSpec, err))
	}
	return olaf.InField("out_rates", s.checkRates())
}

// checkSystems checks the names of the systems, and the settings that only some systems support.
func (s *Spec) checkSystems() error {
	adds := false
	for i, name := range s.Queues() {
		found, err := s.findSystem(name)
		if err != nil {
			return olaf.InField([]string{"queue", "versus"}[min(i, 1)], err)
		}
		adds = adds || found.Adds()
		if s.Loop == nil {
			continue
		}
		if _, err := s.modeOf(found); err != nil {
			return olaf.InField("loop", err)
		}
	}
	if s.Loop != nil {
		return olaf.InField("loop", s.checkLoop())
	}
	if err := s.checkSegments(); err != nil {
		return olaf.InField("workload.values", err)
	}
	if s.Accelerator {
		if err := s.checkUnit(); err != nil {
			return olaf.InField("accelerator", err)
		}
	}
	if err := s.checkTopology(); err != nil {
		return olaf.InField("topology", err)
	}
	if s.RewardFilter {
		if err := s.checkFilter(); err != nil {
			return olaf.InField("reward_filter", err)
		}
	}
	switch {
	case s.H == nil:
	case !adds:
		return olaf.InField("h", fmt.Errorf("%w: h is for systems whose switches sum, not for %s", ErrSpec,
			strings.Join(s.Queues(), ", ")))
	case *s.H < 1 || *s.H > MaxH:
		return olaf.InField("h", fmt.Errorf("%w: h is %d; use 1 to %d", ErrSpec, *s.H, MaxH))
	}
	return nil
}

// accelerator returns the accelerator to simulate. It belongs to the first system that has one. It returns nil if no
// system has an accelerator.
func (s *Spec) accelerator() *aggregator.Unit {
	if !s.Accelerator {
		return nil
	}
	systems, err := s.findSystems()
	if err != nil {
		return nil
	}
	for _, found := range systems {
		if found.Unit != nil {
			unit := *found.Unit
			unit.Room = s.Slots
			return &unit
		}
	}
	return nil
}

// checkSegments rejects updates that take several frames if a queue treats each frame as an update.
func (s *Spec) checkSegments() error {
	if s.Workload.Segments() == 1 {
		return nil
	}
	if s.Trace != nil {
		return fmt.Errorf("%w: an update of a trace is one frame; leave the number of values out", ErrSpec)
	}
	systems, err := s.findSystems()
	if err != nil {
		return err
	}
	for _, found := range systems {
		if kind, _ := engine.FindDiscipline(found.Discipline); kind.Merges {
			return fmt.Errorf("%w: the queue of %s takes a frame for a whole update and merges those of a "+
				"cluster; %d values in frames of %v are %d frames. Systems that queue or add up frames by "+
				"themselves take them, such as %s --versus fifo",
				ErrSpec, found.Name, s.Workload.Values, s.Workload.Size, s.Workload.Segments(),
				strings.Join(s.Systems.Adding().Names(), ", "))
		}
	}
	return nil
}

// checkUnit rejects a request for an accelerator if no system has one, or if the profile models a card without one.
func (s *Spec) checkUnit() error {
	switch {
	case s.accelerator() == nil:
		return fmt.Errorf("%w: no accelerator of %s is known", ErrSpec, strings.Join(s.Queues(), ", "))
	case s.Profile.ReadPorts() > 0:
		return fmt.Errorf("%w: profile %s is the logic of a card that has no such accelerator", ErrSpec, s.Profile)
	}
	return nil
}

// Opening returns the options for opening the testbed that the specification needs. If access lists no programs, the
// systems' programs are added.
func (s *Spec) Opening(access testbed.Access) testbed.OpenOptions {
	if access.Programs == nil {
		access.Programs = s.Systems.Programs()
	}
	return testbed.OpenOptions{Access: access, Frame: s.Workload.Size, ReadPorts: s.Profile.ReadPorts(), Unit: s.accelerator()}
}

// checkFilter rejects a reward filter if no system supports it.
func (s *Spec) checkFilter() error {
	systems, err := s.findSystems()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(systems, (*system.System).FiltersReward) {
		return nil
	}
	return fmt.Errorf("%w: only queues that merge have a reward filter, unlike %s; leave it out, or compare with %s",
		ErrSpec, strings.Join(s.Queues(), ", "), strings.Join(s.Systems.Where((*system.System).FiltersReward).Names(), ", "))
}

// MaxH is the maximum number of updates that a frame can contain.
const MaxH = math.MaxUint16

// findSystem returns the named system and checks that it can run with these settings.
func (s *Spec) findSystem(name string) (*system.System, error) {
	all := s.Systems
	found, err := all.Find(name)
	switch {
	case len(all) == 0:
		return nil, fmt.Errorf("%w: %s can't be found, because no systems were given", ErrSpec, name)
	case err != nil:
		return nil, fmt.Errorf("%w: unknown system %q; use one of %s, or, without others, one that runs on "+
			"servers: %s", ErrSpec, name, strings.Join(all.ForBench().Names(), ", "),
			strings.Join(all.Where(func(s *system.System) bool { return s.OnServers }).Names(), ", "))
	case s.Loop != nil && !found.CanLoop():
		return nil, fmt.Errorf("%w: workers of %s do not wait beside a device; use one of %v here", ErrSpec, name,
			all.LoopedOnes().Names())
	// in a sweep's cell, where another system decides that workers do not wait
	case s.Loop == nil && !found.Open() && found.CanLoop() && name == s.Queue:
		return nil, fmt.Errorf("%w: workers of %s wait for answers, and those of a sweep of benches do not; use "+
			"some of %v there, or let workers wait in networks: olafctl simulate --preset isw-lab --sweep system=%s,…",
			ErrSpec, name, all.Open().Names(), name)
	case s.Loop == nil && !found.Open() && found.CanLoop():
		return nil, fmt.Errorf("%w: workers of %s wait for answers, and those of %s do not; one bench has one kind",
			ErrSpec, name, s.Queue)
	case s.Loop == nil && !found.Open():
		return nil, fmt.Errorf("%w: workers of %s wait for answers, so that 'olafctl simulate' runs it; use one "+
			"of %v here", ErrSpec, name, all.ForBench().Names())
	}
	return found, nil
}

// findSystems returns the systems to run. The first is the system under test.
func (s *Spec) findSystems() ([]*system.System, error) {
	var all []*system.System
	for _, name := range s.Queues() {
		found, err := s.findSystem(name)
		if err != nil {
			return nil, err
		}
		all = append(all, found)
	}
	return all, nil
}

// Frame returns the frame format of the system under test, or nil if it uses OLAF's format.
func (s *Spec) Frame() *frame.Format {
	found, err := s.findSystem(s.Queue)
	switch {
	case err != nil:
		return nil
	case s.Loop != nil:
		parts, err := s.buildParts(found)
		if err != nil {
			return nil
		}
		return parts.Frame
	}
	return found.Frame
}

// sumSize returns the number of updates per sum.
func (s *Spec) sumSize() int {
	if s.H != nil {
		return *s.H
	}
	return max(1, s.Workload.Workers/s.Workload.Clusters)
}

func (s *Spec) checkRates() error {
	for i, r := range s.OutRates {
		if slices.Contains(s.OutRates[:i], r) {
			return fmt.Errorf("%w: output rate %v is given twice", ErrSpec, r)
		}
		if r <= 0 || r > s.Workload.LineRate {
			return fmt.Errorf("%w: output rate %v must be above 0 and at most the line rate %v", ErrSpec, r,
				s.Workload.LineRate)
		}
	}
	return nil
}

// Queues returns the names of the systems to run, without duplicates. The first is the system under test.
func (s *Spec) Queues() []string {
	names := []string{s.Queue}
	if s.Versus == "" {
		return names
	}
	for _, name := range strings.Split(s.Versus, ",") {
		if name = strings.TrimSpace(name); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// CheckVersus returns a description of the first error in a list of systems to compare with, or "". It is not used for
// stored specifications, in which duplicates are ignored.
func CheckVersus(queue, versus string) string {
	names := strings.Split(versus, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	for i, name := range names {
		switch {
		case name == "":
			return "a name is missing"
		case name == queue:
			return name + " cannot be compared with itself"
		case slices.Contains(names[:i], name):
			return name + " is given twice"
		}
	}
	return ""
}

// resolveOutput returns the serialiser of a system's output at the given rate. It uses the profile's cycles, unless the
// specification overrides the cycles of the system under test.
func (s *Spec) resolveOutput(of *system.System, rate olaf.Rate) (engine.Output, error) {
	out, err := s.Profile.Output(of.Discipline, rate)
	if err != nil {
		return out, olaf.InField("profile", fmt.Errorf("%w: %w", ErrSpec, err))
	}
	out.OverheadBytes = int(s.Overhead)
	if of.Name == s.Queue {
		if s.DequeueCycles != nil {
			out.DequeueCycles = *s.DequeueCycles
		}
		if s.MergeCycles != nil {
			out.MergeCycles = *s.MergeCycles
		}
	}
	if err := out.Validate(); err != nil {
		return out, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	return out, nil
}

// SingleConfig returns a specification that runs only one of the systems in s, at one output rate. With the same seeds,
// it produces the same numbers as that configuration in s. Settings that cannot affect them are dropped, so that equal
// configurations have equal specifications.
func (s *Spec) SingleConfig(name string, rate olaf.Rate) (Spec, error) {
	of, err := s.findSystem(name)
	if err != nil {
		return Spec{}, err
	}
	if !slices.Contains(s.Queues(), name) {
		return Spec{}, fmt.Errorf("%w: %s is not among %v", ErrSpec, name, s.Queues())
	}
	if s.Topology == ToBoth {
		return Spec{}, olaf.InField("topology",
			fmt.Errorf("%w: a cell has one topology; ask for %s or %s", ErrSpec, ToServer, ToWorkers))
	}
	one := *s
	one.Experiment, one.Runs, one.OutRates = benchName, 1, []olaf.Rate{rate}
	if one.Queue, one.Versus = name, ""; name != s.Queue {
		one.DequeueCycles, one.MergeCycles = nil, nil // only for the system under test
	}
	if !of.Adds() {
		one.H = nil
	}
	if !of.FiltersReward() {
		one.RewardFilter, one.RewardThreshold = false, 0
	}
	return one, nil
}

// benchName is the experiment name in specifications that do not belong to an experiment.
const benchName = "bench"

// DefaultSpec returns the specification of the lab testbed, with traffic that was fitted to the OLAF paper. systems
// contains the available systems.
func DefaultSpec(systems system.Set) Spec {
	return Spec{
		Experiment: benchName,
		Queue:      "olaf", Versus: "fifo", Systems: systems,
		Workload: pktgen.Table1Burst(),
		OutRates: []olaf.Rate{40 * olaf.Gbps, 20 * olaf.Gbps},
		Slots:    8,
		Profile:  engine.Calibrated,
		Runs:     30,
		Seed:     1,
	}
}

// SpecSchema is the schema of the specification files that ParseFile reads.
const SpecSchema = "olafctl.bench-spec/v1"

// File is a parsed specification file. Its fields are those of the plan in the JSON output. Missing fields have the
// values of DefaultSpec.
type File struct {
	Name   string `json:"-"` // path, for messages
	Schema string `json:"schema"`
	System string `json:"system,omitempty"` // synonym for queue, as on the command line
	Spec
	// Expect contains expectations for the results, in the syntax of package expect.
	Expect []string `json:"expect,omitempty"`
	lines  yamlfile.Lines
}

// NoVersus is written for an empty Versus in files and on the command line.
const NoVersus = "none"

// ParseFile parses a specification file. systems contains the available systems. name is used in messages, and paths in
// the file are relative to its folder. ParseFile reports all unknown fields, wrong types and bad units at once, with
// their lines. Whether the fields fit together is checked when the specification is used; Locate then adds the line to
// the error.
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

// closeLoop sets the defaults for missing fields of a closed loop.
func (f *File) closeLoop(format yamlfile.Format, text []byte) error {
	again := File{Spec: Spec{Loop: DefaultLoop()}}
	if err := format.Decode(text, &again); err != nil {
		return err
	}
	f.Loop = again.Loop
	f.MakeLoop(func(field string) bool { _, given := f.lines[field]; return given }, false)
	return f.Locate(f.checkLoopOptions())
}

// findTrace loads the trace that the file names and then applies the file's settings to it again.
func (f *File) findTrace(format yamlfile.Format, text []byte) error {
	path := f.Trace.Name
	if !strings.HasPrefix(path, trace.Builtin) && !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(f.Name), path)
	}
	t, err := trace.NewTraffic(path, &f.Workload)
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
		f.Workload.Workers, f.Workload.Clusters = f.Workload.Workers*t.Frames(), f.Workload.Clusters*t.Frames()
	}
	f.Trace = t
	return nil
}

// Locate adds the line number to an error about a field in the specification, if the file sets that field.
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

// Text returns f in the format that ParseFile reads.
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

// FileSchema returns the JSON schema of specification files, for editors. systems contains the systems that the schema
// allows.
func FileSchema(systems system.Set) ([]byte, error) {
	narrowed := func(name string) map[string]any { return ofField(systems, name) }
	schema := yamlfile.Schema{ID: SpecSchema, Title: "olafctl bench", Field: narrowed,
		Texts: map[reflect.Type]map[string]any{
			reflect.TypeFor[system.Range](): yamlfile.QuantitySchema("the first and the last slot of a job, such as 0-63",
				"^[0-9]+-[0-9]+$"),
			reflect.TypeFor[tc.LawName]():    yamlfile.ChoiceSchema(tc.LawNames()...),
			reflect.TypeFor[tc.Slope]():      yamlfile.ChoiceSchema(tc.Slopes()...),
			reflect.TypeFor[tc.AckContent](): yamlfile.ChoiceSchema(tc.AckContents()...),
			reflect.TypeFor[netsim.Count]():  yamlfile.ChoiceSchema(netsim.CountNames()...),
		}}
	return schema.Generate(reflect.TypeFor[File]())
}

// ofField returns the JSON schema of a field whose Go type accepts invalid values, such as a field for the name of a
// system.
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
