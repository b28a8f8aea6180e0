package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEverySchemaIsOnThePage compares docs/reference/output.md with the schemas in the code.
func TestEverySchemaIsOnThePage(t *testing.T) {
	const root = "../.."
	page, err := os.ReadFile(filepath.Join(root, "docs", "reference", "output.md"))
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`"olafctl\.[a-z0-9-]+/v[0-9]+`)
	found := 0
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, quoted := range name.FindAllString(string(source), -1) {
			found++
			if schema := strings.TrimPrefix(quoted, `"`); !strings.Contains(string(page), schema) {
				t.Errorf("%s has %s, which docs/reference/output.md does not mention", path, schema)
			}
		}
		return err
	})
	if err != nil || found < 30 {
		t.Fatal(found, err)
	}
}
