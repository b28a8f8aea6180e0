package results

import (
	"encoding/json"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/metric"
)

// BenchSchema is the schema name of a Bench document.
const BenchSchema = "olafctl.bench/v3"

// Bench is the result of one experiment. It contains its configurations, their comparisons, and the published numbers.
// Everything except Provenance depends only on the specification and the seed.
type Bench struct {
	Schema     string     `json:"schema"`
	Provenance Provenance `json:"provenance"`
	// Experiment is the name by which it can be run again, such as table1.
	Experiment string `json:"experiment"`
	// Config is the resolved specification in its owner's format.
	Config json.RawMessage `json:"config"`
	// Window describes the span over which ages were averaged.
	Window string `json:"aom_window"`
	// Terms are the rules of a comparison between systems from several papers. They should be read before the numbers.
	Terms       []string     `json:"terms,omitempty"`
	Rows        []Row        `json:"rows"`
	Comparisons []Comparison `json:"comparisons"`
	Paper       []PaperRow   `json:"paper"`
	// Statements are caveats for the reader, such as that the workload was calibrated on the published numbers.
	Statements []string `json:"statements,omitempty"`
	// Partial means that the experiment was stopped before all its runs finished.
	Partial bool `json:"partial"`
}

// Valid reports whether the bench is complete and all rows are valid.
func (b *Bench) Valid() bool {
	return !b.Partial && !slices.ContainsFunc(b.Rows, func(r Row) bool { return !r.Valid })
}

// Provenance describes the origin of a result. It may differ between runs that are otherwise equal.
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
	// Digests are hashes of the inputs and tables: plan, p4info, tables, trace.
	Digests []Digest `json:"digests,omitempty"`
	// Hosts are the hosts of a testbed with roles, by name.
	Hosts []Host `json:"hosts,omitempty"`
}

// Host describes one host of a testbed. Its clock was compared with the clock of Provenance.Host before and after the
// runs.
type Host struct {
	Name   string   `json:"name"`
	SSH    string   `json:"ssh,omitempty"` // SSH destination; empty for Provenance.Host itself
	Roles  []string `json:"roles"`
	Build  string   `json:"build"`
	Kernel string   `json:"kernel"`
	Device string   `json:"device,omitempty"`
	NIC    string   `json:"nic,omitempty"`
	Driver string   `json:"driver,omitempty"` // driver of the NIC
	// OffsetNS is the time by which its clock is ahead, within BoundNS. DriftNS is the increase of that time until the
	// last run ended.
	OffsetNS Float `json:"offset_ns"`
	BoundNS  Float `json:"bound_ns"`
	DriftNS  Float `json:"drift_ns"`
	// ClockBy is the method by which the clocks of generator and server are compared for ages: echo, ptp, mirror or
	// probe. The three values above are always by echo.
	ClockBy string `json:"clock_by,omitempty"`
	// Log contains what happened on the host: lines with the time (UTC) by the clock of Provenance.Host, then the messages
	// of the program there.
	Log []string `json:"log,omitempty"`
}

// Digest is the hash of one named input.
type Digest struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Statistic describes a metric over the runs of a configuration. If it cannot be computed, its values are missing and
// Reason explains why.
type Statistic struct {
	Mean Float `json:"mean"`
	SD   Float `json:"sd"`
	// CI95 is the half-width of the mean's 95 % interval by Student's t.
	CI95   Float  `json:"ci95"`
	Min    Float  `json:"min"`
	Max    Float  `json:"max"`
	N      int    `json:"n"`
	Reason string `json:"reason,omitempty"`
	// For ages compared with the twin's; see TwinComparison.
	*TwinComparison
}

// Known reports whether the statistic has a mean.
func (s *Statistic) Known() bool { return s.N > 0 && s.Mean.Known() }

