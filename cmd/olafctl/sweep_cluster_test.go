package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/olafctl/olaf/experiments/sweep"
)

var kubernetes = flag.String("kubernetes", "", "folder api/openapi-spec/v3 of Kubernetes' sources, whose schemas what is written for it is held against")

// exported is what 'sweep export --k8s' writes of a sweep, by kind; the sweep reads a specification beside it.
func exported(t *testing.T, name string) (objects map[string]map[string]any, spec string) {
	t.Helper()
	dir := t.TempDir()
	spec = "command: bench\nfile: spec.yaml\noptions: {updates: 20, versus: none, out-rate: 20G}\nsweep: [slots=2..16:x2]\nruns: 2\n"
	for file, text := range map[string]string{name: spec, "spec.yaml": "schema: olafctl.bench-spec/v1\nworkload: {workers: 9}\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	step{"sweep export DIR/" + name + " --k8s DIR/job.yml --shards 3 --store DIR/store", 0, "", ""}.run(t, strings.NewReplacer("DIR", dir))
	text, err := os.ReadFile(filepath.Join(dir, "job.yml"))
	if err != nil {
		t.Fatal(err)
	}
	objects = map[string]map[string]any{}
	for in := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var one map[string]any
		if err := in.Decode(&one); errors.Is(err, io.EOF) {
			return objects, spec
		} else if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		objects[one["kind"].(string)] = one
	}
}

// in follows keys and places of lists.
func in(t *testing.T, from any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch at := step.(type) {
		case string:
			from = from.(map[string]any)[at]
		case int:
			from = from.([]any)[at]
		}
	}
	return from
}

// TestKubernetes holds that what is written for Kubernetes hangs together: every share is given, names are names there, what is
// mounted is there, and the files that a share reads are those of the sweep.
func TestKubernetes(t *testing.T) {
	for _, name := range []string{"slots.yaml", "Slots_of.2026.yaml", "___.yaml", strings.Repeat("long", 30) + ".yaml"} {
		objects, spec := exported(t, name)
		files, job := objects["ConfigMap"], objects["Job"]
		called := in(t, job, "metadata", "name").(string)
		if !regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?$`).MatchString(called) || in(t, files, "metadata", "name") != called {
			t.Errorf("%s: job %q, files %v", name, called, in(t, files, "metadata", "name"))
		}
		if in(t, job, "spec", "completionMode") != "Indexed" || in(t, job, "spec", "completions") != 3 || in(t, job, "spec", "template", "spec", "restartPolicy") != "Never" {
			t.Errorf("%v", job["spec"])
		}
		pod := in(t, job, "spec", "template", "spec")
		volumes := map[any]bool{}
		for _, v := range in(t, pod, "volumes").([]any) {
			volumes[in(t, v, "name")] = true
		}
		for _, m := range in(t, pod, "containers", 0, "volumeMounts").([]any) {
			if !volumes[in(t, m, "name")] {
				t.Errorf("%v is mounted, and there are %v", m, volumes)
			}
		}
		if line := in(t, pod, "containers", 0, "args", 0).(string); !strings.Contains(line, `sweep work /sweep/sweep.yaml --shard "$((JOB_COMPLETION_INDEX + 1))/3"`) {
			t.Error(line)
		}
		text := in(t, files, "data", "sweep.yaml").(string)
		parsed, err := sweep.Parse("/sweep/sweep.yaml", []byte(text))
		if err != nil || text != spec || parsed.File != "/sweep/spec.yaml" || in(t, files, "data", "spec.yaml") == nil {
			t.Errorf("%v, %v", files["data"], err)
		}
	}
	dir := t.TempDir()
	for file, text := range map[string]string{"a.yaml": "command: bench\nfile: ../spec.yaml\nsweep: [slots=2..3]\n", "../spec.yaml": "schema: olafctl.bench-spec/v1\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	step{"sweep export DIR/a.yaml --k8s DIR/job.yml --shards 1", 2, "^$", "pods find beside it only"}.run(t, strings.NewReplacer("DIR", dir))
}

// TestKubernetesSchemas holds both objects against the schemas that Kubernetes publishes; a field that these do not have is refused.
func TestKubernetesSchemas(t *testing.T) {
	if *kubernetes == "" {
		t.Skip("without -kubernetes FOLDER there are no schemas; it is api/openapi-spec/v3 of Kubernetes' sources")
	}
	objects, _ := exported(t, "slots.yaml")
	for kind, at := range map[string][2]string{"Job": {"apis__batch__v1_openapi.json", "io.k8s.api.batch.v1.Job"}, "ConfigMap": {"api__v1_openapi.json", "io.k8s.api.core.v1.ConfigMap"}} {
		schema := publishedSchema(t, at[0], at[1])
		holds := func(object map[string]any) error {
			raw, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
			if err != nil {
				t.Fatal(err)
			}
			return schema.Validate(value)
		}
		if err := holds(objects[kind]); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		objects[kind]["unheard"] = "of"
		if holds(objects[kind]) == nil {
			t.Errorf("%s: a field that nobody knows is taken", kind)
		}
	}
}

// publishedSchema is one schema of a file of Kubernetes' OpenAPI documents, with no fields but its own.
func publishedSchema(t *testing.T, file, name string) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(*kubernetes, file))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	schemas := in(t, doc, "components", "schemas").(map[string]any)
	closeObjects(schemas)
	c := jsonschema.NewCompiler()
	if err := c.AddResource("kubernetes.json", map[string]any{"components": map[string]any{"schemas": schemas}}); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("kubernetes.json#/components/schemas/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// closeObjects makes every schema of an object with known properties refuse others.
func closeObjects(part any) {
	switch p := part.(type) {
	case map[string]any:
		if _, more := p["additionalProperties"]; p["properties"] != nil && !more {
			p["additionalProperties"] = false
		}
		for _, below := range p {
			closeObjects(below)
		}
	case []any:
		for _, below := range p {
			closeObjects(below)
		}
	}
}
