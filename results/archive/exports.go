package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/olafctl/olaf/results/report"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/store"
	"github.com/olafctl/olaf/results/xlsx"
)

// Kinds of exports that are reproducible byte for byte.
const (
	KindWorkbook = "xlsx"
	KindReport   = "report"
)

func exporterOf(kind string) (func(io.Writer, *sheets.Result) error, bool) {
	write, ok := map[string]func(io.Writer, *sheets.Result) error{
		KindWorkbook: func(w io.Writer, r *sheets.Result) error { return xlsx.Write(w, sheets.Book(r)) },
		KindReport:   report.Write,
	}[kind]
	return write, ok
}

func exportDigest(kind string, r *sheets.Result) (string, error) {
	write, ok := exporterOf(kind)
	if !ok {
		return "", fmt.Errorf("no export of kind %q", kind)
	}
	h := sha256.New()
	err := write(h, r)
	return hex.EncodeToString(h.Sum(nil)), err
}

// StoreExportDigest stores the digest of an export of the given kind, so that VerifyExports can check later that the
// export is reproducible. tool is the version of the running program.
func StoreExportDigest(s *store.Store, f *store.Folder, kind, tool string, d Declarations, l Layouts) error {
	r, err := LoadExportable(f, d, l)
	if err != nil {
		return err
	}
	sum, err := exportDigest(kind, r)
	if err != nil {
		return err
	}
	return s.SetExport(f.ID(), store.Export{Kind: kind, Tool: tool, SHA256: sum})
}

// unidentified lists texts in version names that do not identify a program, because the Go tool writes the same version
// for all programs built in a working copy.
var unidentified = []string{"(devel)", "+dirty"}

// sameTool reports whether it is certain that an export was made by the program with version tool.
func sameTool(e *store.Export, tool string) bool {
	return e.Tool == tool && !slices.ContainsFunc(unidentified,
		func(mark string) bool { return strings.Contains(tool, mark) })
}

// VerifyExports repeats all stored exports that this version of the tool made and compares their digests. It returns
// the number of these exports, and the number of exports made by other versions, which cannot be compared. If a digest
// differs, the error matches ErrMismatch.
func VerifyExports(s *store.Store, f *store.Folder, tool string, d Declarations, l Layouts) (made, others int,
	err error) {
	exports, err := s.Exports(f.ID())
	if err != nil {
		return 0, 0, err
	}
	var r *sheets.Result
	for _, e := range exports {
		if !sameTool(&e, tool) {
			others++
			continue
		}
		if r == nil {
			if r, err = LoadExportable(f, d, l); err != nil {
				return made, others, err
			}
		}
		sum, err := exportDigest(e.Kind, r)
		if err != nil {
			return made, others, err
		}
		if sum != e.SHA256 {
			return made, others, mismatchError(f, "the %s comes out differently (SHA-256 %.12s…, was %.12s…)", e.Kind,
				sum, e.SHA256)
		}
		made++
	}
	return made, others, nil
}
