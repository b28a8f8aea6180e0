package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/internal/test/peer"
)

var kubernetes = flag.String("kubernetes", "", "folder api/openapi-spec/v3 of Kubernetes' sources, whose schemas what is written for it is held against")

// exported returns the objects that 'sweep export --k8s' writes, by kind, for a sweep that reads a specification from a
// file next to it.
func exported(t *testing.T, name string) (objects map[string]map[string]any, spec string) {
	t.Helper()
	dir := t.TempDir()
	spec = "command: bench\nfile: spec.yaml\noptions: {updates: 20, versus: none, out-rate: 20G}\nsweep: [slots=2..16:x2]\nruns: 2\n"
	for file, text := range map[string]string{name: spec, "spec.yaml": "schema: olafctl.bench-spec/v1\nworkload: {workers: 9}\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	step{"sweep export DIR/" + name + " --k8s DIR/job.yml --shards 3 --store DIR/store", 0, "", ""}.run(t,
		strings.NewReplacer("DIR", dir))
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

// clusterSweep is a sweep of three cells that is quick to resolve.
const clusterSweep = "command: bench\noptions: {updates: 20, versus: none, out-rate: 20G}\nsweep: [slots=2..4]\nruns: 1\n"

// exportScript runs sweep export on a file in a new folder, which becomes the working directory.
func exportScript(t *testing.T, name, text string, flags ...string) (script, stderr string, code int) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, said bytes.Buffer
	code = run(t.Context(), testEnvironment(&out, &said),
		append(append([]string{"sweep", "export"}, flags...), "--store", "store", "--", name))
	written, err := os.ReadFile("script")
	if err != nil && code == 0 {
		t.Fatal(err)
	}
	return string(written), said.String(), code
}

// strangeNames are file names with every character that a shell interprets.
var strangeNames = []string{"slots.yaml", "my sweep.yaml", "it's.yaml", "$(touch PWNED).yaml", "`touch PWNED`.yaml", "a\"b\\.yaml",
	"Größe & Slots.yaml", "-dash.yaml", "#SBATCH --wrap=x.yaml", "a;b|c>d.yaml", "*.yaml", "~.yaml", "x${HOME}y!.yaml"}

// TestSlurmScriptQuotes checks that a share is called with exactly the file's name, whatever characters it contains,
// and that shellcheck, if installed, accepts the script.
func TestSlurmScriptQuotes(t *testing.T) {
	shellcheck, err := peer.FindProgram("shellcheck")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strangeNames {
		t.Run(name, func(t *testing.T) {
			script, stderr, code := exportScript(t, name, clusterSweep, "--slurm", "script", "--shards", "2", "--at-once", "1")
			if code != 0 {
				t.Fatalf("exit code %d, want 0: %s", code, stderr)
			}
			if got := playScript(t); got != "sweep\x00work\x00--shard\x001/2\x00--processes\x001\x00--quiet\x00--\x00"+name+"\x00" {
				t.Errorf("the share was called with %q, want the file %q as its last word\n%s", got, name, script)
			}
			if _, err := os.Stat("PWNED"); err == nil {
				t.Error("the file's name was carried out as a command")
			}
			if !strings.Contains(script, "#SBATCH --array=1-2%1\n") {
				t.Errorf("--at-once 1 is not in the array:\n%s", script)
			}
			if shellcheck != "" {
				if said, err := exec.Command(shellcheck, "--shell=bash", "--severity=warning", "script").CombinedOutput(); err != nil {
					t.Errorf("shellcheck: %v\n%s", err, said)
				}
			}
		})
	}
}

