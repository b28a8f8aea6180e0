// Package golden compares test results with reviewed files in the repository.
package golden

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew; read the difference before committing it")

// Equal compares got with the file testdata/name, or writes the file if -update is set. If they differ, it shows the
// first different line.
func Equal(t testing.TB, name string, got []byte) {
	t.Helper()
	File(t, filepath.Join("testdata", filepath.FromSlash(name)), got)
}

// File is like Equal for a file in another place, such as a figure on a page of the documentation.
func File(t testing.TB, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; make it with -update", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: %s; if that is meant, run this test with -update and read the difference", path,
			firstDifference(string(got), string(want)))
	}
}

// Page compares got with the text between the lines begin and end on a page, or replaces the text if -update is set.
func Page(t testing.TB, path, begin, end, got string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, began := strings.Cut(string(page), begin+"\n")
	_, tail, ended := strings.Cut(rest, end+"\n")
	if !began || !ended {
		t.Fatalf("%s has no place between %q and %q", path, begin, end)
	}
	File(t, path, []byte(head+begin+"\n"+got+end+"\n"+tail))
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d is %q, was %q", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, were %d", len(g), len(w))
}

// Fields formats the non-zero fields of a struct. Adding a field to the struct therefore does not change golden files
// in which the field is zero.
func Fields(v any) string {
	var b strings.Builder
	writeFields(&b, reflect.ValueOf(v))
	return b.String()
}

func writeFields(b *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		b.WriteByte('{')
		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() {
				fmt.Fprintf(b, " %s:", v.Type().Field(i).Name)
				writeFields(b, f)
			}
		}
		b.WriteString(" }")
	case reflect.Slice:
		for i := range v.Len() {
			b.WriteByte(' ')
			writeFields(b, v.Index(i))
		}
	default:
		fmt.Fprintf(b, "%v", v)
	}
}
