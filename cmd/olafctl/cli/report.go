package cli

import (
	"encoding/csv"
	"io"
	"runtime"
	"time"

	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/text"
)

// Document can be printed in every format; a bench.Report is one.
type Document interface {
	Document() any
	WriteText(io.Writer, text.View) error
	Table() (header []string, rows [][]string)
}

// PrintReport prints a document in a format; explain adds notes.
func PrintReport(env *Env, r Document, out Format, explain bool) error {
	switch out {
	case JSON:
		return WriteJSON(env.Stdout, r.Document())
	case JSONL:
		return WriteLine(env.Stdout, r.Document())
	case CSV:
		header, rows := r.Table()
		w := csv.NewWriter(env.Stdout)
		_ = w.Write(header) // returned by Error below
		_ = w.WriteAll(rows)
		return w.Error()
	}
	return r.WriteText(env.Stdout, env.View(explain))
}

// StampProvenance adds the provenance to reports that have a place for it.
func StampProvenance(env *Env, started time.Time, r result.Report) {
	if b, ok := r.(*bench.Measurement); ok {
		b.Bench.Provenance = deviceProvenance(env, started, b.Outcome)
	}
}

// NewProvenance returns the provenance of a document without a device.
func NewProvenance(env *Env, started time.Time) results.Provenance {
	b := ThisBuild()
	host, err := env.Hostname()
	if err != nil {
		host = "unknown"
	}
	return results.Provenance{
		Tool: "olafctl", Version: b.Version, Go: b.Go, Commit: b.Revision, Dirty: b.Dirty,
		Host: host, System: b.Platform, CPUs: runtime.GOMAXPROCS(0),
		Command: append([]string{"olafctl"}, env.Args...),
		Started: started.UTC().Format(time.RFC3339Nano), Finished: env.Now().UTC().Format(time.RFC3339Nano),
	}
}

// deviceProvenance adds the device and the digests of what ran on it.
func deviceProvenance(env *Env, started time.Time, o *bench.Outcome) results.Provenance {
	p := NewProvenance(env, started)
	p.Device = o.Device.Address + " " + o.Device.Build
	p.RegisterMap = o.Device.MapVersion
	p.Digests, p.Hosts = o.Digests(), o.Hosts
	return p
}
