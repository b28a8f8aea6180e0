package netsim

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/experiments/yamlfile"
	"github.com/olafctl/olaf/fpga/engine"
)

// Schema is the JSON schema of a topology file, for editors. It is made from the types that Parse fills, so that it
// cannot disagree with them.
func Schema() ([]byte, error) {
	s := schemaOf(reflect.TypeFor[Topology]())
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["$id"] = TopologySchema
	s["title"] = "olafctl topology"
	s["required"] = []string{"duration", "queue", "update", "switches", "servers", "links", "clusters"}
	return json.MarshalIndent(s, "", "  ")
}

// texts are the types that are written as text with a form of their own.
var texts = map[reflect.Type]map[string]any{
	reflect.TypeFor[olaf.Rate]():     quantity("a rate with its unit: 60G, 2.5Gbps, 848kbps", `^[0-9.]+ *([TGMkK]?bps|[TGMkK])$`),
	reflect.TypeFor[olaf.Size]():     quantity("a size with its unit: 256B, 2048b, 9kB", `^[0-9.]+ *(b|B|[kK]B|MB|GB|KiB|MiB|GiB)$`),
	reflect.TypeFor[olaf.Duration](): quantity("a duration with its unit: 4ns, 1.5us, 100ms, 60s, 2m", `^[0-9.]+ *(ps|ns|us|µs|μs|ms|s|m|min|h)$`),
	reflect.TypeFor[Span]():          quantity("offsets: 54ms (from 0), 10ms..20ms, or =5ms for one value", ``),
	reflect.TypeFor[Percent]():       quantity("a share: 10%", `^[0-9.]+%$`),
	reflect.TypeFor[Timing]():        choice(Exact, NS3),
	reflect.TypeFor[Count]():         choice(CountClusters, CountSenders, CountInside),
	reflect.TypeFor[Acks]():          choice(AcksMulticast, AcksNone),
	reflect.TypeFor[LinkState]():     choice(LinkUp, LinkDown),
	reflect.TypeFor[Arrivals]():      choice(Periodic, Poisson),
	reflect.TypeFor[tc.Slope]():      choice(tc.Urgency, tc.Fairness),
	reflect.TypeFor[Names](): {"description": "one name or a list", "oneOf": []any{
		map[string]any{"type": "string"}, map[string]any{"type": "array", "items": map[string]any{"type": "string"}}}},
}

func quantity(description, pattern string) map[string]any {
	s := map[string]any{"type": "string", "description": description}
	if pattern != "" {
		s["pattern"] = pattern
	}
	return s
}

func choice[T ~string](values ...T) map[string]any { return map[string]any{"enum": values} }

func schemaOf(t reflect.Type) map[string]any {
	if s, ok := texts[t]; ok {
		return s
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		panic("netsim: " + t.String() + " has a text form that the schema does not know")
	}
	switch t.Kind() {
	case reflect.Struct:
		properties := map[string]any{}
		for i := range t.NumField() {
			f := t.Field(i)
			if name := yamlfile.FieldName(f); name != "" && name != "-" {
				properties[name] = schemaOfField(f, name)
			}
		}
		return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	}
	return map[string]any{"type": "string"}
}

func schemaOfField(f reflect.StructField, name string) map[string]any {
	if name == "queue" {
		return map[string]any{"enum": engine.Names()}
	}
	if name == "profile" {
		return choice(engine.Ideal, engine.Calibrated)
	}
	if name == "schema" {
		return map[string]any{"const": TopologySchema}
	}
	return schemaOf(f.Type)
}

// Dot draws t for Graphviz.
func (t *Topology) Dot() string {
	var b strings.Builder
	quote := func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
	}
	b.WriteString("graph topology {\n  rankdir=LR;\n  node [fontname=\"sans-serif\"];\n")
	for i := range t.Clusters {
		k := &t.Clusters[i]
		id := quote("clusters " + k.ids())
		b.WriteString("  " + id + " [shape=folder, label=" + quote(k.label()) + "];\n")
		for _, at := range k.At {
			b.WriteString("  " + id + " -- " + quote(at) + ";\n")
		}
	}
	for i := range t.Switches {
		s := &t.Switches[i]
		queue := s.Queue
		if queue == "" {
			queue = t.Queue
		}
		b.WriteString("  " + quote(s.Name) + " [shape=box, label=" + quote(s.Name+"\n"+queue+", "+olaf.Plural(s.Slots, "slot")) + "];\n")
	}
	for i := range t.Servers {
		b.WriteString("  " + quote(t.Servers[i].Name) + " [shape=doublecircle];\n")
	}
	for i := range t.Links {
		l := &t.Links[i]
		b.WriteString("  " + quote(l.From) + " -- " + quote(l.To) + " [label=" + quote(l.Rate.String()+"\n"+l.Delay.String()) + "];\n")
	}
	b.WriteString("}\n")
	return b.String()
}
