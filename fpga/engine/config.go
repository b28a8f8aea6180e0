package engine

import (
	"fmt"

	"github.com/olafctl/olaf"
)

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
