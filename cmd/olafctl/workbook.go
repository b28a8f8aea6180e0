package main

import (
	"errors"
	"fmt"

	"github.com/google/renameio/v2"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/xlsx"
)

// writeWorkbook writes a report as a workbook; the file appears only when it is complete.
func writeWorkbook(path string, r *experiments.BenchReport) (err error) {
	pending, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o644))
	if err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, pending.Cleanup()) }()
	if err := xlsx.Write(pending, sheets.Book(r.Result())); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return pending.CloseAtomicallyReplace()
}
