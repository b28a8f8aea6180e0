package job

import (
	"encoding/json"
	"reflect"

	"go.yaml.in/yaml/v4"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/yamlfile"
)

// fileSchema is the schema of the job files that ParseFile reads.
const fileSchema = "olafctl.job-spec/v1"

// ErrFile is matched by all errors about a rejected job file. The message names the file and the line.
var ErrFile = olaf.NewError(olaf.Usage, "bad job")

// File is a parsed job file. It names a preset and changes some of its options, which the caller interprets.
type File struct {
	Name    string   `json:"-"` // path, for error messages
	Schema  string   `json:"schema"`
	Preset  string   `json:"preset"`
	Options Options  `json:"options,omitempty"`
	Runs    *int     `json:"runs,omitempty"`
	Seed    *uint64  `json:"seed,omitempty"` // seed of the first run
	Expect  []string `json:"expect,omitempty"`
	lines   yamlfile.Lines
}

// Options maps flag names to their values.
type Options map[string]string

// MarshalJSON writes numbers and booleans unquoted, so that a file need not quote them.
func (o Options) MarshalJSON() ([]byte, error) {
	values := map[string]any{}
	for name, value := range o {
		values[name] = value
		if plain := json.RawMessage(value); json.Valid(plain) {
			values[name] = plain
		}
	}
	return json.Marshal(values)
}

// IsFile reports whether text is a job file, judging by its schema.
func IsFile(text []byte) bool {
	var head struct {
		Schema string `yaml:"schema"`
	}
	return yaml.Unmarshal(text, &head) == nil && head.Schema == fileSchema
}

// ParseFile parses a job file; name is used in messages only. Errors match ErrFile and name the line.
func ParseFile(name string, text []byte) (*File, error) {
	f := &File{Name: name}
	format := yamlfile.Format{
		Name: "job", Hint: "'olafctl simulate --preset isw-lab -o yaml' prints one", Schema: fileSchema,
		Fail: func(line int, what string) error {
			return &yamlfile.Error{Kind: ErrFile, File: name, Line: line, What: what}
		},
	}
	var err error
	f.lines, err = format.DecodeWithLines(text, f)
	return f, err
}

// In adds the line of a field in the file, such as options.workers, to err.
func (f *File) In(field string, err error) error {
	if err == nil {
		return nil
	}
	return &yamlfile.Error{Kind: ErrFile, File: f.Name, Line: f.lines.LineOf(field), What: err.Error()}
}

// Text returns the job in the format of a job file.
func (f *File) Text() ([]byte, error) {
	f.Schema = fileSchema
	return yamlfile.Marshal(f)
}

// JSONSchema returns the JSON schema of job files, for editors. presets are the presets that have jobs, and options
// maps each option to the schema of its values.
func JSONSchema(presets []string, options map[string]any) ([]byte, error) {
	s := yamlfile.Schema{
		ID: fileSchema, Title: "olafctl job", Required: []string{"schema", "preset"},
		Texts: map[reflect.Type]map[string]any{
			reflect.TypeFor[Options](): {"type": "object", "additionalProperties": false, "properties": options},
		},
		Field: func(name string) map[string]any {
			switch name {
			case "schema":
				return map[string]any{"const": fileSchema}
			case "preset":
				return yamlfile.ChoiceSchema(presets...)
			}
			return nil
		},
	}
	return s.Generate(reflect.TypeFor[File]())
}
