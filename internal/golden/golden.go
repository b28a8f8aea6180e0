// Package golden compares test results with reviewed and committed files.
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

// Equal compares got with the file testdata/name, or writes the file with -update. It shows the first line that
// differs.
func Equal(t testing.TB, name string, got []byte) {
	t.Helper()
	File(t, filepath.Join("testdata", filepath.FromSlash(name)), got)
}

// File is Equal for a file in another place, such as a page's figure.
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

// Page compares got with the part of a page between two lines, or writes it with -update.
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

// Fields formats the non-zero fields of a struct, so that a new field does not change golden files that do not use
// it.
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
