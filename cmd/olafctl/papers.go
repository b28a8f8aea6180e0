package main

import (
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/paper/olaf"
)

// published are the experiments of every paper that this program reproduces.
func published() experiments.Set { return olaf.Experiments() }