// playScript runs the script in this folder as task 1 of an array and returns the arguments of olafctl.
func playScript(t *testing.T) string {
	t.Helper()
	if err := os.WriteFile("olafctl", []byte("#!/bin/sh\nprintf '%s\\0' \"$@\" >called\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "script")
	cmd.Env = append(os.Environ(), "PATH=.:"+os.Getenv("PATH"), "OLAFCTL_HOME=store", "SLURM_ARRAY_TASK_ID=1", "SLURM_CPUS_PER_TASK=1")
	if said, err := cmd.CombinedOutput(); err != nil || len(said) > 0 {
		t.Errorf("bash: %v: %s", err, said)
	}
	called, err := os.ReadFile("called")
	if err != nil {
		t.Fatal(err)
	}
	return string(called)
}

// TestClusterScriptsRefuse checks that values that cannot be written into a script are rejected with an error that
// names the flag or file.
func TestClusterScriptsRefuse(t *testing.T) {
	for _, c := range []struct {
		name, says string
		flags      []string
	}{
		{"a\nb.yaml", "rename the file", []string{"--slurm", "script"}},
		{"a\u2028b.yaml", "rename the file", []string{"--k8s", "script"}},
		{"a\xffb.yaml", "rename the file", []string{"--slurm", "script"}},
		{"a.yaml", "--image", []string{"--k8s", "script", "--image", "a b: c"}},
		{"a.yaml", "--image", []string{"--k8s", "script", "--image", ""}},
		{"a.yaml", "--claim", []string{"--k8s", "script", "--claim", "x} , y"}},
		{"a.yaml", "--at-once", []string{"--slurm", "script", "--at-once", "-1"}},
		{"a.yaml", "100000 shares at most", []string{"--k8s", "script", "--shards", "100001"}},
	} {
		if _, stderr, code := exportScript(t, c.name, clusterSweep, c.flags...); code != 2 || !strings.Contains(stderr, c.says) {
			t.Errorf("%q %v: exit code %d and %q, want 2 and %q", c.name, c.flags, code, stderr, c.says)
		}
	}
}

// TestSlurmArrayLimit checks that the script and stderr mention it if there are more shares than Slurm accepts by
// default.
func TestSlurmArrayLimit(t *testing.T) {
	many := strings.Replace(clusterSweep, "slots=2..4", "slots=2..40, burst=1..30", 1)
	for shards, stated := range map[string]bool{"1000": false, "1001": true} {
		script, stderr, code := exportScript(t, "a.yaml", many, "--slurm", "script", "--shards", shards)
		if code != 0 || strings.Contains(script, "MaxArraySize") != stated || strings.Contains(stderr, "MaxArraySize") != stated {
			t.Errorf("%s shares: exit code %d; a word about MaxArraySize wanted: %v\n%s\n%s", shards, code, stated, stderr, script)
		}
	}
}

// TestConfigMapKeepsText checks that the files in a ConfigMap equal the files on disk, with any indentation and any
// line ends.
func TestConfigMapKeepsText(t *testing.T) {
	for _, text := range []string{
		"    # an indented comment\n" + clusterSweep,
		"\n\n  # blank lines first\n" + clusterSweep,
		clusterSweep + "\n\n",
		strings.TrimSuffix(clusterSweep, "\n"),
		strings.ReplaceAll(clusterSweep, "\n", "\r\n"),
		"# a tab\there, and : # colons\n" + clusterSweep,
	} {
		script, stderr, code := exportScript(t, "a.yaml", text, "--k8s", "script", "--shards", "2", "--image",
			"lab.example:5000/olafctl@sha256:00")
		if code != 0 {
			t.Fatalf("%q: exit code %d: %s", text, code, stderr)
		}
		var files struct {
			Data map[string]string
		}
		if err := yaml.NewDecoder(strings.NewReader(script)).Decode(&files); err != nil || files.Data["sweep.yaml"] != text {
			t.Errorf("%v: the ConfigMap holds %q, want %q\n%s", err, files.Data["sweep.yaml"], text, script)
		}
	}
}

// in returns the part of a document that a path of keys and indexes leads to.
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

// TestKubernetes checks that the objects for Kubernetes are consistent: all shares are run, names are valid, mounts
// exist, and the files of a share are the sweep's.
func TestKubernetes(t *testing.T) {
	for _, name := range []string{"slots.yaml", "Slots_of.2026.yaml", "___.yaml", strings.Repeat("long", 30) + ".yaml"} {
		objects, spec := exported(t, name)
		files, job := objects["ConfigMap"], objects["Job"]
		called := in(t, job, "metadata", "name").(string)
		if !regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?$`).MatchString(called) ||
			in(t, files, "metadata", "name") != called {
			t.Errorf("%s: job %q, files %v", name, called, in(t, files, "metadata", "name"))
		}
		if in(t, job, "spec", "completionMode") != "Indexed" || in(t, job, "spec", "completions") != 3 ||
			in(t, job, "spec", "template", "spec", "restartPolicy") != "Never" {
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
		if line := in(t, pod, "containers", 0, "args", 0).(string); !strings.Contains(line,
			`sweep work /sweep/sweep.yaml --shard "$((JOB_COMPLETION_INDEX + 1))/3"`) {
			t.Error(line)
		}
		text := in(t, files, "data", "sweep.yaml").(string)
		parsed, err := sweep.ParseFile("/sweep/sweep.yaml", []byte(text))
		if err != nil || text != spec || parsed.File != "/sweep/spec.yaml" || in(t, files, "data", "spec.yaml") == nil {
			t.Errorf("%v, %v", files["data"], err)
		}
	}
	dir := t.TempDir()
	for file, text := range map[string]string{"a.yaml": "command: bench\nfile: ../spec.yaml\nsweep: [slots=2..3]\n",
		"../spec.yaml": "schema: olafctl.bench-spec/v1\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	step{"sweep export DIR/a.yaml --k8s DIR/job.yml --shards 1", 2, "^$", "pods find only in the same folder"}.run(t, strings.NewReplacer("DIR", dir))
}

// TestKubernetesSchemas checks both objects against the schemas that Kubernetes publishes, without unknown fields.
func TestKubernetesSchemas(t *testing.T) {
	if *kubernetes == "" {
		t.Skip("without -kubernetes FOLDER there are no schemas; it is api/openapi-spec/v3 of Kubernetes' sources")
	}
	objects, _ := exported(t, "slots.yaml")
	for kind, at := range map[string][2]string{"Job": {"apis__batch__v1_openapi.json", "io.k8s.api.batch.v1.Job"},
		"ConfigMap": {"api__v1_openapi.json", "io.k8s.api.core.v1.ConfigMap"}} {
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

// publishedSchema returns a schema from Kubernetes' OpenAPI documents that rejects unknown fields.
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

// closeObjects makes every object schema reject unknown properties.
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
