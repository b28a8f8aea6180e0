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

// Cluster is an age of one cluster of a configuration on both sides, of which one at least left real wires or was set beside the twin.
// It is shown and not tested: a test a cluster would wear down those of the lines.
type Cluster struct {
	Queue      string            `json:"queue"`
	OutRateBPS int64             `json:"out_rate_bps"`
	Cluster    int               `json:"cluster"`
	Metric     string            `json:"metric"` // as of a bench's clusters
	Title      string            `json:"title"`
	A          results.Statistic `json:"a"` // with plan, twin and measured where it was set beside the twin
	B          results.Statistic `json:"b"`
	ChangePct  results.Float     `json:"change_pct"` // as of a Line
}

// absent is why a side has no age of a cluster.
const absent = "no valid run with this cluster"

// clusters takes up the ages of single clusters of which a metric is the mean, where a side is real or was set beside the twin.
func (d *Document) clusters(of pair, m *metric.Metric, a, b []*results.Run, real bool) {
	sides := [2]map[int]results.ClusterAge{agesOf(m, a), agesOf(m, b)}
	var ids []int
	for _, side := range sides {
		for id, age := range side {
			ids = append(ids, id)
			real = real || age.Beside != nil
		}
	}
	if !real {
		return
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		line := Cluster{Queue: of.name(), OutRateBPS: of.a.rate, Cluster: id, Title: m.Title, A: results.Describe(nil, absent), B: results.Describe(nil, absent)}
		for i, s := range []*results.Statistic{&line.A, &line.B} {
			if age, ok := sides[i][id]; ok {
				*s, line.Metric = age.Statistic, age.Name
			}
		}
		age := func(r *results.Run) results.Float { return r.ClusterAge(id, line.Metric) }
		line.ChangePct = changeOf(pairsBy(age, a, b), &line.A, &line.B)
		if line.told() {
			d.Clusters = append(d.Clusters, line)
		}
	}
}

// told says whether either side has anything to show.
func (c *Cluster) told() bool {
	return c.A.Known() || c.B.Known() || c.A.Beside != nil && c.A.Twin.Known() || c.B.Beside != nil && c.B.Twin.Known()
}

// agesOf are the ages, by cluster, of which a metric is the mean.
func agesOf(m *metric.Metric, runs []*results.Run) map[int]results.ClusterAge {
	of := map[int]results.ClusterAge{}
	for _, age := range results.ClusterAges(runs) {
		if age.Total == m.Name {
			of[age.Cluster] = age
		}
	}
	return of
}

// mostClusters is how many lines of clusters people are shown who do not ask for all.
const mostClusters = 12

// shownClusters are the lines to show in their order: all, or those that changed most.
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

// size is by how much a line changed; one whose change is not known is no number, which cmp.Compare takes for the least.
func (c *Cluster) size() float64 { return math.Abs(float64(c.ChangePct)) }

// printClusters gives the ages of single clusters to print, and returns how many lines were left out.
func (d *Document) printClusters(all bool, print func(title string, s *table.Sheet) error) (hidden int, err error) {
	shown := d.shownClusters(all)
	hidden = len(d.Clusters) - len(shown)
	if len(shown) == 0 {
		return hidden, nil
	}
	title := "ages of single clusters, not tested; TWIN is that of the arrivals that were logged"
	if hidden > 0 {
		title = fmt.Sprintf("%s; the %d that changed most", title, len(shown))
	}
	return hidden, print(title, clusterSheet(shown))
}

func clusterSheet(lines []Cluster) *table.Sheet {
	number := table.General
	s := &table.Sheet{Columns: []table.Column{{Header: "AGE", Prose: true}, {Header: "QUEUE"}, {Header: "OUT"}, {Header: "CLUSTER", Format: number}, {Header: "A", Format: number},
		{Header: "B", Format: number}, {Header: "CHANGE", Format: number}, {Header: "TWIN OF A", Format: number, Spare: 1}, {Header: "TWIN OF B", Format: number, Spare: 1}}}
	for i := range lines {
		l := &lines[i]
		s.Rows = append(s.Rows, []table.Cell{table.S(l.Title), table.S(l.Queue), table.S(olaf.Rate(l.OutRateBPS).String()), table.S(fmt.Sprint(l.Cluster)), table.S(text.Duration(l.A.Mean)),
			table.S(text.Duration(l.B.Mean)), table.S(change(l.ChangePct)), table.S(twinOf(&l.A)), table.S(twinOf(&l.B))})
	}
	return s
}

// twinOf is the twin's of an age.
func twinOf(s *results.Statistic) string {
	if s.Beside == nil {
		return text.Missing
	}
	return text.Duration(s.Twin)
}
