package engine

import (
	"fmt"

	"github.com/olafctl/olaf"
)

// Validate returns an error for the first field out of range, with the range. The error matches ErrConfig.
func (c *Config) Validate() error {
	if err := checkRange("slots", c.Slots, 1, MaxSlots); err != nil {
		return err
	}
	if err := checkRange("clusters", c.Clusters, 1, MaxClusters); err != nil {
		return err
	}
	if err := checkRange("lane memory", c.LaneMemory, 0, olaf.MaxLanes); err != nil {
		return err
	}
	if c.RewardThreshold < 0 {
		return fmt.Errorf("%w: the reward threshold is %d; it must not be negative", ErrConfig, c.RewardThreshold)
	}
	return nil
}

// checkRange returns an error if value is outside of low … high.
func checkRange(what string, value, low, high int) error {
	if value >= low && value <= high {
		return nil
	}
	return fmt.Errorf("%w: %s is %d; it must be %d to %d", ErrConfig, what, value, low, high)
}
