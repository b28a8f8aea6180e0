package engine

import (
	"fmt"
	"strings"
)

// Kind is what others may ask about a discipline, so that only its own file has to know it by name.
type Kind struct {
	Name          string // in flags, files and reports
	Code          uint32 // in the register queue.mode.discipline
	Merges        bool   // a frame may hold several updates that were offered one by one
	FiltersReward bool   // obeys Config.RewardFilter

	costs map[Profile]Output // engine cycles and nothing else; none in a profile that is left out
	make  func(Config) Discipline
}

// disciplines is every discipline there is, in the order in which reports show them; a new one is a row here.
var disciplines = []Kind{
	{Name: "fifo", Code: 0, make: newFIFO},
	{Name: "olaf", Code: 1, Merges: true, FiltersReward: true, make: newOlaf, costs: map[Profile]Output{
		Calibrated: {DequeueCycles: 2, MergeCycles: 1},
	}},
}

// Names lists the disciplines that New knows, in the order in which reports show them.
func Names() []string {
	names := make([]string, len(disciplines))
	for i, k := range disciplines {
		names[i] = k.Name
	}
	return names
}

// Describe finds a discipline by its name.
func Describe(name string) (k Kind, known bool) {
	for _, k := range disciplines {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}

// Coded finds a discipline by its value in the register queue.mode.discipline.
func Coded(code uint32) (k Kind, known bool) {
	for _, k := range disciplines {
		if k.Code == code {
			return k, true
		}
	}
	return Kind{}, false
}

// New makes an empty discipline. All memory it needs is taken here, except the provenance log, which grows to what the
// traffic needs and then stays. The error matches ErrConfig.
func New(name string, cfg Config) (Discipline, error) {
	k, known := Describe(name)
	if !known {
		return nil, fmt.Errorf("%w: unknown queue %q; there are %s", ErrConfig, name, strings.Join(Names(), ", "))
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return k.make(cfg), nil
}
