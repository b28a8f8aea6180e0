package lab

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/olafctl/olaf/internal/yamlfile/yamlfiletest"
)

// FuzzParse parses arbitrary testbed files: each mistake has a line of the file, and an accepted file is a tree whose
// plan survives a JSON round trip.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		byHand, wires, "tree: {workers: 8, children: 3, mode: generic, rate: 10G}\njob: {fragments: 1, group: 4}\n",
		"queue: {system: olaf, workers: 4, clusters: 2, slots: 8, out_rate: 3M, rate: 1M, tc: 5ms}\n", "tree: {workers: 126}\n", "queue: {workers: 2, clusters: 3}\n",
		"nodes: [{name: a, role: worker, interface: e, address: 10.0.0.255, cluster: 1, rate: 1G}, {name: s, role: switch}, {name: p, role: server}]\n" +
			"links: [{child: a, parent: s}, {child: s, parent: p}]\ndevices: [{node: s, program: fifo, rate: 1G}]\n",
		"tree: {workers: x}\n", "links: [{child: a, parent: a}]\nnodes: [{name: a, role: aggregator}]\n", "schema: olafctl.testbed-spec/v2\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse("f.yaml", []byte(text))
		if err != nil {
			yamlfiletest.CheckMistakes(t, err, ErrFile, "f.yaml", text)
			return
		}
		p, err := file.Resolve()
		if err != nil {
			yamlfiletest.CheckMistakes(t, err, ErrFile, "f.yaml", text)
			return
		}
		tree(t, p)
		kept, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		again := new(Plan)
		if err := json.Unmarshal(kept, again); err != nil || !reflect.DeepEqual(again.Lines(), p.Lines()) {
			t.Errorf("%s is %q when it is read, %v, not %q", kept, again.Lines(), err, p.Lines())
		}
	})
}

// FuzzState parses arbitrary answers of a holder: a rejected one gives one plain line, and an accepted one is about the
// requested testbed and survives a round trip.
func FuzzState(f *testing.F) {
	for _, seed := range []string{
		`{"name":"lab","pid":7,"plan":["a 10.0.0.1"],"nodes":[{"name":"a","role":"worker","namespace":"/proc/7/fd/9","address":"10.0.0.1","counts":{"in":3}}],"faults":null}` + "\n",
		`{"name":"lab","pid":7,"plan":null,"nodes":[],"faults":["an interface is gone"]}`, `{"name":"lab","pid":0}`, `{"name":"other","pid":7}`, `{"name":"lab","pid":-7}`,
		`{"name":"lab","pid":7,"nodes":[{"counts":{"in":-1}}]}`, `{"name":"lab","pid":7}{`, `null`, `{}`, `{"name":"lab"`, ``, "a fault in words\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, told []byte) {
		s, err := readState(bytes.NewReader(told), "lab")
		if err != nil {
			if !errors.Is(err, ErrHolder) || strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Errorf("%q is no ErrHolder in one plain line", err)
			}
			return
		}
		for range 2 { // the first round drops empty counts
			var out bytes.Buffer
			if err := json.NewEncoder(&out).Encode(s); err != nil {
				t.Fatal(err)
			}
			text := out.String()
			again, err := readState(&out, "lab")
			if err != nil || len(again.Nodes) != len(s.Nodes) || !slices.Equal(again.Lines, s.Lines) || !slices.Equal(again.Faults, s.Faults) {
				t.Fatalf("%s is %+v when it is read, %v", text, again, err)
			}
			s = again
		}
	})
}

// tree checks that a plan is a tree: every path up ends at the server, and cables have distinct networks.
func tree(t *testing.T, p *Plan) {
	below := p.Below(p.Server())
	slices.Sort(below)
	if workers := len(p.Workers()); workers == 0 || len(below) != workers || below[0] != 0 || below[workers-1] != workers-1 {
		t.Errorf("workers below the server: %v of %d", below, workers)
	}
	if len(p.Cables) != len(p.Nodes)-1 || len(p.Cables) > MaxCables || p.Children() > MaxChildren {
		t.Errorf("%d cables between %d nodes, %d children", len(p.Cables), len(p.Nodes), p.Children())
	}
	for i := range p.Cables {
		c := &p.Cables[i]
		if p.Nodes[c.Child].Up != i || !slices.Contains(p.Nodes[c.Parent].Down, i) {
			t.Errorf("cable %d is not that of its ends", i)
		}
		if c.Lower == c.Upper || !c.Net.Contains(c.Lower) || !c.Net.Contains(c.Upper) || c.MTU < 1 || c.MTU > MaxMTU {
			t.Errorf("cable %d: %+v", i, c)
		}
		for k := range p.Cables[:i] {
			if p.Cables[k].Net.Overlaps(c.Net) {
				t.Errorf("cables %d and %d are both in %v", k, i, c.Net)
			}
		}
	}
	if s := p.Switch; s != nil && (s.Slots < 1 || s.Slots > MaxSlots || s.Clusters < 1 || s.Clusters > len(below) || s.OutRate <= 0) {
		t.Errorf("%+v", s)
	}
}
