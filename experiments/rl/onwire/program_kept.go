package onwire

import (
	"fmt"
	"os"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/store"
)

// IsProgramKept reports whether a stored run contains training that was done by users' programs.
func IsProgramKept(f *store.Folder) bool {
	_, err := os.Stat(f.Path(ProgramFile))
	return err == nil
}

// VerifyPrograms redraws the curves of stored training by programs from the points, compares them, and returns the
// number of training runs. The runs themselves cannot be repeated: they depend on the programs, and on real time unless
// the computing time is given. The error matches archive.ErrMismatch or store.ErrDamaged.
func VerifyPrograms(f *store.Folder) (trainings int, err error) {
	var document struct {
		result.Result
		Config *Program `json:"config"`
	}
	if err := f.ReadJSON(archive.DocumentFile, &document); err != nil {
		return 0, err
	}
	if document.Config == nil {
		return 0, fmt.Errorf("%w: %s: it does not describe the training", store.ErrDamaged, f.ID())
	}
	runs, err := readLines[ProgramRun](f, ProgramFile)
	if err != nil {
		return 0, err
	}
	if why := results.Difference(document.Panels, document.Config.report(runs).Panels); why != "" {
		return 0, fmt.Errorf("%w: the curves: %s", archive.ErrMismatch, why)
	}
	return len(runs), nil
}
