package results

import (
	"encoding/json"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/metric"
)

// BenchSchema names the document a Bench is.
const BenchSchema = "olafctl.bench/v3"

// Bench is the result of one experiment: every configuration that ran, their comparisons, and the paper beside them.
// Everything but Provenance is a function of the specification and the seed alone.
type Bench struct {
	Schema     string     `json:"schema"`
	Provenance Provenance `json:"provenance"`
	// Experiment is the name under which it is run again, such as table1.
	Experiment string `json:"experiment"`
	// Config is the fully resolved specification, in whatever form its owner writes.
	Config json.RawMessage `json:"config"`
	// Window says in words over which span ages were averaged.
	Window string `json:"aom_window"`
	// Terms are the rules of a comparison of systems of several papers, to be read before the numbers.
	Terms       []string     `json:"terms,omitempty"`
	Rows        []Row        `json:"rows"`
	Comparisons []Comparison `json:"comparisons"`
	Paper       []PaperRow   `json:"paper"`
	// Statements are what a reader must be told beside the numbers, such as that a workload was calibrated on them.
	Statements []string `json:"statements,omitempty"`
	// Partial says that the experiment was stopped before all its runs were done.
	Partial bool `json:"partial"`
}

// Valid says whether every row is.
func (b *Bench) Valid() bool {
	for i := range b.Rows {
		if !b.Rows[i].Valid {
			return false
		}
	}
	return !b.Partial
}

// Provenance says who made a result, where and when. It differs between two runs that are otherwise the same.
type Provenance struct {
	Tool    string `json:"tool"`
	Version string `json:"version"`
	Go      string `json:"go"`
	Commit  string `json:"commit,omitempty"`
	Dirty   bool   `json:"dirty,omitempty"`
	Host    string `json:"host"`
	System  string `json:"system"` // operating system and architecture
	CPUs    int    `json:"cpus,omitempty"`
	Device  string `json:"device"`
	// RegisterMap is the version of the device's register map.
	RegisterMap string   `json:"register_map,omitempty"`
	Command     []string `json:"command,omitempty"`
	Started     string   `json:"started"`  // RFC 3339
	Finished    string   `json:"finished"` // RFC 3339
	// Digests names inputs and tables by what they contained: plan, p4info, tables, trace.
	Digests []Digest `json:"digests,omitempty"`
}

// Digest is the hash of one named input.
type Digest struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Statistic describes a metric over the runs of a configuration. A number that can't be computed is missing, and Reason
// says why.
type Statistic struct {
	Mean Float `json:"mean"`
	SD   Float `json:"sd"`
	// CI95 is the half-width of the 95 % interval of the mean, from Student's t.
	CI95   Float  `json:"ci95"`
	Min    Float  `json:"min"`
	Max    Float  `json:"max"`
	N      int    `json:"n"`
	Reason string `json:"reason,omitempty"`
	// Of an age that was set beside the twin's; see Beside.
	*Beside
}

// Known says whether there is a mean.
func (s *Statistic) Known() bool { return s.N > 0 && s.Mean.Known() }

// Row is one configuration of an experiment: a queue discipline at an output rate, over all its runs.
type Row struct {
	Queue      string `json:"queue"`
	OutRateBPS int64  `json:"out_rate_bps"`
	// Runs is how many valid runs the statistics are over; InvalidRuns how many were left out of them.
	Runs        int      `json:"runs"`
	InvalidRuns int      `json:"invalid_runs"`
	Valid       bool     `json:"valid"`
	Reasons     []string `json:"invalid_reasons,omitempty"`
	// Of runs on real wires: how the log of decisions compares with the engine, over all runs; the worst run's lateness of the
	// output; the runs whose ages are not told; and the rate inside of bursts, by the log.
	Decisions  *olaf.Decisions `json:"decisions,omitempty"`
	LatenessNS *olaf.Quantiles `json:"lateness_ns,omitempty"`
	Withheld   *Withheld       `json:"withheld,omitempty"`
	BurstRate  *Statistic      `json:"burst_rate_bps,omitempty"`
	// Stats are members of the row itself in JSON.
	Stats Stats `json:"*"`
	// CDF is the distribution of aggregations per outgoing update, over all valid runs together (Fig. 6).
	CDF      []CDFPoint   `json:"aggregations_cdf"`
	Clusters []ClusterRow `json:"clusters,omitempty"`
}

// CDFPoint says which share of the outgoing updates carried at most LE aggregations.
type CDFPoint struct {
	LE int   `json:"le"`
	P  Float `json:"p"`
}

// ClusterRow is one cluster of a Row, over its runs.
type ClusterRow struct {
	Cluster    int       `json:"cluster"`
	Deliveries Statistic `json:"deliveries"`
	AoM        Statistic `json:"aom_ns"`
	PeakAoM    Statistic `json:"peak_aom_ns"`
	// AoMWorker is the mean over the cluster's workers of their own sawtooths.
	AoMWorker Statistic `json:"aom_worker_ns"`
}

// Comparison sets one queue against another at the same output rate, run by run over equal seeds.
type Comparison struct {
	OutRateBPS   int64        `json:"out_rate_bps"`
	Queue        string       `json:"queue"`
	Versus       string       `json:"versus"`
	AoMReduction AoMReduction `json:"aom_reduction_pct"`
	// Speedup is T(N) of Versus over T(N) of Queue (Fig. 7).
	Speedup Statistic `json:"speedup"`
}

