package netsim

import (
	"reflect"

	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/yamlfile"
	"github.com/olafctl/olaf/fpga/engine"
)

// Schema is the JSON schema of a topology file, for editors, with systems of a set.
func Schema(systems system.Set) ([]byte, error) {
	narrowed := func(name string) map[string]any { return ofField(systems, name) }
	schema := yamlfile.Schema{
		ID: TopologySchema, Title: "olafctl topology", Texts: texts, Field: narrowed,
		Required: []string{"duration", "queue", "update", "switches", "servers", "links", "clusters"},
	}
	return schema.Of(reflect.TypeFor[Topology]())
}

// texts are the types that are written as text with a form of their own.
var texts = map[reflect.Type]map[string]any{
	reflect.TypeFor[Span]():      yamlfile.Quantity("offsets: 54ms (from 0), 10ms..20ms, or =5ms for one value", ``),
	reflect.TypeFor[Percent]():   yamlfile.Quantity("a share: 10%", `^[0-9.]+%$`),
	reflect.TypeFor[Timing]():    yamlfile.Choice(timings...),
	reflect.TypeFor[Count]():     yamlfile.Choice(counting...),
	reflect.TypeFor[Acks]():      yamlfile.Choice(acks...),
	reflect.TypeFor[LinkState](): yamlfile.Choice(linkStates...),
	reflect.TypeFor[Arrivals]():  yamlfile.Choice(arrivals...),
	reflect.TypeFor[tc.Slope]():  yamlfile.Choice(tc.Slopes()...),
	reflect.TypeFor[Names](): {"description": "one name or a list", "oneOf": []any{
		map[string]any{"type": "string"}, map[string]any{"type": "array", "items": map[string]any{"type": "string"}}}},
}

// ofField narrows the fields whose type is a plain text.
func ofField(systems system.Set, name string) map[string]any {
	switch name {
	case "queue":
		return yamlfile.Choice(engine.DisciplineNames()...)
	case "system":
		return yamlfile.Choice(systems.Rising().Names()...)
	case "program":
		return yamlfile.Choice(systems.Adding().Names()...)
	case "profile":
		return yamlfile.Choice(engine.ProfileNames()...)
	case "schema":
		return map[string]any{"const": TopologySchema}
	}
	return nil
}
