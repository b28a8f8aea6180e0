package agent

import (
	"cmp"
	"fmt"
	"slices"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// schema is a pushed P4Info that was checked against the device, with its objects indexed by ID.
type schema struct {
	tables  map[uint32]*configv1.Table
	actions map[uint32]*configv1.Action
	// Limits on multicast groups, from the platform properties.
	groups, replicas int
	added            []p4.Table // tables of switch programs
}

// build describes what a device supports: the blocks with their sizes, and the tables of switch programs.
type build struct {
	p4.Profile
	programs []program.Description
}

func (o *Options) build() build { return build{o.Profile, o.Programs} }

// requestedPrograms returns the programs whose tables occur in a P4Info.
func (b *build) requestedPrograms(info *configv1.P4Info) []program.Description {
	return slices.DeleteFunc(slices.Clone(b.programs), func(d program.Description) bool {
		return !slices.ContainsFunc(p4.TablesOf([]program.Description{d}), func(t p4.Table) bool {
			return slices.ContainsFunc(info.Tables,
				func(given *configv1.Table) bool { return given.GetPreamble().GetId() == t.ID })
		})
	})
}

// newSchema checks that info describes the device's blocks, possibly with tables of switch programs, and does not
// exceed the build's limits. Sizes may be smaller, so that a twin can run with the limits of a lab. The documentation
// may differ.
func newSchema(info *configv1.P4Info, built build) (*schema, error) {
	if info == nil {
		return nil, status.Error(codes.InvalidArgument, "the pipeline config has no p4info")
	}
	programs := built.requestedPrograms(info)
	ours := built.Info(programs...)
	s := &schema{tables: make(map[uint32]*configv1.Table), actions: make(map[uint32]*configv1.Action),
		added: p4.TablesOf(programs)}
	for _, t := range info.Tables {
		s.tables[t.GetPreamble().GetId()] = t
	}
	for _, a := range info.Actions {
		s.actions[a.GetPreamble().GetId()] = a
	}
	if err := s.checkObjects(info, ours); err != nil {
		return nil, err
	}
	limits := ours.PkgInfo.PlatformProperties
	asked := info.GetPkgInfo().GetPlatformProperties()
	var err error
	if s.groups, err = checkLimit("multicast groups", asked.GetMulticastGroupTableSize(),
		limits.MulticastGroupTableSize, built.Profile); err != nil {
		return nil, err
	}
	s.replicas, err = checkLimit("multicast replicas", asked.GetMulticastGroupTableTotalReplicas(),
		limits.MulticastGroupTableTotalReplicas, built.Profile)
	return s, err
}

func checkLimit(what string, asked, built int32, p p4.Profile) (int, error) {
	if asked < 0 || asked > built {
		return 0, status.Errorf(codes.InvalidArgument, "p4info asks for %d %s; profile %s has %d", asked, what, p.Name, built)
	}
	asked = cmp.Or(asked, built)
	return int(asked), nil
}

// checkObjects compares tables and actions with ours and rejects all that differ.
func (s *schema) checkObjects(info, ours *configv1.P4Info) error {
	if len(s.tables) != len(info.Tables) || len(s.actions) != len(info.Actions) {
		return status.Error(codes.InvalidArgument, "p4info uses an id twice")
	}
	for _, want := range ours.Tables {
		got, ok := s.tables[want.Preamble.Id]
		if !ok {
			return status.Errorf(codes.InvalidArgument, "p4info lacks table %s (id 0x%08x)", want.Preamble.Name,
				want.Preamble.Id)
		}
		if got.Size < 1 || got.Size > want.Size {
			return status.Errorf(codes.InvalidArgument,
				"p4info asks for %d entries in %s; use 1 to %d, the size that the device was built with", got.Size,
				want.Preamble.Name, want.Size)
		}
		if !proto.Equal(tableShape(got), tableShape(want)) {
			return status.Errorf(codes.InvalidArgument,
				"table %s differs from the device's in its name, keys or actions", want.Preamble.Name)
		}
	}
	for _, want := range ours.Actions {
		got, ok := s.actions[want.Preamble.Id]
		if !ok {
			return status.Errorf(codes.InvalidArgument, "p4info lacks action %s (id 0x%08x)", want.Preamble.Name,
				want.Preamble.Id)
		}
		if !proto.Equal(actionShape(got), actionShape(want)) {
			return status.Errorf(codes.InvalidArgument, "action %s differs from the device's in its name or parameters",
				want.Preamble.Name)
		}
	}
	if len(info.Tables) != len(ours.Tables) || len(info.Actions) != len(ours.Actions) {
		return status.Error(codes.InvalidArgument, "p4info has tables or actions that the device lacks")
	}
	if n := len(info.ActionProfiles) + len(info.Counters) + len(info.DirectCounters) + len(info.Meters) +
		len(info.DirectMeters) +
		len(info.ControllerPacketMetadata) + len(info.ValueSets) + len(info.Registers) + len(info.Digests) +
		len(info.Externs); n > 0 {
		return status.Errorf(codes.InvalidArgument, "p4info has %d objects other than tables and actions; the device "+
			"has none", n)
	}
	return nil
}

// tableShape returns the part of a table that must agree with ours: identity, keys, and actions in any order, without
// documentation and size.
func tableShape(t *configv1.Table) *configv1.Table {
	shape := proto.Clone(t).(*configv1.Table)
	shape.Size = 0
	shape.Preamble = preambleShape(shape.Preamble)
	for _, f := range shape.MatchFields {
		f.Doc, f.Annotations, f.AnnotationLocations, f.StructuredAnnotations = nil, nil, nil, nil
	}
	for _, a := range shape.ActionRefs {
		a.Annotations, a.AnnotationLocations, a.StructuredAnnotations = nil, nil, nil
	}
	// p4c prints a constant default also as the initial one, which adds no information.
	if shape.InitialDefaultAction.GetActionId() == shape.ConstDefaultActionId {
		shape.InitialDefaultAction = nil
	}
	slices.SortFunc(shape.ActionRefs,
		func(a, b *configv1.ActionRef) int { return int(int64(a.GetId()) - int64(b.GetId())) })
	return shape
}

func actionShape(a *configv1.Action) *configv1.Action {
	shape := proto.Clone(a).(*configv1.Action)
	shape.Preamble = preambleShape(shape.Preamble)
	for _, p := range shape.Params {
		p.Doc, p.Annotations, p.AnnotationLocations, p.StructuredAnnotations = nil, nil, nil, nil
	}
	return shape
}

func preambleShape(p *configv1.Preamble) *configv1.Preamble {
	return &configv1.Preamble{Id: p.GetId(), Name: p.GetName()}
}

func (s *schema) table(id uint32) (*configv1.Table, error) {
	t, ok := s.tables[id]
	if !ok {
		return nil, status.Errorf(codes.InvalidArgument, "unknown table id 0x%08x", id)
	}
	return t, nil
}

// findByID returns the object with an ID, or nil if there is none.
func findByID[E interface{ GetId() uint32 }](all []E, id uint32) (found E) {
	if i := slices.IndexFunc(all, func(e E) bool { return e.GetId() == id }); i >= 0 {
		return all[i]
	}
	return found
}

func capacity(t *configv1.Table) int { return int(t.Size) }

func nameOf(p interface{ GetPreamble() *configv1.Preamble }) string {
	return fmt.Sprintf("%q", p.GetPreamble().GetName())
}