// AoMReduction is 100·(1 − AoM of the queue / AoM of the other) under each reading of what an age belongs to.
type AoMReduction struct {
	// WorkerCluster takes the other queue per worker and this queue per cluster; it is the one that fits the paper.
	WorkerCluster Statistic `json:"worker_cluster"`
	// ClusterCluster is the literal text of §8.1: both per cluster.
	ClusterCluster Statistic `json:"cluster_cluster"`
	WorkerWorker   Statistic `json:"worker_worker"`
}

// BesideMixed finds the published number that was judged by the mixed reading of c, which appears beside it alone; nil where
// there is none.
func BesideMixed(rows []PaperRow, c *Comparison) *PaperRow {
	reading := &c.AoMReduction.WorkerCluster
	for i := range rows {
		if r := &rows[i]; reading.Known() && r.Unit == "%" && r.Ours == *reading && r.Published.Known() {
			return r
		}
	}
	return nil
}

// PaperRow is one published number or statement beside ours.
type PaperRow struct {
	ID       string `json:"id"`
	Artefact string `json:"artefact"` // table1, fig6, …
	Row      string `json:"row"`
	Column   string `json:"column"`
	Unit     string `json:"unit"`
	Source   string `json:"source"`
	Basis    string `json:"basis"` // on what ours rests: calibrated, predicted, arithmetic, measured
	Kind     string `json:"kind"`  // value, bound, trend
	// Side is where the paper puts a bound's or a trend's result: above or below.
	Side string `json:"side,omitempty"`
	// Published is missing where the paper only draws or says it; Rounding is half a unit of its last printed digit.
	Published Float `json:"published"`
	Rounding  Float `json:"rounding"`
	// Neighbour is the id of what the paper sets this beside; Than is the number instead, of which a trend claims a side.
	Neighbour string `json:"neighbour,omitempty"`
	Than      Float  `json:"than"`
	// Ours is the number, or of a trend what is set beside Than.
	Ours Statistic `json:"ours"`
	// DeviationPct is ours relative to the published number; of a fairness index, what both lack to 1.
	DeviationPct Float  `json:"deviation_pct"`
	Verdict      string `json:"verdict"` // one of package paper's words
	// SameAs is the id of an earlier row of the same artefact with the very same number of ours, which counts once.
	SameAs   string `json:"same_as,omitempty"`
	Expected string `json:"expected"` // what is known to be reached; a worse verdict is a miss
	Note     string `json:"note,omitempty"`
	// Contradiction says where the paper disagrees with itself on this; the verdict of that name is only of what nobody can reach.
	Contradiction string `json:"contradiction,omitempty"`
	// Sensitivity is the same number under other assumptions.
	Sensitivity []Sensitivity `json:"sensitivity,omitempty"`
}

// Sensitivity is our number under another assumption than the one that is judged.
type Sensitivity struct {
	Assumption string    `json:"assumption"`
	Ours       Statistic `json:"ours"`
	Verdict    string    `json:"verdict,omitempty"` // absent where none is given
}

// Run is what one run yields.
type Run struct {
	Queue      string `json:"queue"`
	OutRateBPS int64  `json:"out_rate_bps"`
	Index      int    `json:"index"` // runs of the same index share a seed and are compared in pairs
	Seed       uint64 `json:"seed"`
	// Declared says what the counters and metrics are; nil of a run that was read and not yet given its declaration.
	Declared *metric.Declaration `json:"-"`
	Counters olaf.Counts         `json:"counters"`
	Metrics  metric.Values       `json:"metrics"`
	// Aggregations counts outgoing updates by how many aggregations they carried: Aggregations[k] carried k.
	Aggregations []int64         `json:"aggregations"`
	Clusters     []ClusterMetric `json:"clusters,omitempty"`
	// Missing says why a metric of that name is missing.
	Missing map[string]string `json:"missing,omitempty"`
	// Withheld says why the run's ages are not told, though frames were timed; see Withhold.
	Withheld string `json:"withheld,omitempty"`
	// Decisions, LatenessNS, BurstRate and Beside are of runs on real wires; see Row.
	Decisions  *olaf.Decisions   `json:"decisions,omitempty"`
	LatenessNS *olaf.Quantiles   `json:"lateness_ns,omitempty"`
	BurstRate  Float             `json:"burst_rate_bps,omitempty"` // 0 where updates come in no bursts
	Beside     map[string]Beside `json:"beside,omitempty"`
	// Invalid lists why the run must not enter a mean; empty when it may.
	Invalid []string `json:"invalid,omitempty"`
}

// Valid says whether the run may enter statistics.
func (r *Run) Valid() bool { return len(r.Invalid) == 0 }

// ClusterMetric is one cluster of a Run.
type ClusterMetric struct {
	Cluster    int   `json:"cluster"`
	Deliveries int64 `json:"deliveries"`
	AoM        Float `json:"aom_ns"`
	PeakAoM    Float `json:"peak_aom_ns"`
	AoMWorker  Float `json:"aom_worker_ns"`
	// Beside is each of these ages that was set beside the twin's, by its name here.
	Beside map[string]Beside `json:"beside,omitempty"`
}
