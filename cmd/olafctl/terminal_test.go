package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/olafctl/olaf/pktgen/trace"
)

// evil is text with escape codes that must not reach a terminal.
const evil = "x\x1b]0;PWNED\a\x1b[2J\u202e\u009b31m"

// TestControlCharactersAreEscaped checks the output in text, JSON and CSV for files and names that contain such text.
func TestControlCharactersAreEscaped(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var recorded bytes.Buffer
	w, err := trace.NewWriter(&recorded, trace.Header{Tool: evil, Clock: "virtual", Env: evil, Network: evil, GOOS: evil, Workers: 1, Clusters: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(&trace.Update{GenNS: 1000}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file := write("b.trace", recorded.Bytes())
	quoted := strings.NewReplacer("\x1b", `\x1b`, "\a", `\a`, "\u202e", `\u202E`, "\u009b", `\u009B`).Replace(evil)
	topology := write("t.yaml", []byte("name: \""+quoted+"\"\n"+"clusters:\n  - at: [\""+quoted+"\"]\n"))
	spec := write("spec.yaml", []byte("systems: [\""+quoted+"\"]\n"))
	for _, args := range [][]string{
		{"trace", "info", file}, {"trace", "info", file, "-o", "json"}, {"topology", "show", topology}, {"topology", "show", topology, "--dot"},
		{"bench", "-f", spec}, {"bench", "-f", evil}, {"bench", "--" + evil}, {"replay", filepath.Join(dir, evil+".pcap")}, {"runs", "show", evil},
		{"simulate", topology, "-o", "csv"}, {evil},
	} {
		var stdout, stderr bytes.Buffer
		run(t.Context(), testEnvironment(&stdout, &stderr), args)
		said := stdout.String() + stderr.String()
		if at := strings.IndexFunc(said, func(r rune) bool {
			return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
		}); at >= 0 {
			t.Errorf("%q: %q reaches the terminal", args, said[max(0, at-20):min(len(said), at+20)])
		}
		if said == "" {
			t.Errorf("%q: nothing is said", args)
		}
	}
}
