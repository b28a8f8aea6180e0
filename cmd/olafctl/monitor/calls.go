package monitor

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// calls is a gRPC stats handler that counts the calls from an agent's clients.
type calls struct {
	ended   *prometheus.CounterVec
	open    *prometheus.GaugeVec
	seconds *prometheus.HistogramVec
}

// CountCalls returns a stats handler that counts the calls of a gRPC server.
func (m *Monitor) CountCalls() stats.Handler {
	c := &calls{
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "calls_total",
			Help: "gRPC calls that have ended"}, []string{"method", "code"}),
		open: prometheus.NewGaugeVec(gaugeOptions("calls_open",
			"gRPC calls in progress; for streams, connected clients"), []string{"method"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: "call_seconds",
			Help: "duration of gRPC calls"}, []string{"method"}),
	}
	m.registry.MustRegister(c.ended, c.open, c.seconds)
	return c
}

type methodKey struct{}

// TagRPC stores the method of a call in the call's context.
func (c *calls) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, methodKey{}, info.FullMethodName)
}

// HandleRPC counts the beginning and the end of a call.
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

// TagConn returns ctx unchanged, because connections are not counted.
func (c *calls) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn does nothing, because connections are not counted.
func (c *calls) HandleConn(context.Context, stats.ConnStats) {}
