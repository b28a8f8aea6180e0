package rl

import (
	"fmt"

	"github.com/olafctl/olaf"
)

// ErrDiverged is matched by errors from training runs whose weights or gradients became NaN or infinite, or whose
// weights grew beyond maxGrowth.
var ErrDiverged = olaf.NewError(olaf.Failed, "the training diverged")

// maxGrowth is the ratio between the norm of a model's weights and that of its initial weights above which training is
// considered to have diverged. While training improves the reward, the ratio stays below 1.5. It passes 5 with a
// learning rate of 0.03, and 50 with a rate of 1, at which the reward falls below that of the untrained policy.
const maxGrowth = 10

// CheckWeights returns an error that matches ErrDiverged if a cluster's weights are not finite or have grown beyond
// maxGrowth.
func (c *Config) CheckWeights(cluster int, w *Weights) error {
	switch growth := gradientNorm(w) / gradientNorm(c.Initial(cluster)); {
	case growth-growth != 0:
		return fmt.Errorf("%w: cluster %d: weights are no numbers at the end; use a smaller learn rate or step size", ErrDiverged, cluster)
	case growth > maxGrowth:
		return fmt.Errorf("%w: cluster %d: the norm of its weights is %.3g times that of its start, more than %d; "+
			"use a smaller learn rate or step size", ErrDiverged, cluster, growth, maxGrowth)
	}
	return nil
}

// checkWeights returns the number of clusters whose training diverged, and the error for the first of them.
func (o *Outcome) checkWeights(c *Config) (n int, first error) {
	for i := range o.Weights {
		if err := c.CheckWeights(i, &o.Weights[i]); err != nil {
			if n++; first == nil {
				first = err
			}
		}
	}
	return n, first
}
