package capture

import (
	"fmt"
	"strconv"

	"github.com/olafctl/olaf/capture/ages"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/text"
)

// agesShown is the number of clusters in the table; documents list all.
const agesShown = 16

// addAges adds the ages as counters of a CSV document. A missing age has an empty value and the reason as its meaning.
func addAges(list *cli.Grid, prefix string, a *ages.Ages) {
	for m, v := range a.Metrics.All {
		value, meaning := "", a.Missing[m.Name]
		if v.Known() {
			value, meaning = strconv.FormatFloat(float64(v), 'f', -1, 64), m.Doc
		}
		list.Add(prefix+m.Name, value, meaning)
	}
}

// printAges prints ages as a table, or the reason why there are none.
func printAges(env *cli.Env, of string, a *ages.Ages) error {
	if !a.Available() {
		_, err := fmt.Fprintf(env.Stdout, "\nno ages %s: %s\n", of, a.Why)
		return err
	}
	clock := ""
	if a.Clock == ages.WallClock {
		clock = ", as exact as the hosts' clocks agree"
	}
	fmt.Fprintf(env.Stdout, "\nAge of Model %s, from first to last delivery%s\n", of, clock)
	list := cli.Grid{Header: []string{"CLUSTER", "DELIVERIES", "PER CLUSTER", "PER WORKER", "PEAK"}}
	deliveries := int64(0)
	for i := range a.Clusters {
		deliveries += a.Clusters[i].Deliveries
	}
	list.Add("mean of all", strconv.FormatInt(deliveries, 10), formatAge(a.Metrics.Of(perCluster)),
		formatAge(a.Metrics.Of(perWorker)), formatAge(a.Metrics.Of("peak_aom_ns")))
	for i := range a.Clusters[:min(len(a.Clusters), agesShown)] {
		c := &a.Clusters[i]
		list.Add(strconv.Itoa(c.Cluster), strconv.FormatInt(c.Deliveries, 10), formatAge(c.AoM), formatAge(c.AoMWorker),
			formatAge(c.PeakAoM))
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

// Metrics in the table.
const (
	perCluster = "aom_cluster_ns"
	perWorker  = "aom_worker_ns"
)

// formatAge formats an age in ns.
func formatAge(ns results.Float) string {
	if !ns.Known() {
		return text.Missing
	}
	stat := results.Describe([]results.Float{ns}, "")
	return text.Age(&stat)
}
