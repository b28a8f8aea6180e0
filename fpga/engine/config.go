package engine

import (
	"fmt"
	"strings"

	"github.com/olafctl/olaf"
)

// disciplines is every engine there is; a new one is a line here.
var disciplines = []struct {
	name string
	make func(Config) Engine
}{
	{"fifo", newFIFO},
	{"olaf", newOlaf},
}

// Names lists the engines that New knows, in the order in which reports show them.
func Names() []string {
	names := make([]string, len(disciplines))
	for i, d := range disciplines {
		names[i] = d.name
	}
	return names
}

// New makes an empty engine of the named discipline. All memory it needs is taken here, except the provenance log, which
// grows to what the traffic needs and then stays. The error matches ErrConfig.
func New(name string, cfg Config) (Engine, error) {
	for _, d := range disciplines {
		if d.name != name {
			continue
		}
		if err := cfg.Validate(); err != nil {
			return nil, err
		}
		return d.make(cfg), nil
	}
	return nil, fmt.Errorf("%w: unknown queue %q; there are %s", ErrConfig, name, strings.Join(Names(), ", "))
}

// Validate says what is out of range and what the range is. The error matches ErrConfig.
func (c *Config) Validate() error {
	if err := within("slots", c.Slots, 1, MaxSlots); err != nil {
		return err
	}
	if err := within("clusters", c.Clusters, 1, MaxClusters); err != nil {
		return err
	}
	if err := within("lane memory", c.LaneMemory, 0, olaf.MaxLanes); err != nil {
		return err
	}
	if c.RewardThreshold < 0 {
		return fmt.Errorf("%w: the reward threshold is %d; it must not be negative", ErrConfig, c.RewardThreshold)
	}
	return nil
}

// within refuses a value outside of low … high.
func within(what string, value, low, high int) error {
	if value >= low && value <= high {
		return nil
	}
	return fmt.Errorf("%w: %s is %d; it must be %d to %d", ErrConfig, what, value, low, high)
}
