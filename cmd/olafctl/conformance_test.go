package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"

	"github.com/olafctl/olaf/p4ctl/p4"
)

// TestConformance holds docs/p4runtime.md to what the command says of a fresh 'olafctl serve'.
func TestConformance(t *testing.T) {
	target := startServe(t)
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), testEnvironment(&stdout, &stderr), strings.Fields("tables conformance --write -o csv -d "+target)); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, &stdout, &stderr)
	}
	rows, err := csv.NewReader(&stdout).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| clause | section | promise | result |\n|---|---|---|---|\n")
	for _, r := range rows[1:] {
		fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", r[0], r[4], r[2], r[1])
	}
	name := filepath.Join("..", "..", "docs", "p4runtime.md")
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, began := strings.Cut(string(page), "-update -->\n")
	old, tail, ended := strings.Cut(rest, "<!-- end -->")
	switch {
	case !began || !ended:
		t.Fatal("docs/p4runtime.md has no place for the table")
	case *update:
		if err := os.WriteFile(name, []byte(head+"-update -->\n"+table.String()+"<!-- end -->"+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	case old != table.String():
		t.Errorf("docs/p4runtime.md has another table; go test ./cmd/olafctl -run TestConformance -update writes this one:\n%s", &table)
	}
}

// otherServer names a P4Runtime server that runs somewhere; nothing here starts one.
const otherServer = "OLAFCTL_TEST_P4RUNTIME_SERVER"

// TestConformanceOfAnother asks somebody else's server, and wants a verdict on every clause, whatever it is.
func TestConformanceOfAnother(t *testing.T) {
	target := os.Getenv(otherServer)
	if target == "" {
		t.Skipf("without another P4Runtime server; %s is its address", otherServer)
	}
	info := filepath.Join("..", "..", "p4ctl", "p4", "olaf.p4info.txtpb")
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), testEnvironment(&stdout, &stderr), []string{"tables", "conformance", "--write", "-o", "csv", "--p4info", info, "-d", target})
	rows, err := csv.NewReader(&stdout).ReadAll()
	if err != nil || code != 0 && code != 4 || len(rows) < 90 {
		t.Fatalf("exit code %d, %d rows, %v\n%s", code, len(rows), err, &stderr)
	}
	for _, r := range rows[1:] {
		t.Logf("%s: %s: %s", r[0], r[1], r[3])
	}
}

// TestConformanceVerdicts is the command beside a live primary, with a pipeline that the server refuses, and with flags that
// make no sense.
func TestConformanceVerdicts(t *testing.T) {
	target := startServe(t)
	info := p4.Twin().Info()
	info.Tables[1].Size = 1 << 20
	text, err := prototext.Marshal(info)
	if err != nil {
		t.Fatal(err)
	}
	info.Tables = info.Tables[:1]
	unlike, err := prototext.Marshal(info)
	if err != nil {
		t.Fatal(err)
	}
	replace := strings.NewReplacer("TARGET", target, "BEYOND", writeFile(t, "beyond.txtpb", string(text)), "UNLIKE", writeFile(t, "unlike.txtpb", string(unlike)),
		"JUNK", writeFile(t, "junk", "\xff\xff"), "GONE", "unix:"+filepath.Join(t.TempDir(), "none"))
	for _, s := range []step{
		{"tables conformance -d TARGET", 0, "(?m)^A6 +passed +Reads", "16 clauses passed, 0 failed, 82 skipped"},
		{"tables conformance -d TARGET -o json", 0, `"schema": "olafctl.conformance/v1"`, ""},
		{"tables conformance -d TARGET --write --p4info BEYOND", 4, "(?m)^C5 +failed .*the pipeline is refused", "clauses failed"},
		{"tables conformance -d TARGET --p4info UNLIKE", 2, "^$", "no table with exact keys"},
		{"tables conformance -d TARGET --p4info JUNK", 2, "^$", "is no P4Info"},
		{"tables conformance -d TARGET --p4-config JUNK", 2, "^$", "goes with --p4info"},
		{"tables conformance -d TARGET --device-id 7", 3, "^$", "no P4Runtime server for this device"},
		{"tables conformance -d GONE", 3, "^$", "no P4Runtime server for this device"},
		{"tables list --target TARGET -o json", 0, `"workers": \[\]`, ""},
	} {
		s.run(t, replace)
	}
}
