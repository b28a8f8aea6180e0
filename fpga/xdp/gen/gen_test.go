package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// room is the package for which the command generates.
const room = ".."

// TestObjectsAreFresh checks that objects were compiled from the current sources with the current flags. It does not
// need a compiler.
func TestObjectsAreFresh(t *testing.T) {
	want, err := os.ReadFile(filepath.Join(room, recordFile))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(want), "\n")
	got, err := buildRecord(room, strings.TrimPrefix(first, "compiler "))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("the objects are stale: run 'go generate ./fpga/xdp' and commit what it writes\nrecorded:\n%s\nfound:\n%s", want, got)
	}
}

// TestObjectsAreRebuilt compiles the sources again and checks that the bytes are the same.
func TestObjectsAreRebuilt(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the compiler")
	}
	version, err := compilerVersion()
	if err != nil {
		t.Skipf("needs the compiler: %v", err)
	}
	record, err := os.ReadFile(filepath.Join(room, recordFile))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(record), "compiler "+version+"\n") {
		t.Skipf("the compiler here is %s, the objects are of another one: %s", version, record[:bytes.IndexByte(record, '\n')])
	}
	target := t.TempDir()
	if err := compilePrograms(room, target); err != nil {
		t.Fatal(err)
	}
	for _, name := range programs {
		for _, file := range []string{name + "_bpfel.o", name + "_bpfel.go"} {
			want, err := os.ReadFile(filepath.Join(room, file))
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(target, file))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(want, got) {
				t.Errorf("%s is not what the sources compile to: run 'go generate ./fpga/xdp' and commit what it writes", file)
			}
		}
	}
}
