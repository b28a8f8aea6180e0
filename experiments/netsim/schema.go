package netsim

import (
	"reflect"

	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/internal/yamlfile"
)

// TopologyJSONSchema returns the JSON schema of a topology file, for editors, with the systems of a set.
func TopologyJSONSchema(systems system.Set) ([]byte, error) {
	narrowed := func(name string) map[string]any { return ofField(systems, name) }
	schema := yamlfile.Schema{
		ID: TopologySchema, Title: "olafctl topology", Texts: texts, Field: narrowed,
		Required: []string{"duration", "queue", "update", "switches", "servers", "links", "clusters"},
	}
	return schema.Generate(reflect.TypeFor[Topology]())
}

// texts describes types with a text form.
var texts = map[reflect.Type]map[string]any{
	reflect.TypeFor[Span]():          yamlfile.QuantitySchema("offsets: 54ms (from 0), 10ms..20ms, or =5ms for one value", ``),
	reflect.TypeFor[Percent]():       yamlfile.QuantitySchema("a share: 10%", `^[0-9.]+%$`),
	reflect.TypeFor[Timing]():        yamlfile.ChoiceSchema(timings...),
	reflect.TypeFor[Count]():         yamlfile.ChoiceSchema(counting...),
	reflect.TypeFor[Acks]():          yamlfile.ChoiceSchema(acks...),
	reflect.TypeFor[LinkState]():     yamlfile.ChoiceSchema(linkStates...),
	reflect.TypeFor[Arrivals]():      yamlfile.ChoiceSchema(arrivals...),
	reflect.TypeFor[tc.Slope]():      yamlfile.ChoiceSchema(tc.Slopes()...),
	reflect.TypeFor[tc.LawName]():    yamlfile.ChoiceSchema(tc.LawNames()...),
	reflect.TypeFor[tc.AckContent](): yamlfile.ChoiceSchema(tc.AckContents()...),
	reflect.TypeFor[Names](): {"description": "one name or a list", "oneOf": []any{
		map[string]any{"type": "string"}, map[string]any{"type": "array", "items": map[string]any{"type": "string"}}}},
}

// ofField narrows the fields whose type is plain text.
func ofField(systems system.Set, name string) map[string]any {
	switch name {
	case "queue":
		return yamlfile.ChoiceSchema(engine.DisciplineNames()...)
	case "system":
		return yamlfile.ChoiceSchema(systems.Rising().Names()...)
	case "program":
		return yamlfile.ChoiceSchema(systems.Adding().Names()...)
	case "profile":
		return yamlfile.ChoiceSchema(engine.ProfileNames()...)
	case "schema":
		return map[string]any{"const": TopologySchema}
	}
	return nil
}
