package attach

import (
	"context"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/olafctl/olaf/pktgen/endpoint"
)

// reportCPU returns a function that reports the CPU time of both ends per operation, which on a busy machine is more
// meaningful than the elapsed time.
func reportCPU(b *testing.B) func() {
	used := func() time.Duration {
		var r syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
			b.Fatal(err)
		}
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	before := used()
	return func() { b.ReportMetric(float64((used()-before).Nanoseconds())/float64(b.N), "cpu-ns/op") }
}

// timeCalls calls a function b.N times and reports the minimum, the median and the 99th percentile of its time.
func timeCalls(b *testing.B, call func() error) {
	b.Helper()
	var took []time.Duration
	defer reportCPU(b)()
	for b.Loop() {
		began := time.Now()
		if err := call(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[0].Nanoseconds()), "least-ns")
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "median-ns")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
}

// megabyte is the length of the vectors of BenchmarkSum.
const megabyte = 1 << 18

// echoSums starts a worker whose sums are its own vectors. echoPushes starts one whose updates are always sent. Both
// return the address.
func echoSums(b *testing.B) string {
	b.Helper()
	config := Config{System: "xagg", Largest: megabyte, Lanes: 704, Scale: DefaultScale, Workers: 1, Waits: true}
	ctx, cancel := context.WithCancelCause(b.Context())
	w, err := NewRounds(config, cancel)
	if err != nil {
		b.Fatal(err)
	}
	return echo(b, w, func() {
		for round := uint32(0); ctx.Err() == nil; round++ {
			if c := w.Compute(ctx, round); ctx.Err() == nil {
				w.Apply(&endpoint.Aggregate{Number: round, Vectors: 1, Values: c.Values})
			}
		}
	})
}

func echoPushes(b *testing.B) string {
	b.Helper()
	ctx, cancel := context.WithCancelCause(b.Context())
	w, err := NewPushes(Config{System: "olaf", Largest: 608, Lanes: 610, Scale: DefaultScale}, nil, cancel)
	if err != nil {
		b.Fatal(err)
	}
	return echo(b, w, func() {
		for vector := uint32(0); ctx.Err() == nil; vector++ {
			if w.Compute(ctx, vector); ctx.Err() == nil {
				w.Sends(0)
			}
		}
	})
}

// echo serves a worker until the benchmark ends.
func echo(b *testing.B, h Handler, play func()) string {
	b.Helper()
	port, err := Listen("unix:"+filepath.Join(b.TempDir(), "w.sock"), func(string, ...any) {})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = port.Close(nil) })
	go port.Serve(h)
	go play()
	return "unix:" + port.path
}

// BenchmarkSum sends vectors of 1 MB to one worker and back: the socket and the conversion between float32 and lanes.
func BenchmarkSum(b *testing.B) {
	c, err := Dial(echoSums(b))
	if err != nil {
		b.Fatal(err)
	}
	vector := make([]float32, megabyte)
	for i := range vector {
		vector[i] = float32(i) / 1e6
	}
	b.SetBytes(int64(8 * len(vector)))
	timeCalls(b, func() error {
		_, _, err := c.Sum(vector, 0)
		return err
	})
	_ = c.Close()
}

// BenchmarkPush sends an update of one frame and waits until it is handed over.
func BenchmarkPush(b *testing.B) {
	c, err := Dial(echoPushes(b))
	if err != nil {
		b.Fatal(err)
	}
	vector := make([]float32, 608)
	timeCalls(b, func() error {
		_, err := c.Push(vector, 0)
		return err
	})
	_ = c.Close()
}
