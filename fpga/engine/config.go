package engine

import (
	"fmt"
	"math"

	"github.com/olafctl/olaf"
)

// FixedReward converts a threshold for the reward filter to fixed point, Q24.8. It returns an error if the threshold is
// out of range.
func FixedReward(threshold float64) (int32, error) {
	fixed := math.Round(threshold * 256)
	if !(fixed >= 0 && fixed <= math.MaxInt32) { // false for NaN
		return 0, fmt.Errorf("reward threshold %v; use 0 to below %d", threshold, (math.MaxInt32+1)/256)
	}
	return int32(fixed), nil
}

// FilteringNames returns the names of the disciplines that have a reward filter, in the order in which reports list
// them.
func FilteringNames() (names []string) {
	for _, k := range disciplines {
		if k.FiltersReward {
			names = append(names, k.Name)
		}
	}
	return names
}

// Validate returns an error for the first field that is out of range. The error includes the permitted range and
// matches ErrConfig.
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

// checkRange returns an error if value is not in the range from low to high.
func checkRange(what string, value, low, high int) error {
	if value >= low && value <= high {
		return nil
	}
	return fmt.Errorf("%w: %s is %d; it must be %d to %d", ErrConfig, what, value, low, high)
}
