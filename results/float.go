package results

import "github.com/olafctl/olaf/results/metric"

// Float is a floating-point number that may be missing.
type Float = metric.Float

// Missing returns the missing Float.
func Missing() Float { return metric.Missing() }
