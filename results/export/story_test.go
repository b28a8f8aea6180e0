package export

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/test/golden"
	"github.com/olafctl/olaf/results/internal/test/example"
	"github.com/olafctl/olaf/results/table"
)

// TestExportsMatchGoldenFiles compares the names and contents of a result's exports with golden files.
func TestExportsMatchGoldenFiles(t *testing.T) {
	r := example.Result(3)
	all := slices.Concat(Figures("svg", "svg", r), csv("csv", r), Parquet("parquet", r), []Target{workbook("w.xlsx", r), Report("r.html", r), Document("d.json", map[string]any{"b": []int{1, 2}, "a": "<&>"})})
	var b bytes.Buffer
	for _, target := range all {
		var out bytes.Buffer
		if err := target.Write(&out); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s in %q: %d bytes, %x\n", target.Path, target.Folder, out.Len(), sha256.Sum256(out.Bytes()))
		if target.Path == "d.json" {
			b.Write(out.Bytes())
		}
		var short limited
		if err := target.Write(&short); err == nil && out.Len() > 0 {
			t.Errorf("%s: a writer without room is not noticed", target.Path)
		}
	}
	golden.Equal(t, "exports.txt", b.Bytes())
}

// limited is a writer with limited room.
type limited struct{ left int }

var errFull = errors.New("no room")

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// odd returns a sheet with every kind of cell, and columns with equal names.
func odd() *table.Sheet {
	return &table.Sheet{
		Name:    "Odd",
		Columns: []table.Column{{Header: "name"}, {Header: "Lost", Unit: "%", Format: table.General}, {Header: "lost", Unit: "%", Format: table.Integer}, {Header: "95 % ±", Format: table.Fixed1}, {Header: "worker's age [a-b]", Format: table.Fixed3}},
		Rows: [][]table.Cell{
			{table.S("a"), table.N(1.5), table.I(2), table.N(0), table.Missing("why")}, {table.Missing("nobody"), {}, table.S("text"), table.N(-1), table.N(0.25)},
			{table.N(3), table.N(1), table.U(1 << 63), {}, {}},
		},
	}
}

// TestParquetCells checks that text columns are strings, all others numbers, missing values null, and names unique.
func TestParquetCells(t *testing.T) {
	s := odd()
	var out bytes.Buffer
	if err := writeSheet(&out, s); err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, column := range file.Schema().Columns() {
		names = append(names, column[0])
	}
	if want := []string{"name", "lost_pct", "lost_pct_2", "95_pct_half_width", "workers_age_a_b"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	reader := parquet.NewReader(file)
	rows := make([]parquet.Row, 4)
	n, err := reader.ReadRows(rows)
	if n != 3 || err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(n, err)
	}
	want := [][]any{{"a", 1.5, 2.0, 0.0, nil}, {nil, nil, nil, -1.0, 0.25}, {"3", 1.0, nil, nil, nil}}
	for i := range want {
		for k, w := range want[i] {
			v := rows[i][k]
			var have any
			switch {
			case v.IsNull():
			case v.Kind() == parquet.ByteArray:
				have = string(v.ByteArray())
			default:
				have = v.Double()
			}
			if have != w {
				t.Errorf("row %d column %d: %v, want %v", i, k, have, w)
			}
		}
	}
	for room := 0; room < out.Len(); room += 97 {
		if err := writeSheet(&limited{room}, s); err == nil {
			t.Errorf("room for %d of %d bytes is enough", room, out.Len())
		}
	}
}

