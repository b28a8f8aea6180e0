package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/text"
)

// Cluster compares an age of a single cluster in one configuration. At least one side was measured in real time or
// compared with the twin. The difference is not tested, because a test for every cluster would weaken the tests of the
// lines.
type Cluster struct {
	Queue      string            `json:"queue"`
	OutRateBPS int64             `json:"out_rate_bps"`
	Cluster    int               `json:"cluster"`
	Metric     string            `json:"metric"` // as in a bench's clusters
	Title      string            `json:"title"`
	A          results.Statistic `json:"a"` // has plan, twin and measured if compared with the twin
	B          results.Statistic `json:"b"`
	ChangePct  results.Float     `json:"change_pct"` // as in a Line
}

// absent is the reason given if a side has no age for a cluster.
const absent = "no valid run with this cluster"

// addClusters adds the ages of single clusters that a metric averages, if a side was measured in real time or compared
// with the twin.
func (d *Document) addClusters(of pair, m *metric.Metric, a, b []*results.Run, real bool) {
	sides := [2]map[int]results.ClusterAge{agesOf(m, a), agesOf(m, b)}
	var ids []int
	for _, side := range sides {
		for id, age := range side {
			ids = append(ids, id)
			real = real || age.TwinComparison != nil
		}
	}
	if !real {
		return
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		line := Cluster{Queue: of.name(), OutRateBPS: of.a.rate, Cluster: id, Title: m.Title, A: results.Describe(nil,
			absent), B: results.Describe(nil, absent)}
		for i, s := range []*results.Statistic{&line.A, &line.B} {
			if age, ok := sides[i][id]; ok {
				*s, line.Metric = age.Statistic, age.Name
			}
		}
		age := func(r *results.Run) results.Float { return r.ClusterAge(id, line.Metric) }
		line.ChangePct = changeOf(pairsBy(age, a, b), &line.A, &line.B)
		if line.isKnown() {
			d.Clusters = append(d.Clusters, line)
		}
	}
}

// isKnown reports whether at least one side has an age to show.
func (c *Cluster) isKnown() bool {
	return c.A.Known() || c.B.Known() || c.A.TwinComparison != nil && c.A.Twin.Known() || c.B.TwinComparison != nil && c.B.Twin.Known()
}

// agesOf returns, for each cluster, the age that a metric averages over clusters.
func agesOf(m *metric.Metric, runs []*results.Run) map[int]results.ClusterAge {
	of := map[int]results.ClusterAge{}
	for _, age := range results.ClusterAges(runs) {
		if age.Total == m.Name {
			of[age.Cluster] = age
		}
	}
	return of
}

// mostClusters is the maximum number of cluster lines that are shown by default.
const mostClusters = 12

// shownClusters returns the cluster lines to show, in order. If all is not set, these are only the lines with the
// largest changes.
func (d *Document) shownClusters(all bool) []Cluster {
	if all || len(d.Clusters) <= mostClusters {
		return d.Clusters
	}
	places := make([]int, len(d.Clusters))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(i, j int) int { return cmp.Compare(d.Clusters[j].size(), d.Clusters[i].size()) })
	places = places[:mostClusters]
	slices.Sort(places)
	shown := make([]Cluster, len(places))
	for i, at := range places {
		shown[i] = d.Clusters[at]
	}
	return shown
}

// size returns the size of the change in a line. It is NaN if the change is unknown; cmp.Compare sorts NaN first.
func (c *Cluster) size() float64 { return math.Abs(float64(c.ChangePct)) }

// printClusters prints the ages of single clusters and returns the number of lines that were not printed.
func (d *Document) printClusters(all bool, print func(title string, s *table.Sheet) error) (hidden int, err error) {
	shown := d.shownClusters(all)
	hidden = len(d.Clusters) - len(shown)
	if len(shown) == 0 {
		return hidden, nil
	}
	title := "ages of single clusters, not tested; TWIN is the twin's age for the logged arrivals"
	if hidden > 0 {
		title = fmt.Sprintf("%s; the %d that changed most", title, len(shown))
	}
	return hidden, print(title, clusterSheet(shown))
}

func clusterSheet(lines []Cluster) *table.Sheet {
	number := table.General
	s := &table.Sheet{Columns: []table.Column{{Header: "AGE", Prose: true}, {Header: "QUEUE"}, {Header: "OUT"},
		{Header: "CLUSTER", Format: number}, {Header: "A", Format: number},
		{Header: "B", Format: number}, {Header: "CHANGE", Format: number}, {Header: "TWIN OF A", Format: number,
			Spare: 1}, {Header: "TWIN OF B", Format: number, Spare: 1}}}
	for i := range lines {
		l := &lines[i]
		s.Rows = append(s.Rows, []table.Cell{table.S(l.Title), table.S(l.Queue),
			table.S(olaf.Rate(l.OutRateBPS).String()), table.S(fmt.Sprint(l.Cluster)), table.S(text.Duration(l.A.Mean)),
			table.S(text.Duration(l.B.Mean)), table.S(text.Percent(l.ChangePct)), table.S(twinOf(&l.A)), table.S(twinOf(&l.B))})
	}
	return s
}

// twinOf returns the twin's age in a statistic as text.
func twinOf(s *results.Statistic) string {
	if s.TwinComparison == nil {
		return text.Missing
	}
	return text.Duration(s.Twin)
}
