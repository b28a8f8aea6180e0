// Package monitor exports the progress and results of a command to Prometheus, over HTTP while the command runs or in a
// file for the node exporter when it is done. A nil Monitor is valid and does nothing.
package monitor

import (
	"cmp"
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

// ErrAddress is matched by errors about the address on which to listen.
var ErrAddress = olaf.NewError(olaf.Usage, "bad address for metrics")

// Monitor gathers the metrics of a command.
type Monitor struct {
	registry *prometheus.Registry // metrics of the work
	process  *prometheus.Registry // metrics of the process: memory, threads
	runs     *runs
	served   sync.WaitGroup
}

// New returns a monitor for a program with the given version and revision.
func New(version, revision string) *Monitor {
	m := &Monitor{registry: prometheus.NewRegistry(), process: prometheus.NewRegistry(), runs: newRuns()}
	build := prometheus.NewGaugeVec(gaugeOptions("build_info", "version of the program"),
		[]string{"version", "revision"})
	build.WithLabelValues(version, revision).Set(1)
	m.registry.MustRegister(build, m.runs)
	m.process.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// namespace is the first part of the name of every metric.
const namespace = "olafctl"

func gaugeOptions(name, help string) prometheus.GaugeOpts {
	return prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}
}

// AddWork adds progress metrics for the named work. look must be safe for concurrent use.
func (m *Monitor) AddWork(name string, look func() (done, total int)) {
	if m == nil {
		return
	}
	of := prometheus.Labels{"work": name}
	done, total := gaugeOptions("work_done", "steps of the work that are done"),
		gaugeOptions("work_steps", "steps of the work; 0 until known")
	done.ConstLabels, total.ConstLabels = of, of
	m.registry.MustRegister(prometheus.NewGaugeFunc(done, func() float64 { done, _ := look(); return float64(done) }),
		prometheus.NewGaugeFunc(total, func() float64 { _, total := look(); return float64(total) }))
}

// AddValue adds a gauge. value must return NaN if the value is missing.
func (m *Monitor) AddValue(name, help string, value func() float64) {
	if m != nil {
		m.registry.MustRegister(prometheus.NewGaugeFunc(gaugeOptions(name, help), value))
	}
}

// AddCollector adds a Prometheus collector.
func (m *Monitor) AddCollector(c prometheus.Collector) {
	if m != nil {
		m.registry.MustRegister(c)
	}
}

// Handler returns a handler that answers scrapes, in OpenMetrics format if requested.
func (m *Monitor) Handler() http.Handler {
	all := prometheus.Gatherers{m.registry, m.process}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(all, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	return mux
}

// WriteFile atomically writes the metrics to a text file for the node exporter.
func (m *Monitor) WriteFile(path string) error { return prometheus.WriteToTextfile(path, m.registry) }

// Listen listens on an address. An address without a host, such as 19100 or :19100, means 127.0.0.1.
func Listen(address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = "", address
	}
	host = cmp.Or(host, "127.0.0.1")
	if port == "" {
		return nil, &addressError{address, errors.New("no port")}
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, &addressError{address, err}
	}
	return l, nil
}

// addressError is the error for an address on which the monitor cannot listen.
type addressError struct {
	address string
	err     error
}

func (e *addressError) Error() string {
	return "--metrics " + e.address + ": " + e.err.Error() + "; use PORT or HOST:PORT"
}

func (e *addressError) Unwrap() []error { return []error{ErrAddress, e.err} }

// scrapeTime is the time limit for reading a scrape's request header.
const scrapeTime = 10 * time.Second

// Serve answers scrapes until ctx ends or stop is called. stop waits until the server has ended.
func (m *Monitor) Serve(ctx context.Context, l net.Listener) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	server := &http.Server{Handler: m.Handler(), ReadHeaderTimeout: scrapeTime}
	m.served.Go(func() { _ = server.Serve(l) }) // always returns an error, because the server is closed
	m.served.Go(func() {
		<-ctx.Done()
		_ = server.Close() // nothing left to serve
	})
	return func() {
		cancel()
		m.served.Wait()
	}
}
