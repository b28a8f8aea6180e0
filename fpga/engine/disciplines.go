package engine

import (
	"fmt"
	"slices"
	"strings"
)

// Kind describes a discipline for code outside the discipline's own file.
type Kind struct {
	Name          string // name in flags, files and reports
	Code          uint32 // value of the register queue.mode.discipline
	Merges        bool   // a frame may contain several updates offered one by one
	FiltersReward bool   // supports Config.RewardFilter

	costs map[Profile]Output // engine cycles; profiles that are not listed cost none
	make  func(Config) Discipline
}

// disciplines lists all disciplines in the order in which reports list them. Add new disciplines here.
var disciplines = []Kind{
	{Name: "fifo", Code: 0, make: newFIFO},
	{Name: "olaf", Code: 1, Merges: true, FiltersReward: true, make: newOlaf, costs: map[Profile]Output{
		Calibrated: {DequeueCycles: 2, MergeCycles: 1},
	}},
}

// DisciplineNames returns the names that New accepts, in the order in which reports list them.
func DisciplineNames() []string {
	names := make([]string, len(disciplines))
	for i, k := range disciplines {
		names[i] = k.Name
	}
	return names
}

// FindDiscipline returns the discipline with the given name; known is false if there is none.
func FindDiscipline(name string) (k Kind, known bool) {
	return findKind(func(k Kind) bool { return k.Name == name })
}

// FindByCode returns the discipline with the given code in register queue.mode.discipline; known is false if there is
// none.
func FindByCode(code uint32) (k Kind, known bool) {
	return findKind(func(k Kind) bool { return k.Code == code })
}

func findKind(matches func(Kind) bool) (k Kind, known bool) {
	if i := slices.IndexFunc(disciplines, matches); i >= 0 {
		return disciplines[i], true
	}
	return Kind{}, false
}

// New returns the named discipline with an empty queue. It allocates all memory except that for the provenance log,
// which grows as needed and is reused. The error matches ErrConfig.
func New(name string, cfg Config) (Discipline, error) {
	k, known := FindDiscipline(name)
	if !known {
		return nil, fmt.Errorf("%w: unknown queue %q; there are %s", ErrConfig, name, strings.Join(DisciplineNames(), ", "))
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return k.make(cfg), nil
}
