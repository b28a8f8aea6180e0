package capture

import (
	"fmt"
	"strconv"

	"github.com/olafctl/olaf/capture/ages"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/text"
)

// agesShown is how many clusters are listed for people; documents have them all.
const agesShown = 16

// addAges puts the ages among the counters of a document for scripts; one that is missing is empty and says why.
func addAges(list *cli.Grid, prefix string, a *ages.Ages) {
	for m, v := range a.Metrics.All {
		value, meaning := "", a.Missing[m.Name]
		if v.Known() {
			value, meaning = strconv.FormatFloat(float64(v), 'f', -1, 64), m.Doc
		}
		list.Add(prefix+m.Name, value, meaning)
	}
}

// printAges prints ages for people, or why there are none.
func printAges(env *cli.Env, of string, a *ages.Ages) error {
	if !a.Available() {
		_, err := fmt.Fprintf(env.Stdout, "\nno ages %s: %s\n", of, a.Why)
		return err
	}
	clock := ""
	if a.Clock == ages.WallClock {
		clock = ", as right as the hosts' clocks agree"
	}
	fmt.Fprintf(env.Stdout, "\nAge of Model %s, from first to last delivery%s\n", of, clock)
	list := cli.Grid{Header: []string{"CLUSTER", "DELIVERIES", "PER CLUSTER", "PER WORKER", "PEAK"}}
	deliveries := int64(0)
	for i := range a.Clusters {
		deliveries += a.Clusters[i].Deliveries
	}
	list.Add("mean of all", strconv.FormatInt(deliveries, 10), age(a.Metrics.Of(perCluster)), age(a.Metrics.Of(perWorker)), age(a.Metrics.Of("peak_aom_ns")))
	for i := range a.Clusters[:min(len(a.Clusters), agesShown)] {
		c := &a.Clusters[i]
		list.Add(strconv.Itoa(c.Cluster), strconv.FormatInt(c.Deliveries, 10), age(c.AoM), age(c.AoMWorker), age(c.PeakAoM))
	}
	if err := list.Write(env, cli.Table); err != nil {
		return err
	}
	if more := len(a.Clusters) - agesShown; more > 0 {
		fmt.Fprintf(env.Stdout, "and %d more, which -o json lists\n", more)
	}
	for _, name := range []string{perCluster, perWorker} {
		if why, missing := a.Missing[name]; missing {
			fmt.Fprintf(env.Stdout, "no %s: %s\n", name, why)
		}
	}
	return nil
}

// The metrics that are shown for people.
const (
	perCluster = "aom_cluster_ns"
	perWorker  = "aom_worker_ns"
)

// age is a span of ns for people.
func age(ns results.Float) string {
	if !ns.Known() {
		return text.Missing
	}
	stat := results.Describe([]results.Float{ns}, "")
	return text.Age(&stat)
}