// Row describes one configuration of an experiment, which is a queue discipline at an output rate, over all its runs.
type Row struct {
	Queue      string `json:"queue"`
	OutRateBPS int64  `json:"out_rate_bps"`
	// Runs counts the valid runs, which enter the statistics. InvalidRuns counts the others.
	Runs        int      `json:"runs"`
	InvalidRuns int      `json:"invalid_runs"`
	Valid       bool     `json:"valid"`
	Reasons     []string `json:"invalid_reasons,omitempty"`
	// These fields are for runs on real wires: the comparison of the decision log with the engine over all runs, the
	// output's lateness in the worst run, the runs without ages, and the rate inside bursts according to the log.
	Decisions  *olaf.Decisions `json:"decisions,omitempty"`
	LatenessNS *olaf.Quantiles `json:"lateness_ns,omitempty"`
	Withheld   *Withheld       `json:"withheld,omitempty"`
	BurstRate  *Statistic      `json:"burst_rate_bps,omitempty"`
	// In JSON, the entries of Stats are members of the row itself.
	Stats Stats `json:"*"`
	// CDF is the distribution of aggregations per outgoing update, over all valid runs together (Fig. 6).
	CDF      []CDFPoint   `json:"aggregations_cdf"`
	Clusters []ClusterRow `json:"clusters,omitempty"`
	Model    *ModelRow    `json:"model,omitempty"`
}

// CDFPoint is a point of a cumulative distribution: the share of outgoing updates with at most LE aggregations.
type CDFPoint struct {
	LE int   `json:"le"`
	P  Float `json:"p"`
}

// ClusterRow describes one cluster of a Row, over all its runs.
type ClusterRow struct {
	Cluster    int       `json:"cluster"`
	Deliveries Statistic `json:"deliveries"`
	AoM        Statistic `json:"aom_ns"`
	PeakAoM    Statistic `json:"peak_aom_ns"`
	// AoMWorker is the mean of the sawtooths of the cluster's workers.
	AoMWorker Statistic `json:"aom_worker_ns"`
}

// Comparison compares two queues at the same output rate, in pairs of runs with equal seeds.
type Comparison struct {
	OutRateBPS   int64        `json:"out_rate_bps"`
	Queue        string       `json:"queue"`
	Versus       string       `json:"versus"`
	AoMReduction AoMReduction `json:"aom_reduction_pct"`
	// Speedup is T(N) of Versus over T(N) of Queue (Fig. 7).
	Speedup Statistic `json:"speedup"`
}

// AoMReduction is 100·(1 − AoM of the queue / AoM of the other queue), for each reading of the age.
type AoMReduction struct {
	// WorkerCluster uses the other queue's age per worker and this queue's age per cluster. This agrees with the paper.
	WorkerCluster Statistic `json:"worker_cluster"`
	// ClusterCluster uses both ages per cluster, as in the text of §8.1.
	ClusterCluster Statistic `json:"cluster_cluster"`
	WorkerWorker   Statistic `json:"worker_worker"`
}

// FindMixedReduction returns the published number that was judged by comparing it with c's WorkerCluster reduction. It
// returns nil if there is no such number.
func FindMixedReduction(rows []PaperRow, c *Comparison) *PaperRow {
	reading := &c.AoMReduction.WorkerCluster
	for i := range rows {
		if r := &rows[i]; reading.Known() && r.Unit == "%" && r.Ours == *reading && r.Published.Known() {
			return r
		}
	}
	return nil
}

