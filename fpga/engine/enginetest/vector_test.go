package enginetest_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/engine/enginetest"
)

const top = "vector x\nqueue olaf slots=2 clusters=3\noutput\n"

func TestBadVectors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", `line 0: the text stops before "end"`},
		{top, `line 3: the text stops before "end"`},
		{"end\n", `must come before "end"`},
		{"vector a b\n", "line 1: a vector has one name"},
		{"vector a\nvector b\n", "line 2: a vector has one name"},
		{"vector a\nqueue lifo\n", `unknown queue "lifo"; there are ` + strings.Join(engine.DisciplineNames(), ", ")},
		{"vector a\nqueue olaf slots=0 clusters=1\n", "slots is 0; it must be 1 to 65536"},
		{"queue olaf slots=1 clusters=1\nqueue olaf slots=1 clusters=1\n", "line 2: there is one queue line"},
		{"output rate=-1\n", `rate: "-1" is not a number that fits`},
		{"output rate=1073741825\n", "the line's is 128Gbps"},
		{"output merge=256\n", "merge cycles is 256"},
		{"output\noutput\n", "there is one output line"},
		{"in 0\n", "an event stands before the queue and output lines"},
		{top + "in\n", "line 4: in has no cycle"},
		{top + "in x\n", `"x" is not a number that fits`},
		{top + "in 5\nin 4\n", "line 5: cycle 4 does not lie between"},
		{top + "in 0 cluster=3\n", "cluster 3 does not exist; there are 3"},
		{top + "in 0 cluster=65536\n", `cluster: "65536" is not a number that fits`},
		{top + "in 0 count=0\n", "count is 0"},
		{top + "in 0 gen=281474976710656\n", "does not fit 48 bits"},
		{top + "in 0 lanes=2244\n", "2244 lanes; a frame holds at most 2243"},
		{top + "in 0 lanes=2 data=1,2,3\n", "data has 3 values for 2 lanes"},
		{top + "in 0 lanes=1 data=2147483648\n", `data: "2147483648" is not a number that fits`},
		{top + "in 0 worker=1 worker=1\n", "worker stands twice"},
		{top + "in 0 colour=1\n", `unknown field "colour=1"`},
		{top + "in 0 flags=loud\n", `unknown flag "loud"`},
		{top + "in 0 inside=1:2\n", `contributor "1:2" is not worker:seq:gen`},
		{top + "in 0 => lost\n", `unknown class "lost"`},
		{top + "in 0 queued=1\n", `unknown field "queued=1"`},
		{top + "flush 0 now\n", `flush has only a cycle, not "now"`},
		{top + "stat a\n", "a stat has a name and a value"},
		{top + "end\nin 0\n", `line 5: "in" after "end"`},
		{top + "wait 3\n", `unknown word "wait"`},
		{strings.Repeat("#", enginetest.MaxLine+1), "line 1: bufio.Scanner: token too long"},
	} {
		_, err := enginetest.ParseVector(strings.NewReader(c.text))
		if !errors.Is(err, enginetest.ErrFormat) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: %v; want %q", c.text, err, c.want)
		}
	}
}

// TestPageExample checks the example in docs/reference/semantics.md by replaying it.
func TestPageExample(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "semantics.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, example, ok := strings.Cut(string(page), "```\nvector ")
	if !ok {
		t.Fatal("the page has no example")
	}
	example, _, _ = strings.Cut("vector "+example, "```")
	v, err := enginetest.ParseVector(strings.NewReader(example))
	if err != nil {
		t.Fatal(err)
	}
	got, err := enginetest.ReplayVector(v)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(v.Events, got.Events, cmp.FilterValues(func(a, b []int32) bool { return len(a)+len(b) == 0 },
		cmp.Ignore())); d != "" {
		t.Errorf("-page +queue:\n%s", d)
	}
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("../testdata/vectors/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("vector a\n#x\nqueue fifo slots=1 clusters=1\noutput\nin 0 flags=count_saturated+retransmission inside=1:2:3\nflush 2\nend"))
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := enginetest.ParseVector(bytes.NewReader(text))
		if err != nil {
			if !errors.Is(err, enginetest.ErrFormat) {
				t.Fatalf("%v is not ErrFormat", err)
			}
			return
		}
		var first, second bytes.Buffer
		if err := enginetest.WriteVector(&first, v); err != nil {
			t.Fatal(err)
		}
		again, err := enginetest.ParseVector(bytes.NewReader(first.Bytes()))
		if err != nil {
			t.Fatalf("what was written does not parse: %v\n%s", err, &first)
		}
		if err := enginetest.WriteVector(&second, again); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Fatalf("the canonical form changes:\n%s\n%s", &first, &second)
		}
	})
}