// TestObservationsOfAnyNumber checks that every frame is in the file with all its fields, for any number of batches.
func TestObservationsOfAnyNumber(t *testing.T) {
	for _, n := range []int{0, 1, 4095, 4096, 4097, 8192} {
		target := Observations("dir", func(each func(*Labelled) error) error {
			for i := range n {
				l := Labelled{Queue: "olaf", OutRateBPS: 40e9, Run: i % 7, Observation: olaf.Observation{
					At: olaf.Time(i), Queued: olaf.Duration(i%3 - 1), Update: olaf.Update{GenNS: uint64(i) + 1, Seq: uint32(i) + 2, Reward: -int32(i), Cluster: olaf.ClusterID(i % 5), Worker: olaf.WorkerID(i % 11), Count: uint16(i%3 + 1), Lanes: 48},
				}}
				for k := range i % 3 {
					l.Observation.Contributors = append(l.Observation.Contributors, olaf.Contributor{GenNS: uint64(i + k), Seq: uint32(k), Worker: olaf.WorkerID(k + 1)})
				}
				if err := each(&l); err != nil {
					return err
				}
			}
			return nil
		})
		if target.Path != filepath.Join("dir", "observations.parquet") || target.Folder != "dir" {
			t.Errorf("%s in %s", target.Path, target.Folder)
		}
		var out bytes.Buffer
		if err := target.Write(&out); err != nil {
			t.Fatal(err)
		}
		rows, err := parquet.Read[observation](bytes.NewReader(out.Bytes()), int64(out.Len()))
		if err != nil || len(rows) != n {
			t.Fatalf("%d of %d rows: %v", len(rows), n, err)
		}
		for i, row := range rows {
			good := row.Queue == "olaf" && row.OutRateBPS == 40e9 && row.Run == int32(i%7) && row.AtPS == int64(i) && row.GenNS == int64(i)+1 && row.Seq == uint32(i)+2 && row.Reward == -int32(i) &&
				row.Cluster == int32(i%5) && row.Worker == int32(i%11) && row.Count == int32(i%3+1) && row.Lanes == 48 && len(row.Contributors) == i%3
			if good = good && (row.QueuedPS != nil) == (i%3 > 0); good && row.QueuedPS != nil {
				good = *row.QueuedPS == int64(i%3-1)
			}
			for k, c := range row.Contributors {
				good = good && c == contributor{int32(k + 1), uint32(k), int64(i + k)}
			}
			if !good {
				t.Fatalf("row %d: %+v", i, row)
			}
		}
		if n > 4096 {
			if err := target.Write(&limited{100}); err == nil {
				t.Error("no room is not noticed")
			}
		}
	}
	wrong := errors.New("a damaged run")
	if err := Observations("d", func(func(*Labelled) error) error { return wrong }).Write(io.Discard); !errors.Is(err, wrong) {
		t.Errorf("%v", err)
	}
}