// PaperRow is a published number or statement, compared with our result.
type PaperRow struct {
	ID       string `json:"id"`
	Artefact string `json:"artefact"` // table1, fig6, …
	Row      string `json:"row"`
	Column   string `json:"column"`
	Unit     string `json:"unit"`
	Source   string `json:"source"`
	Basis    string `json:"basis"` // basis of our number: calibrated, predicted, arithmetic, measured
	Kind     string `json:"kind"`  // value, bound, trend
	// Side is the paper's side of a bound or trend: above or below.
	Side string `json:"side,omitempty"`
	// Published is missing if the paper only draws or describes the number. Rounding is half a unit of the last printed
	// digit.
	Published Float `json:"published"`
	Rounding  Float `json:"rounding"`
	// Neighbour is the id of the number with which the paper compares this one. For a trend, Than is the reference
	// instead.
	Neighbour string `json:"neighbour,omitempty"`
	Than      Float  `json:"than"`
	// Ours is our number or, for a trend, the number to compare with Than.
	Ours Statistic `json:"ours"`
	// DeviationPct is the deviation of our number from the published number in percent. For a fairness index, the
	// differences of both to 1 are compared.
	DeviationPct Float  `json:"deviation_pct"`
	Verdict      string `json:"verdict"` // one of package paper's verdicts
	// SameAs is the id of an earlier row of the same artefact that has the same number of ours. The pair counts once.
	SameAs   string `json:"same_as,omitempty"`
	Expected string `json:"expected"` // known verdict; a worse verdict is a miss
	Note     string `json:"note,omitempty"`
	// Contradiction describes how the paper contradicts itself here. The verdict of that name is used only for numbers
	// that cannot be reached.
	Contradiction string `json:"contradiction,omitempty"`
	// Sensitivity contains the same number under other assumptions.
	Sensitivity []Sensitivity `json:"sensitivity,omitempty"`
}

// Sensitivity is our result under another assumption than the judged result.
type Sensitivity struct {
	Assumption string    `json:"assumption"`
	Ours       Statistic `json:"ours"`
	Verdict    string    `json:"verdict,omitempty"` // absent if it is not judged
}

// Run is the result of one run.
type Run struct {
	Queue      string `json:"queue"`
	OutRateBPS int64  `json:"out_rate_bps"`
	Index      int    `json:"index"` // runs with the same index share a seed and are compared in pairs
	Seed       uint64 `json:"seed"`
	// Declared declares the counters and metrics; nil for a run that was read and has no declaration yet.
	Declared *metric.Declaration `json:"-"`
	Counters olaf.Counts         `json:"counters"`
	Metrics  metric.Values       `json:"metrics"`
	// Aggregations[k] is the number of outgoing updates with k aggregations.
	Aggregations []int64         `json:"aggregations"`
	Clusters     []ClusterMetric `json:"clusters,omitempty"`
	Model        *ModelMetric    `json:"model,omitempty"` // for updates that were split into frames
	// Missing maps each missing metric to the reason.
	Missing map[string]string `json:"missing,omitempty"`
	// Withheld is the reason why the run has no ages although frames were timed; see Withhold.
	Withheld string `json:"withheld,omitempty"`
	// Decisions, LatenessNS, BurstRate and TwinComparisons are for runs on real wires; see Row.
	Decisions       *olaf.Decisions           `json:"decisions,omitempty"`
	LatenessNS      *olaf.Quantiles           `json:"lateness_ns,omitempty"`
	BurstRate       Float                     `json:"burst_rate_bps,omitempty"` // 0 without bursts
	TwinComparisons map[string]TwinComparison `json:"beside,omitempty"`
	// Invalid lists the reasons why the run must not enter a mean; empty if it may.
	Invalid []string `json:"invalid,omitempty"`
}

// Valid reports whether the run may be included in statistics.
func (r *Run) Valid() bool { return len(r.Invalid) == 0 }

// ClusterMetric contains the metrics of one cluster in a Run.
type ClusterMetric struct {
	Cluster    int   `json:"cluster"`
	Deliveries int64 `json:"deliveries"`
	AoM        Float `json:"aom_ns"`
	PeakAoM    Float `json:"peak_aom_ns"`
	AoMWorker  Float `json:"aom_worker_ns"`
	// TwinComparisons contains the ages compared with the twin's, by name.
	TwinComparisons map[string]TwinComparison `json:"beside,omitempty"`
}
