package main

import (
	"encoding/csv"
	"io"
	"runtime"
	"time"

	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/results"
)

// document is what can be printed in every format; bench.Report is one.
type document interface {
	Document() any
	WriteText(io.Writer) error
	Table() (header []string, rows [][]string)
}

// printReport prints a document in the format asked for.
func printReport(env *environment, r document, out format) error {
	switch out {
	case formatJSON:
		return writeJSON(env.stdout, r.Document())
	case formatCSV:
		header, rows := r.Table()
		w := csv.NewWriter(env.stdout)
		_ = w.Write(header) // kept by the writer and returned by Error below
		_ = w.WriteAll(rows)
		return w.Error()
	}
	return r.WriteText(env.stdout)
}

// stamp writes who made a document, where and when, into those that have a place for it.
func stamp(env *environment, started time.Time, r bench.Report) {
	if b, ok := r.(*bench.Measurement); ok {
		b.Bench.Provenance = provenance(env, started, b.Outcome)
	}
}

// madeBy says who made a document, where and when, but not on which device.
func madeBy(env *environment, started time.Time) results.Provenance {
	b := thisBuild()
	host, err := env.hostname()
	if err != nil {
		host = "unknown"
	}
	return results.Provenance{
		Tool: "olafctl", Version: b.Version, Go: b.Go, Commit: b.Revision, Dirty: b.Dirty,
		Host: host, System: b.Platform, CPUs: runtime.GOMAXPROCS(0),
		Command: append([]string{"olafctl"}, env.args...),
		Started: started.UTC().Format(time.RFC3339Nano), Finished: env.now().UTC().Format(time.RFC3339Nano),
	}
}

// provenance adds the device and the digests of what ran on it.
func provenance(env *environment, started time.Time, o *bench.Outcome) results.Provenance {
	p := madeBy(env, started)
	p.Device = o.Device.Address + " " + o.Device.Build
	p.RegisterMap = o.Device.MapVersion
	p.Digests = o.Digests()
	return p
}
