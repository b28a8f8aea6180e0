package capture

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture/ages"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/text"
)

// agesShown is the maximum number of clusters in the printed table. The JSON output lists all clusters.
const agesShown = 16

// addAges adds the ages as counters to a CSV document. A missing age has an empty value and the reason in place of its
// meaning.
func addAges(list *cli.Grid, prefix string, a *ages.Ages) {
	for m, v := range a.Metrics.All {
		value, meaning := "", a.Missing[m.Name]
		if v.Known() {
			value, meaning = strconv.FormatFloat(float64(v), 'f', -1, 64), m.Doc
		}
		list.Add(prefix+m.Name, value, meaning)
	}
	if a.Clock != ages.WallClock {
		return
	}
	value := ""
	if a.ClockErrorNS.Known() {
		value = strconv.FormatInt(int64(a.ClockErrorNS), 10)
	}
	list.Add(prefix+"clock_error_ns", value, "largest difference between the clocks of packets and workers")
}

// addAgesTo adds the ages and their clock error to a stored run. These ages are not compared with published numbers.
func addAgesTo(run *cli.CountedRun, prefix string, a *ages.Ages) {
	if !a.Available() {
		run.Remarks = append(run.Remarks, "no ages "+prefix+": "+a.Reason)
		return
	}
	for m, v := range a.Metrics.All {
		named := *m
		if named.Name = prefix + m.Name; prefix != "" {
			named.Title += ", as captured"
		}
		run.Measures = append(run.Measures, cli.Measure{Metric: &named, Value: v})
	}
	clock := result.NewMetric(prefix+"clock_error_ns", "Clock error", "ns")
	run.Measures = append(run.Measures, cli.Measure{Metric: clock, Value: a.ClockErrorNS})
	if !a.ClockErrorNS.Known() {
		run.Remarks = append(run.Remarks, "the clock error of the ages is unknown")
	}
}

// printAges prints ages as a table, or the reason why there are none.
func printAges(env *cli.Env, of string, a *ages.Ages) error {
	if !a.Available() {
		_, err := fmt.Fprintf(env.Stdout, "\nno ages %s: %s\n", of, a.Reason)
		return err
	}
	fmt.Fprintf(env.Stdout, "\nAge of Model %s, from first to last delivery%s\n", of, describeClock(a))
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

// describeClock describes the error that the hosts' clocks may add to ages. It returns "" if the ages were measured
// with a run's own clock.
func describeClock(a *ages.Ages) string {
	switch {
	case a.Clock != ages.WallClock:
		return ""
	case !a.ClockErrorNS.Known():
		return "; clock error unknown (--clock-error)"
	case a.ClockErrorNS == 0:
		return "; packets and workers share one clock"
	}
	return fmt.Sprintf("; clock error at most %v", olaf.Duration(a.ClockErrorNS)*olaf.Nanosecond)
}

// clockErrorFlag adds --clock-error and returns a function that reads its value, or nil if the flag is not given.
func clockErrorFlag(cmd *cobra.Command) func() (*int64, error) {
	var d olaf.Duration
	cmd.Flags().Var(&d, "clock-error",
		"largest difference between the clocks of packets and workers, such as 20us; 0s for one clock")
	return func() (*int64, error) {
		if !cmd.Flags().Changed("clock-error") {
			return nil, nil
		}
		if d < 0 {
			return nil, cli.UsageError("--clock-error %v is negative; it is a bound in either direction", d)
		}
		ns := int64((d + olaf.Nanosecond - 1) / olaf.Nanosecond)
		return &ns, nil
	}
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
