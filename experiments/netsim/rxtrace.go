package netsim

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/internal/csvtext"
	"github.com/olafctl/olaf/pktgen/trace"
)

// ImportRx reads a receive trace that any simulator may have written and measures it as a run of t. The format is that
// of trace.RxHeader. t assigns workers to clusters and defines the averaging window. The result has no losses and no
// ports. Errors name the file and the line and match ErrTopology.
func ImportRx(t *Topology, name string, r io.Reader) (*Result, error) {
	o, err := newExternalMeter(t)
	if err != nil {
		return nil, err
	}
	sc, err := scanCSV(name, r)
	if err != nil {
		return nil, err
	}
	last, lines := int64(0), 0
	for line := 1; sc.Scan(); line++ {
		text := strings.TrimSpace(sc.Text())
		if line == 1 {
			if err := csvtext.CheckSeparator(text); err != nil {
				return nil, &Error{name, line, err.Error()}
			}
			if text != trace.RxHeader {
				return nil, &Error{name, line,
					fmt.Sprintf("the first line is %q; a receive trace begins with %s", shortenText(text), trace.RxHeader)}
			}
			continue
		}
		at, worker, gen, err := parseRx(text, len(o.owner))
		switch {
		case err != nil:
			return nil, &Error{name, line, err.Error()}
		case at < last:
			return nil, &Error{name, line,
				fmt.Sprintf("reception at %d ns comes after one at %d ns; lines must be in the order of reception", at,
					last)}
		case gen > at:
			return nil, &Error{name, line, fmt.Sprintf("the update was generated at %d ns, after its reception", gen)}
		}
		last = at
		lines++
		received, generated := olaf.Time(at)*olaf.Time(olaf.Nanosecond), olaf.Time(gen)*olaf.Time(olaf.Nanosecond)
		o.recordFrame(int(o.owner[worker]), received, generated, 1)
		o.sim.meter.deliverWorker(int32(worker), received, generated)
	}
	if err := sc.Err(); err != nil {
		return nil, &Error{File: name, What: fmt.Sprintf("cannot be read as lines of %s: %v", trace.RxHeader, err)}
	}
	if lines == 0 {
		return nil, &Error{File: name, What: "has no receptions; a receive trace is " + trace.RxHeader +
			" and a line for each"}
	}
	return o.sim.measureRun(), nil
}

func shortenText(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}

func parseRx(text string, workers int) (at int64, worker int, gen int64, err error) {
	fields := strings.Split(text, ",")
	if len(fields) == 4 {
		at, err = strconv.ParseInt(fields[0], 10, 64)
		if err == nil {
			worker, err = strconv.Atoi(fields[1])
		}
		if err == nil {
			_, err = strconv.ParseUint(fields[2], 10, 32)
		}
		if err == nil {
			gen, err = strconv.ParseInt(fields[3], 10, 64)
		}
	}
	switch {
	case err != nil || len(fields) != 4:
		err = fmt.Errorf("%q is not a line of %s with whole numbers", shortenText(text), trace.RxHeader)
	case worker < 0 || worker >= workers:
		err = fmt.Errorf("worker %d does not exist; the topology has workers 0 to %d", worker, workers-1)
	case at < 0 || gen < 0 || at > int64(maxSimulated/olaf.Nanosecond):
		err = fmt.Errorf("a time is outside of 0 to %v", maxSimulated)
	}
	return at, worker, gen, err
}

// externalMeter measures a network that is not simulated by this package, such as a trace or closed-loop hosts, over
// the same window and with the same statistics. Clusters are numbered over all entries of the topology, and workers
// over all clusters. Calls must be in the order of time.
type externalMeter struct {
	sim   *sim
	owner []int32 // by worker, its cluster
}

// newExternalMeter returns a meter for runs of the topology. Errors match ErrTopology.
func newExternalMeter(t *Topology) (*externalMeter, error) {
	n, err := buildNetwork(t)
	if err != nil {
		return nil, err
	}
	n.stations = nil // the contents of tables are unknown
	s := &sim{network: n, t: t, end: int64(t.Warmup + t.Duration), meter: newMeter(t, n)}
	s.addWorkers()
	o := &externalMeter{sim: s, owner: make([]int32, n.workerCount)}
	for w, place := range s.places {
		o.owner[w] = int32(s.workers[place].cluster)
	}
	return o, nil
}

// nextGeneration returns the time of a worker's next update in runs of the topology, or false after the last update.
// Each call advances the worker by one update.
func (o *externalMeter) nextGeneration(worker int) (olaf.Time, bool) {
	w := &o.sim.workers[o.sim.places[worker]]
	src := &o.sim.sources[w.source]
	w.gen = src.generationTime(w)
	w.seq++
	return olaf.Time(w.gen), w.gen < src.end
}

// recordSend records that a worker sends an update, which was generated at the time at.
func (o *externalMeter) recordSend(worker int, at olaf.Time) {
	o.sim.meter.countSend(&o.sim.workers[o.sim.places[worker]], int64(at))
}

// recordWithhold records that a worker withholds an update, which was generated at the time at.
func (o *externalMeter) recordWithhold(worker int, at olaf.Time) {
	o.sim.meter.countWithhold(o.owner[worker], int64(at))
}

// recordDrop records that a queue dropped a cluster's frame with the given number of updates.
func (o *externalMeter) recordDrop(cluster, updates int, at olaf.Time) {
	u := olaf.Update{Count: uint16(updates)}
	o.sim.meter.countDrop(int32(cluster), &u, int64(at))
}

// recordMerges records that updates of a cluster were merged into waiting updates.
func (o *externalMeter) recordMerges(cluster, updates int, at olaf.Time) {
	for range updates {
		o.sim.meter.countMerge(int32(cluster), engine.Aggregated, int64(at))
	}
}

// recordFrame records the delivery of a cluster's frame. gen is the generation time of its newest update. The caller
// then calls meter.deliverWorker for each update in the frame.
func (o *externalMeter) recordFrame(cluster int, at, gen olaf.Time, updates int) {
	o.sim.meter.recordFrame(int32(cluster), at, gen, uint16(updates))
}
