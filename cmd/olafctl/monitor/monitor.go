// Package monitor tells Prometheus how far some work is and what it has measured so far: at an HTTP address while it runs, or
// in a file for the node exporter when it is done. Whoever is not watched hands out a nil Monitor, which takes everything and
// costs nothing.
package monitor

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/olafctl/olaf"
)

// ErrAddress is the kind of every refused address.
var ErrAddress = olaf.NewError(olaf.Usage, "bad address for metrics")

// Monitor gathers what the work has to tell.
type Monitor struct {
	registry *prometheus.Registry // of the work
	process  *prometheus.Registry // of the program: memory, threads
	runs     *runs
	served   sync.WaitGroup
}

// New makes a monitor of a program of some version.
func New(version, revision string) *Monitor {
	m := &Monitor{registry: prometheus.NewRegistry(), process: prometheus.NewRegistry(), runs: newRuns()}
	build := prometheus.NewGaugeVec(opts("build_info", "the program that tells this"), []string{"version", "revision"})
	build.WithLabelValues(version, revision).Set(1)
	m.registry.MustRegister(build, m.runs)
	m.process.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// namespace begins the name of every metric.
const namespace = "olafctl"

func opts(name, help string) prometheus.GaugeOpts {
	return prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}
}

// Work tells how far a piece of work is; look must be safe at any time.
func (m *Monitor) Work(name string, look func() (done, total int)) {
	if m == nil {
		return
	}
	of := prometheus.Labels{"work": name}
	done, total := opts("work_done", "how much of the work is done, in its own steps"), opts("work_steps", "how many steps the work has; 0 until that is known")
	done.ConstLabels, total.ConstLabels = of, of
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(done, func() float64 { done, _ := look(); return float64(done) }),
		prometheus.NewGaugeFunc(total, func() float64 { _, total := look(); return float64(total) }))
}

// Value tells a number of the work's own; missing ones are told as NaN.
func (m *Monitor) Value(name, help string, value func() float64) {
	if m != nil {
		m.registry.MustRegister(prometheus.NewGaugeFunc(opts(name, help), value))
	}
}

// Watch adds a collector of its own.
func (m *Monitor) Watch(c prometheus.Collector) {
	if m != nil {
		m.registry.MustRegister(c)
	}
}

// Handler answers scrapes, as OpenMetrics text where that is asked for.
func (m *Monitor) Handler() http.Handler {
	all := prometheus.Gatherers{m.registry, m.process}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(all, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	return mux
}

// WriteFile writes what the work told as a text file that the node exporter reads; it is whole or not there.
func (m *Monitor) WriteFile(path string) error { return prometheus.WriteToTextfile(path, m.registry) }

// Listen opens an address. Without a host it is this host's alone: 19100 and :19100 are 127.0.0.1:19100.
func Listen(address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = "", address
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if port == "" {
		return nil, &addressError{address, errors.New("no port")}
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, &addressError{address, err}
	}
	return l, nil
}

// addressError says which address cannot be listened on.
type addressError struct {
	address string
	err     error
}

func (e *addressError) Error() string {
	return "--metrics " + e.address + ": " + e.err.Error() + "; use PORT or HOST:PORT"
}

func (e *addressError) Unwrap() []error { return []error{ErrAddress, e.err} }

// scrapeTime is how long a scrape may take to say what it wants.
const scrapeTime = 10 * time.Second

// Serve answers scrapes until ctx ends or stop is called, which waits for it.
func (m *Monitor) Serve(ctx context.Context, l net.Listener) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	server := &http.Server{Handler: m.Handler(), ReadHeaderTimeout: scrapeTime}
	m.served.Go(func() { _ = server.Serve(l) }) // always ends with an error: that it was closed
	m.served.Go(func() {
		<-ctx.Done()
		_ = server.Close() // nothing is left to tell
	})
	return func() {
		cancel()
		m.served.Wait()
	}
}
