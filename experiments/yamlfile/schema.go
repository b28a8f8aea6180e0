package yamlfile

import (
	"encoding"
	"encoding/json"
	"reflect"

	"github.com/olafctl/olaf"
)

// Schema makes the JSON schema of a kind of file, for editors. It is made from the types that Decode fills, so that the two
// cannot disagree.
type Schema struct {
	ID, Title string
	Required  []string
	// Texts are the types that are written as text with a form of their own, beside the quantities that all files have.
	Texts map[reflect.Type]map[string]any
	// Field narrows what a field of a common type takes; nil for no more than its type says.
	Field func(name string) map[string]any
}

// Of is the schema of a file whose document is a T.
func (s Schema) Of(t reflect.Type) ([]byte, error) {
	doc := s.of(t)
	doc["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	doc["$id"], doc["title"] = s.ID, s.Title
	if len(s.Required) > 0 {
		doc["required"] = s.Required
	}
	return json.MarshalIndent(doc, "", "  ")
}

// quantities are the texts with a unit.
var quantities = map[reflect.Type]map[string]any{
	reflect.TypeFor[olaf.Rate]():     Quantity("a rate with its unit: 60G, 2.5Gbps, 848kbps", `^[0-9.]+ *([TGMkK]?(bps|b/s|bit/s)|[TGMkK](bit)?)$`),
	reflect.TypeFor[olaf.Size]():     Quantity("a size with its unit: 256B, 2048b, 9kB", `^[0-9.]+ *(b|B|[kK]B|MB|GB|KiB|MiB|GiB)$`),
	reflect.TypeFor[olaf.Duration](): Quantity("a duration with its unit: 4ns, 1.5us, 100ms, 60s, 2m", `^[0-9.]+ *(ps|ns|us|µs|μs|ms|s|m|min|h)$`),
}

// Quantity is a text of a form.
func Quantity(description, pattern string) map[string]any {
	s := map[string]any{"type": "string", "description": description}
	if pattern != "" {
		s["pattern"] = pattern
	}
	return s
}

// Choice is one of some texts.
func Choice[T ~string](values ...T) map[string]any { return map[string]any{"enum": values} }

func (s Schema) of(t reflect.Type) map[string]any {
	if text, ok := s.Texts[t]; ok {
		return text
	}
	if text, ok := quantities[t]; ok {
		return text
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		panic("yamlfile: " + t.String() + " has a text form that the schema does not know")
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Struct:
		properties := map[string]any{}
		for _, f := range Fields(t) {
			properties[FieldName(f)] = s.ofField(f)
		}
		return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": s.of(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	}
	return map[string]any{"type": "string"}
}

func (s Schema) ofField(f reflect.StructField) map[string]any {
	if s.Field != nil {
		if narrowed := s.Field(FieldName(f)); narrowed != nil {
			return narrowed
		}
	}
	return s.of(f.Type)
}
