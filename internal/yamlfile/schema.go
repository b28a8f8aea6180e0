package yamlfile

import (
	"encoding"
	"encoding/json"
	"reflect"

	"github.com/olafctl/olaf"
)

// Schema generates the JSON schema for a kind of file, which editors can use. It uses the same types as Decode, which
// ensures that the two agree.
type Schema struct {
	ID, Title string
	Required  []string
	// Texts describes types with a text form, in addition to the quantities common to all files.
	Texts map[reflect.Type]map[string]any
	// Field returns constraints for the field with this name, whose type is common to several fields. If Field or its
	// result is nil, only the type applies.
	Field func(name string) map[string]any
}

// Generate returns the schema for files that contain a document of type t.
func (s Schema) Generate(t reflect.Type) ([]byte, error) {
	doc := s.ofType(t)
	doc["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	doc["$id"], doc["title"] = s.ID, s.Title
	if len(s.Required) > 0 {
		doc["required"] = s.Required
	}
	return json.MarshalIndent(doc, "", "  ")
}

// quantities maps each numeric type with a unit to the JSON schema of its text form.
var quantities = map[reflect.Type]map[string]any{
	reflect.TypeFor[olaf.Rate](): QuantitySchema("a rate with its unit: 60G, 2.5Gbps, 848kbps",
		`^[0-9.]+ *([TGMkK]?(bps|b/s|bit/s)|[TGMkK](bit)?)$`),
	reflect.TypeFor[olaf.Size](): QuantitySchema("a size with its unit: 256B, 2048b, 9kB",
		`^[0-9.]+ *(b|B|[kK]B|MB|GB|KiB|MiB|GiB)$`),
	reflect.TypeFor[olaf.Duration](): QuantitySchema("a duration with its unit: 4ns, 1.5us, 100ms, 60s, 2m",
		`^[0-9.]+ *(ps|ns|us|µs|μs|ms|s|m|min|h)$`),
}

// QuantitySchema returns the JSON schema for a text that matches a pattern.
func QuantitySchema(description, pattern string) map[string]any {
	s := map[string]any{"type": "string", "description": description}
	if pattern != "" {
		s["pattern"] = pattern
	}
	return s
}

// ChoiceSchema returns the JSON schema for a text that must be one of the values.
func ChoiceSchema[T ~string](values ...T) map[string]any { return map[string]any{"enum": values} }

func (s Schema) ofType(t reflect.Type) map[string]any {
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
		return s.ofType(t.Elem())
	case reflect.Struct:
		properties := map[string]any{}
		for _, f := range Fields(t) {
			properties[fieldName(f)] = s.ofField(f)
		}
		return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": s.ofType(t.Elem())}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": s.ofType(t.Elem())}
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
		if narrowed := s.Field(fieldName(f)); narrowed != nil {
			return narrowed
		}
	}
	return s.ofType(f.Type)
}
