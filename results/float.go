package results

import "github.com/olafctl/olaf/results/metric"

// Float is a number that may be missing.
type Float = metric.Float

// Missing is the Float that is not there.
func Missing() Float { return metric.Missing() }
