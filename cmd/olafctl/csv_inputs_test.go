package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// csvReaders lists the commands that read comma-separated text from other programs, each with a file that it accepts.
var csvReaders = []struct {
	name string
	args []string
	text string
}{
	{"trace", []string{"trace", "info"}, "gen_ns,worker,cluster,reward\n100,0,0,1\n150,1,1,2\n"},
	{"arrivals", []string{"simulate", "--preset", "ns3-fifo", "--duration", "1ms", "-q", "--keep=false", "--arrivals"}, "time_ns,worker\n100,0\n150,1\n"},
	{"rx-import", []string{"simulate", "--preset", "ns3-fifo", "--duration", "1ms", "-q", "--keep=false", "--rx-import"},
		"rx_ns,worker,seq,gen_ns\n900,0,0,100\n"},
}

// TestCSVReadersShareOneOpening checks that each reader accepts the variants of a file that spreadsheets and
// compressors produce.
func TestCSVReadersShareOneOpening(t *testing.T) {
	gzipped := func(text string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(text))
		_ = w.Close()
		return b.String()
	}
	for _, r := range csvReaders {
		for name, c := range map[string]struct {
			text, want string
		}{
			"plain":           {r.text, ""},
			"byte order mark": {"\ufeff" + r.text, ""},
			"CRLF":            {strings.ReplaceAll(r.text, "\n", "\r\n"), ""},
			"semicolons":      {strings.ReplaceAll(r.text, ",", ";"), "separated by semicolons"},
			"tabs":            {strings.ReplaceAll(r.text, ",", "\t"), "separated by tabs"},
			"gzip":            {gzipped(r.text), "compressed with gzip"},
		} {
			t.Run(r.name+"/"+name, func(t *testing.T) {
				checkCSVInput(t, r.args, c.text, c.want)
			})
		}
	}
}

// TestCSVTraceShowsTheFirstError checks the error for files whose first mistake is followed by another mistake or
// causes one.
func TestCSVTraceShowsTheFirstError(t *testing.T) {
	const header = "gen_ns,worker,cluster,reward\n"
	for name, c := range map[string]struct{ text, want string }{
		"NaN of a new worker":      {header + "1000,1,1,nan\n", `line 2: reward is "nan"`},
		"infinity of a new worker": {header + "1,0,0,1\n1000,1,1,-inf\n", `line 3: reward is "-inf"`},
		"worker in two clusters":   {header + "1000,0,0,1\n1001,0,2,1\n", "update 2: worker 0"},
		"column twice":             {"gen_ns,worker,cluster,reward,worker\n1,0,0,1,1\n", "the column worker is there twice, as columns 2 and 5"},
	} {
		t.Run(name, func(t *testing.T) { checkCSVInput(t, []string{"trace", "info"}, c.text, c.want) })
	}
}

// checkCSVInput runs a command on a file with the text and checks that it succeeds or exits with code 2 and an error
// that contains want.
func checkCSVInput(t *testing.T, args []string, text, want string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "in.csv")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), testEnvironment(&stdout, &stderr), append(args[:len(args):len(args)], file))
	switch {
	case want == "" && code != 0:
		t.Errorf("exit %d: %s", code, stderr.String())
	case want != "" && (code != 2 || !strings.Contains(stderr.String(), want)):
		t.Errorf("exit %d, %q; want exit 2 and an error with %q", code, stderr.String(), want)
	}
}
