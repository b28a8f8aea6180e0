package program

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
)

// Limits contains the build limits and the names of a program, for checking configurations.
type Limits struct {
	Name     string   // name of the system for errors
	Profiles []string // the first is the default
	Slots    int      // slots in the largest table
	Reach    string   // phrase for this limit in errors, such as "an index of 16 bits reaches"; empty if the wire format sets none
	Default  int      // default number of slots
	Places   string   // word for slots in errors
	// Unwrapped explains why segments beyond the table cannot reuse its slots; empty if they can.
	Unwrapped string
}

// FillConfig checks a configuration and returns it with defaults filled in. The error matches ErrConfig.
func (l Limits) FillConfig(cfg Config) (Config, error) {
	cfg.Slots = cmp.Or(cfg.Slots, l.Default)
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
