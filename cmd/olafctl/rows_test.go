package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
)

// TestRowsOfTable1 checks that the rows of the default bench, seeds 1 to 30, are unchanged byte by byte. A change must
// be intended.
func TestRowsOfTable1(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), testEnvironment(&stdout, &stderr), []string{"bench", "-q", "--keep=false", "-o", "json"}); code != cli.ExitDone {
		t.Fatalf("%d: %s", code, stderr.String())
	}
	var document struct {
		Rows []json.RawMessage `json:"rows"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, row := range document.Rows {
		var of struct {
			Queue string `json:"queue"`
			Rate  int64  `json:"out_rate_bps"`
			Runs  int    `json:"runs"`
		}
		if err := json.Unmarshal(row, &of); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s at %d bit/s, %d runs: %x\n", of.Queue, of.Rate, of.Runs, sha256.Sum256(row))
	}
	kept := filepath.Join("testdata", "table1-rows.txt")
	if *update {
		ok(t, os.WriteFile(kept, b.Bytes(), 0o666))
	}
	want, err := os.ReadFile(kept)
	if err != nil || !bytes.Equal(b.Bytes(), want) {
		t.Errorf("%v; the rows are\n%s, and were\n%s", err, b.Bytes(), want)
	}
}
