package main

import (
	"bytes"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	simulatecmd "github.com/olafctl/olaf/cmd/olafctl/simulate"
)

// TestJobSchema checks printed job files against the schema for editors, which rejects unknown options.
func TestJobSchema(t *testing.T) {
	ask := func(args ...string) []byte {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), testEnvironment(&stdout, &stderr), append([]string{"simulate"}, args...)); code != 0 {
			t.Fatalf("%v: exit code %d\n%s", args, code, &stderr)
		}
		return stdout.Bytes()
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(ask("--schema")))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("job.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("job.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, preset := range simulatecmd.ClusterNames() {
		var file any
		if err := yaml.Unmarshal(ask("--preset", preset, "--runs", "2", "-o", "yaml"), &file); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(file); err != nil {
			t.Errorf("%s: %v", preset, err)
		}
		in(t, file, "options").(map[string]any)["wrokers"] = 4
		if schema.Validate(file) == nil {
			t.Errorf("%s: an option that nobody has is taken", preset)
		}
	}
}
