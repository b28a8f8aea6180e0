package main

import "github.com/olafctl/olaf/experiments"

// published are the experiments of every paper that this program reproduces.
func published() experiments.Set { return experiments.Experiments() }
