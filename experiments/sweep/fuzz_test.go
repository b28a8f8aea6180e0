package sweep

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/yamlfile"
	"github.com/olafctl/olaf/internal/yamlfile/yamlfiletest"
	"github.com/olafctl/olaf/results/store"
)

// FuzzParse parses arbitrary sweep files: each mistake names one of the file's lines, accepted files survive a round
// trip, and a plan has a cell for every combination.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"schema: olafctl.sweep-spec/v1\ncommand: toy\nfile: other.yaml\noptions: {seed: 3, hard: x}\nsweep: [n=1..8:x2, 'kind=a,b']\nmetrics: [m]\nruns: 5\nuntil: ci=2%\n",
		"command: toy\nlist:\n  - {n: 1, kind: a}\n  - {n: 2, kind: a}\n", "command: toy\nsweep: n=12..14\n",
		"command: toy\nsweep: [n=1..99999999]\n",
		"command: toy\nsweep: [n=1]\nlist: [{n: 1}]\n", "command: toy\nlist: [{n: '1,2'}]\n", "command: toi\n",
		"command: toy\nsweep: [n=1, n=2]\n",
		"command: toy\nsweep: [n=1]\nmetrics: [m, m]\nruns: 100001\n", "command: [toy]\n",
		"command: toy\noptions: {n: 1}\nsweep: [n=2]\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := ParseFile("f.yaml", []byte(text))
		if err != nil {
			yamlfiletest.CheckMistakes(t, err, ErrSpec, "f.yaml", text)
			return
		}
		written, err := yamlfile.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseFile("f.yaml", written)
		if err != nil {
			t.Fatalf("%v in\n%s", err, written)
		}
		if first, second := withoutLines(file), withoutLines(again); !reflect.DeepEqual(first, second) {
			t.Errorf("%+v came back as %+v", first, second)
		}
		p, err := file.Resolve(toys(), false)
		if err != nil {
			if kind, typed := olaf.KindOf(err); !typed || kind != olaf.Usage {
				t.Errorf("%v is not the user's mistake", err)
			}
			return
		}
		checkCells(t, p)
	})
}

// checkCells checks that a plan has every combination of its axes' values, except for a list.
func checkCells(t *testing.T, p *Plan) {
	n := 1
	for _, a := range p.Axes {
		n *= len(a.Values)
	}
	if len(p.Cells) == 0 || len(p.Cells) > n || p.Runs < 1 || p.Runs > maxRuns {
		t.Errorf("%d cells of %d, %d runs", len(p.Cells), n, p.Runs)
	}
}

// withoutLines returns a file's content, without its lines and without empty lists.
func withoutLines(f *File) File {
	c := *f
	c.lines, c.Name = nil, ""
	if c.Schema = ""; len(c.Options) == 0 {
		c.Options = nil
	}
	if len(c.Sweep) == 0 {
		c.Sweep = nil
	}
	if len(c.List) == 0 {
		c.List = nil
	}
	if len(c.Metrics) == 0 {
		c.Metrics = nil
	}
	return c
}

// FuzzPlan reads arbitrary plans: rejected ones are reported as damaged or from another program, and in accepted ones
// all cells are on the axes and survive a round trip.
func FuzzPlan(f *testing.F) {
	whole, err := json.Marshal(plan(f, &File{Sweep: []string{"n=1,2"}, Until: "ci=2%", Runs: 30}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(bytes.Replace(whole, []byte(`["1","a"]`), []byte(`["3","a"]`), 1))
	f.Add(bytes.Replace(whole, []byte(`["1","a"]`), []byte(`["1"]`), 1))
	f.Add(bytes.Replace(whole, []byte(`"toy"`), []byte(`"tay"`), 1))
	f.Add(bytes.Replace(whole, []byte(`"runs":30,"enough"`), []byte(`"runs":-30,"enough"`), 1))
	f.Add(whole[:len(whole)/2])
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := readPlan("x", raw, toys())
		if err != nil {
			if !errors.Is(err, store.ErrDamaged) && !errors.Is(err, ErrSpec) {
				t.Errorf("%v is of no kind", err)
			}
			return
		}
		for i := range p.Cells {
			for k, at := range p.Cells[i].at {
				if p.Axes[k].Values[at] != p.Cells[i].Values[k] {
					t.Errorf("cell %d is not at its place", i)
				}
			}
			if lots := p.MaxLots(); lots < 1 || p.Job(i, 0).Runs < 1 || p.Job(i, lots-1).Runs < 1 {
				t.Errorf("%d runs in %d lots", p.Runs, lots)
			}
		}
		written, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := readPlan("x", written, toys()); err != nil || len(again.Cells) != len(p.Cells) {
			t.Errorf("%v in %s", err, written)
		}
	})
}

// FuzzServe sends arbitrary input to a worker: it answers jobs in order, each with one line under its key, until the
// input ends or is not a job.
func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"key":"a","command":"toy","spec":{"n":"3"},"from":0,"runs":2}` + "\n" + `{"key":"b","command":"toi"}`))
	f.Add([]byte(`{"key":"a","command":"toy","spec":{"n":"x"},"runs":-1}{"key":"c","command":"toy","spec":[]}`))
	f.Add([]byte(`{"key":"a","spec":`))
	f.Fuzz(func(t *testing.T, asked []byte) {
		jobs := jobsIn(asked)
		if slices.ContainsFunc(jobs, func(j Job) bool { return j.Runs > 100 || bytes.Contains(j.Spec, []byte("d")) }) {
			return // too long, or the toy's way to exit
		}
		var said bytes.Buffer
		_ = ServeJobs(t.Context(), toys(), Build{}, bytes.NewReader(asked), &said)
		lines := slices.Collect(bytes.Lines(said.Bytes()))
		if len(lines) < 1 || len(lines) > len(jobs)+1 {
			t.Fatalf("%d lines about %d jobs", len(lines), len(jobs))
		}
		for i, line := range lines[1:] {
			var r reply
			if err := json.Unmarshal(line, &r); err != nil || r.Key != jobs[i].Key || (r.Result == nil) == (r.Error == "") {
				t.Errorf("job %+v is answered with %q, %v", jobs[i], line, err)
			}
		}
	})
}

// jobsIn returns the jobs at the beginning of a text.
func jobsIn(asked []byte) (jobs []Job) {
	for d := json.NewDecoder(bytes.NewReader(asked)); ; {
		var j Job
		if d.Decode(&j) != nil {
			return jobs
		}
		jobs = append(jobs, j)
	}
}
