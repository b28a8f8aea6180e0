package job

import (
	"encoding/json"
	"reflect"

	"go.yaml.in/yaml/v4"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/yamlfile"
)

// FileSchema names the file format that ParseFile reads.
const FileSchema = "olafctl.job-spec/v1"

// ErrFile is the kind of every refused file; the message names file and line.
var ErrFile = olaf.NewError(olaf.Usage, "bad job")

// File is jobs on a preset's cluster as people write them. What its options mean is said by whoever reads them.
type File struct {
	Name    string   `json:"-"` // where it was read, for messages
	Schema  string   `json:"schema"`
	Preset  string   `json:"preset"`
	Options Options  `json:"options,omitempty"`
	Runs    *int     `json:"runs,omitempty"`
	Seed    *uint64  `json:"seed,omitempty"` // of the first run
	Expect  []string `json:"expect,omitempty"`
	lines   yamlfile.Lines
}

// Options are values by the names of flags.
type Options map[string]string

// MarshalJSON writes numbers, true and false as such, so that a file need not quote them.
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

// IsFile says whether a text calls itself such a file.
func IsFile(text []byte) bool {
	var head struct {
		Schema string `yaml:"schema"`
	}
	return yaml.Unmarshal(text, &head) == nil && head.Schema == FileSchema
}

// ParseFile reads a file; name is for messages. Errors match ErrFile and say in which line.
func ParseFile(name string, text []byte) (*File, error) {
	f := &File{Name: name}
	format := yamlfile.Format{
		Name: "job", Hint: "'olafctl simulate --preset isw-lab -o yaml' prints one", Schema: FileSchema,
		Fail: func(line int, what string) error {
			return &yamlfile.Error{Kind: ErrFile, File: name, Line: line, What: what}
		},
	}
	var err error
	f.lines, err = format.DecodeWithLines(text, f)
	return f, err
}

// In puts an error about a field, such as options.workers, into its line.
func (f *File) In(field string, err error) error {
	if err == nil {
		return nil
	}
	return &yamlfile.Error{Kind: ErrFile, File: f.Name, Line: f.lines.LineOf(field), What: err.Error()}
}

// Text writes it as people write files.
func (f *File) Text() ([]byte, error) {
	f.Schema = FileSchema
	return yamlfile.Marshal(f)
}

// JSONSchema is the JSON schema of such a file, for editors: on which presets there are jobs, and what JSON schema the values of each
// option have.
func JSONSchema(presets []string, options map[string]any) ([]byte, error) {
	s := yamlfile.Schema{
		ID: FileSchema, Title: "olafctl job", Required: []string{"schema", "preset"},
		Texts: map[reflect.Type]map[string]any{
			reflect.TypeFor[Options](): {"type": "object", "additionalProperties": false, "properties": options},
		},
		Field: func(name string) map[string]any {
			switch name {
			case "schema":
				return map[string]any{"const": FileSchema}
			case "preset":
				return yamlfile.ChoiceSchema(presets...)
			}
			return nil
		},
	}
	return s.Generate(reflect.TypeFor[File]())
}
