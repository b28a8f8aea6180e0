package program

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
)

// Limits are what a program can be built as.
type Limits struct {
	Name     string   // of the system, in errors
	Profiles []string // of which the first is meant by none
	Slots    int      // the largest table
	Reach    string   // what bounds it, such as "an index of 16 bits reaches"; empty where nothing on the wire does
	Default  int      // the table where none is asked for
	Places   string   // what its slots are called
	// Unwrapped says why segments beyond the table can't use it again; empty where they can.
	Unwrapped string
}

// Fill checks a configuration and sets what it leaves out. The error matches ErrConfig.
func (l Limits) Fill(cfg Config) (Config, error) {
	if cfg.Slots == 0 {
		cfg.Slots = l.Default
	}
	if cfg.Profile == "" {
		cfg.Profile = l.Profiles[0]
	}
	switch {
	case !slices.Contains(l.Profiles, cfg.Profile):
		return cfg, fmt.Errorf("%w: %s has no profile %q; it has %s", ErrConfig, l.Name, cfg.Profile,
			strings.Join(l.Profiles, ", "))
	case cfg.Slots < 1 || cfg.Slots > l.Slots:
		return cfg, fmt.Errorf("%w: %d %s; %s 1 to %d", ErrConfig, cfg.Slots, l.Places, cmp.Or(l.Reach, "there can be"),
			l.Slots)
	case cfg.LaneMemory < 0 || cfg.LaneMemory > olaf.MaxLanes:
		return cfg, fmt.Errorf("%w: %d lanes for each of the %s; there can be 0 to %d", ErrConfig, cfg.LaneMemory,
			l.Places, olaf.MaxLanes)
	case cfg.Wrap && l.Unwrapped != "":
		return cfg, fmt.Errorf("%w: %s; there is nothing to wrap", ErrConfig, l.Unwrapped)
	}
	return cfg, nil
}
