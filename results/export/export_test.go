package export

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/olafctl/olaf/results/figure"
	"github.com/olafctl/olaf/results/internal/test/example"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/table"
)

func TestFilesAreWholeOrNotThere(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "old")
	if err := os.WriteFile(old, []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	fine := func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }
	fresh := filepath.Join(dir, "sub", "fresh")
	targets := []Target{{fresh, fine, filepath.Dir(fresh)}, {Path: old, Write: fine}}
	if err := Files(targets, false); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), "--force") {
		t.Fatal(err)
	}
	if _, err := os.Stat(fresh); err == nil {
		t.Error("a file was written though another target exists")
	}
	boom := errors.New("disk full")
	if err := Files([]Target{{Path: old, Write: func(w io.Writer) error { return errors.Join(fine(w), boom) }}}, true); !errors.Is(err, boom) {
		t.Fatal(err)
	}
	if raw, _ := os.ReadFile(old); string(raw) != "kept" {
		t.Errorf("a failed export left %q", raw)
	}
	if err := Files(targets, true); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("something is left over: %v", entries)
	}
	if err := Files([]Target{{Path: filepath.Join(old, "below"), Write: fine}}, true); err == nil {
		t.Error("a file below a file")
	}
	if err := Files([]Target{{Path: filepath.Join(dir, "none", "file"), Write: fine}}, true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder was made for a single file: %v", err)
	}
	raced := filepath.Join(dir, "raced")
	quicker := func(io.Writer) error { return os.WriteFile(raced, []byte("kept"), 0o644) }
	if err := Files([]Target{{Path: raced, Write: quicker}}, false); !errors.Is(err, ErrExists) {
		t.Errorf("somebody else was quicker: %v", err)
	}
}

func TestEveryExport(t *testing.T) {
	r := example.Result(3)
	dir := t.TempDir()
	if err := Files(Figures(dir, "jpg", r), false); err == nil {
		t.Error("jpg")
	}
	targets := slices.Concat(Figures(filepath.Join(dir, "svg"), "svg", r), Figures(filepath.Join(dir, "pdf"), "pdf", r))
	targets = append(targets, workbook(filepath.Join(dir, "o.xlsx"), r), Report(filepath.Join(dir, "o.html"), r), Document(filepath.Join(dir, "o.json"), r.Bench))
	targets = append(append(targets, csv(filepath.Join(dir, "csv"), r)...), Parquet(filepath.Join(dir, "parquet"), r)...)
	targets = append(targets, Observations(filepath.Join(dir, "parquet"), func(each func(*Labelled) error) error {
		for i := range r.Samples {
			if err := each(&r.Samples[i]); err != nil {
				return err
			}
		}
		return nil
	}))
	if err := Files(targets, false); err != nil {
		t.Fatal(err)
	}
	for _, target := range targets {
		var again bytes.Buffer
		if err := target.Write(&again); err != nil {
			t.Fatal(err)
		}
		if raw, err := os.ReadFile(target.Path); err != nil || !bytes.Equal(raw, again.Bytes()) {
			t.Errorf("%s: two writings differ (%v)", target.Path, err)
		}
	}
	checkSheets(t, filepath.Join(dir, "parquet"), r)
	rows, err := parquet.ReadFile[observation](filepath.Join(dir, "parquet", "observations.parquet"))
	if err != nil || len(rows) != len(r.Samples) {
		t.Fatal(len(rows), err)
	}
	for i, row := range rows {
		o := &r.Samples[i].Observation
		if row.AtPS != int64(o.At) || row.GenNS != int64(o.Update.GenNS) || len(row.Contributors) != len(o.Contributors) || *row.QueuedPS != int64(o.Queued) {
			t.Fatalf("row %d: %+v", i, row)
		}
	}
}

// checkSheets reads every table back and compares cell by cell.
func checkSheets(t *testing.T, dir string, r *sheets.Result) {
	t.Helper()
	for _, s := range sheets.Book(r).Sheets {
		if s.Name == "Events" {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, FileName(&s)+".parquet"))
		if err != nil {
			t.Fatal(err)
		}
		file, err := parquet.OpenFile(bytes.NewReader(raw), int64(len(raw)))
		if err != nil || file.NumRows() != int64(len(s.Rows)) {
			t.Fatalf("%s: %v", s.Name, err)
		}
		for i, column := range file.Schema().Columns() {
			if want := columnName(s.Columns[i]); !strings.HasPrefix(column[0], want) {
				t.Errorf("%s: column %d is %s, want %s", s.Name, i, column[0], want)
			}
		}
		reader := parquet.NewReader(file)
		rows := make([]parquet.Row, len(s.Rows)+1)
		n, err := reader.ReadRows(rows)
		if n != len(s.Rows) || err != nil && err != io.EOF {
			t.Fatal(n, err)
		}
		for i := range n {
			for k, v := range rows[i] {
				if want := valueOf(s.Rows[i][k], s.Columns[k]); v.IsNull() != want.IsNull() || !v.IsNull() && !parquet.Equal(v, want) {
					t.Errorf("%s row %d column %d: %v, want %v", s.Name, i, k, v, want)
				}
			}
		}
	}
}

func TestNamesOfFiles(t *testing.T) {
	for name, want := range map[string]string{"Fig. 10 age": "fig10-age", "Table 2 readings": "table2-readings", "Fig. 7 20 active": "fig7-20-active", "CDF": "cdf", "Sweep phase": "sweep-phase"} {
		if got := FileName(&table.Sheet{Name: name}); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestCSVExportsQuoteFormulasButNoNumbers(t *testing.T) {
	for text, want := range map[string]string{
		"=cmd()": "'=cmd()", "+1+2": "'+1+2", "-A1": "'-A1", "@SUM(1)": "'@SUM(1)", "\t=1": "'\t=1",
		"-1.5": "-1.5", "+3": "+3", "-1e-9": "-1e-9", "-Inf": "-Inf", "a=b": "a=b", "": "", "Größe": "Größe",
	} {
		s := table.Sheet{Columns: []table.Column{{Header: text}}, Rows: [][]table.Cell{{table.S(text)}, {table.N(-2)}}}
		kept := s.Rows[0][0]
		quoted := s
		quoteFormulas(&quoted)
		if got := quoted.Rows[0][0].Text; got != want || quoted.Columns[0].Header != want {
			t.Errorf("text %q is exported as %q under the header %q, want %q", text, got, quoted.Columns[0].Header, want)
		}
		if quoted.Rows[1][0].Number != -2 || s.Rows[0][0] != kept {
			t.Errorf("exporting %q changed a number, or the sheet that other formats share", text)
		}
	}
}

// TestFiguresOfThePaperComeFirst checks the order in which figures are written: numbered figures and tables, published numbers, others.
func TestFiguresOfThePaperComeFirst(t *testing.T) {
	r := example.Result(3)
	all := sheets.Book(r).Sheets
	own := all[slices.IndexFunc(all, func(s table.Sheet) bool { return figure.HasData(&s) })]
	other, printed, paper := own, own, own
	other.Name, printed.Name, paper.Name = "Other", sheets.PublishedName, "Fig. 6 shares"
	r.Own = []table.Sheet{other, printed, paper}
	got := Figures("svg", "svg", r)
	at := func(name string) int {
		return slices.IndexFunc(got, func(t Target) bool { return t.Path == filepath.Join("svg", name) })
	}
	if at("fig6-shares.svg") != 0 || at("paper.svg") != 1 || at("other.svg") < 2 {
		t.Errorf("fig6-shares.svg must be first, then paper.svg, not %v", got)
	}
}