// TestTargetErrors checks the errors for targets: another file, a missing folder, an invalid name.
func TestTargetErrors(t *testing.T) {
	dir, passing := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", passing) // folder for pending files
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	fine := func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }
	for _, c := range []struct {
		target Target
		force  bool
		want   string
	}{
		{Target{Path: file, Write: fine}, false, "FILE exists; add --force to replace it, or choose another name"},
		{Target{Path: filepath.Join(file, "x"), Write: fine}, true, "FILE/x can't be written: lstat FILE/x: not a directory; choose another place"},
		{Target{Path: filepath.Join(dir, "none", "x"), Write: fine}, false, "DIR/none/x cannot be written: the folder DIR/none does not exist: file does not exist"},
		{Target{Path: filepath.Join(dir, "none", "x"), Write: func(io.Writer) error { return errFull }, Folder: filepath.Join(dir, "none")}, false, "DIR/none/x can't be written: no room; choose another place"},
		{Target{Path: filepath.Join(dir, "none", "x"), Write: fine, Folder: filepath.Join(file, "y")}, false, "DIR/none/x can't be written: mkdir FILE: not a directory; choose another place"},
		{Target{Path: filepath.Join(dir, "new"), Write: fine}, false, ""},
		{Target{Path: filepath.Join(dir, "new"), Write: fine}, false, "DIR/new exists; add --force to replace it, or choose another name"},
		{Target{Path: file, Write: fine}, true, ""},
	} {
		err := Files([]Target{c.target}, c.force)
		if c.want == "" {
			info, failed := os.Stat(c.target.Path)
			raw, _ := os.ReadFile(c.target.Path)
			if err != nil || failed != nil || string(raw) != "new" || info.Mode().Perm() != 0o644 {
				t.Errorf("%s: %v, %v", c.target.Path, err, info)
			}
			continue
		}
		if have := strings.NewReplacer(file, "FILE", dir, "DIR").Replace(fmt.Sprint(err)); have != c.want {
			t.Errorf("%q, want %q", have, c.want)
		}
		if exists := strings.Contains(c.want, "exists;"); exists != errors.Is(err, ErrExists) {
			t.Errorf("%v is ErrExists: %t", err, !exists)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("%v, %v", entries, err)
	}
	for _, d := range []string{passing, filepath.Join(dir, "none")} {
		if left, err := os.ReadDir(d); err != nil || len(left) != 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "none")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the folder that was made: %v, %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "none", "x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a failed export is there: %v", err)
	}
	if kind, _ := olaf.KindOf(ErrExists); kind != olaf.Usage {
		t.Errorf("kind %v", kind)
	}
	second := filepath.Join(dir, "second")
	if err := Files([]Target{{Path: second, Write: fine}, {Path: file, Write: fine}}, false); !errors.Is(err, ErrExists) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(second); !errors.Is(err, fs.ErrNotExist) {
		t.Error("one of two was written though the other is in the way")
	}
}

// TestTargetsWithoutHardLinks checks that a file system without hard links gets complete files and never replaces
// another's.
func TestTargetsWithoutHardLinks(t *testing.T) {
	defer func() { link = os.Link }()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	var theirs []byte
	link = func(from, to string) error {
		if raw, err := os.ReadFile(from); err != nil || string(raw) != "new" || to != path {
			t.Errorf("%s (%q, %v) is linked to %s", from, raw, err, to)
		}
		if theirs != nil { // another process wins the race
			if err := os.WriteFile(path, theirs, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return errors.ErrUnsupported
	}
	for _, theirs = range [][]byte{nil, []byte("theirs")} {
		want, wanted := "new", error(nil)
		if theirs != nil {
			want, wanted = "theirs", ErrExists
		}
		err := Files([]Target{{Path: path, Write: func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }}}, false)
		if raw, failed := os.ReadFile(path); !errors.Is(err, wanted) || failed != nil || string(raw) != want {
			t.Errorf("%q, %v, %v, want %q, %v", raw, failed, err, want, wanted)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// TestParquetNeedsEveryByte checks that a missing byte of a Parquet file is noticed, and that a file names its maker.
func TestParquetNeedsEveryByte(t *testing.T) {
	many := func(each func(*Labelled) error) error {
		for i := range 10_000 {
			if err := each(&Labelled{Observation: olaf.Observation{Update: olaf.Update{Seq: uint32(i * i)}}}); err != nil {
				return err
			}
		}
		return nil
	}
	targets := append(Parquet("parquet", example.Result(2)), Observations("d", many))
	for _, target := range targets {
		var whole bytes.Buffer
		if err := target.Write(&whole); err != nil {
			t.Fatal(err)
		}
		for part := range 40 {
			if err := target.Write(&limited{left: whole.Len() * part / 40}); !errors.Is(err, errFull) {
				t.Errorf("%s with room for %d of 40 parts: %v", target.Path, part, err)
			}
		}
		f, err := parquet.OpenFile(bytes.NewReader(whole.Bytes()), int64(whole.Len()))
		if err != nil {
			t.Fatal(err)
		}
		if by := f.Metadata().CreatedBy; !strings.HasPrefix(by, "olafctl") {
			t.Errorf("%s was made by %q", target.Path, by)
		}
	}
}
