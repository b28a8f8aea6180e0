package cli

import (
	"encoding/csv"
	"io"
	"runtime"
	"time"

	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/text"
)

// Document is what can be printed in every format; bench.Report is one.
type Document interface {
	Document() any
	WriteText(io.Writer, text.View) error
	Table() (header []string, rows [][]string)
}

// PrintReport prints a document in the format asked for, with its notes where they are wanted.
func PrintReport(env *Env, r Document, out Format, explain bool) error {
	switch out {
	case JSON:
		return WriteJSON(env.Stdout, r.Document())
	case JSONL:
		return WriteLine(env.Stdout, r.Document())
	case CSV:
		header, rows := r.Table()
		w := csv.NewWriter(env.Stdout)
		_ = w.Write(header) // kept by the writer and returned by Error below
		_ = w.WriteAll(rows)
		return w.Error()
	}
	return r.WriteText(env.Stdout, env.View(explain))
}

// Stamp writes who made a document, where and when, into those that have a place for it.
func Stamp(env *Env, started time.Time, r bench.Report) {
	if b, ok := r.(*bench.Measurement); ok {
		b.Bench.Provenance = provenance(env, started, b.Outcome)
	}
}

// MadeBy says who made a document, where and when, but not on which device.
func MadeBy(env *Env, started time.Time) results.Provenance {
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

// provenance adds the device and the digests of what ran on it.
func provenance(env *Env, started time.Time, o *bench.Outcome) results.Provenance {
	p := MadeBy(env, started)
	p.Device = o.Device.Address + " " + o.Device.Build
	p.RegisterMap = o.Device.MapVersion
	p.Digests = o.Digests()
	return p
}
