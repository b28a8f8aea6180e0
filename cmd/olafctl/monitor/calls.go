package monitor

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// calls counts what clients ask of an agent; it is a grpc stats handler.
type calls struct {
	ended   *prometheus.CounterVec
	open    *prometheus.GaugeVec
	seconds *prometheus.HistogramVec
}

// Calls counts the calls of a gRPC server, whose stats handler it returns.
func (m *Monitor) Calls() stats.Handler {
	c := &calls{
		ended:   prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "calls_total", Help: "gRPC calls that have ended"}, []string{"method", "code"}),
		open:    prometheus.NewGaugeVec(opts("calls_open", "gRPC calls under way: of streams, who is connected"), []string{"method"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: "call_seconds", Help: "how long gRPC calls took"}, []string{"method"}),
	}
	m.registry.MustRegister(c.ended, c.open, c.seconds)
	return c
}

type methodKey struct{}

// TagRPC remembers the method of a call.
func (c *calls) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, methodKey{}, info.FullMethodName)
}

// HandleRPC counts its beginning and its end.
func (c *calls) HandleRPC(ctx context.Context, s stats.RPCStats) {
	method, _ := ctx.Value(methodKey{}).(string)
	switch s := s.(type) {
	case *stats.Begin:
		c.open.WithLabelValues(method).Inc()
	case *stats.End:
		c.open.WithLabelValues(method).Dec()
		c.ended.WithLabelValues(method, status.Code(s.Error).String()).Inc()
		c.seconds.WithLabelValues(method).Observe(float64(s.EndTime.Sub(s.BeginTime)) / float64(time.Second))
	}
}

// TagConn and HandleConn leave connections alone.
func (c *calls) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn does nothing.
func (c *calls) HandleConn(context.Context, stats.ConnStats) {}
