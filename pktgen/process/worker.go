package process

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/olafctl/olaf"
)

// Worker is what one worker is told.
type Worker struct {
	Job
	Worker     olaf.WorkerID
	Aggregator netip.AddrPort // where fragments go
	Server     netip.AddrPort // whom it asks for results
	Every      time.Duration  // between fragments, on an absolute schedule; 0 is as fast as it can
	Skip       int            // leaves out every so-many-th fragment at first, as if it were lost; 0 leaves out none
	// Vectors are what is summed; nil is numbers that follow from their place (see Value), against which every sum is held.
	Vectors Vectors
}

// Vectors are a worker's own: what it sends in an epoch, and what becomes of the sum of all.
type Vectors interface {
	// Vector is as long as the job's; it is read until Sum is called.
	Vector(epoch int) []int32
	// Sum takes the sum of all workers' vectors, which is overwritten by the next.
	Sum(epoch int, sum []int32)
}

// WorkerReport is what a worker did.
type WorkerReport struct {
	Worker  olaf.WorkerID `json:"worker"`
	Sent    int           `json:"sent"` // fragments, repeats too
	Skipped int           `json:"skipped"`
	Resent  int           `json:"resent"`
	Asked   int           `json:"asked"`
	Results int           `json:"results"` // fragments, each for the first time
	Checked int           `json:"values_checked"`
	Wrong   int           `json:"values_wrong"`
	// Late is the latest that a fragment left after its instant.
	Late time.Duration `json:"late_ns"`
	// Work is what its Vectors tell; absent of numbers.
	Work json.RawMessage `json:"work,omitempty"`
}

// worker is a worker at work.
type worker struct {
	*Worker
	conn   *net.UDPConn
	report WorkerReport
	have   []bool
	left   int
	epoch  int
	out    []byte
	in     []byte
	lanes  []int32
	vector []int32 // of the epoch, where there are Vectors
	sum    []int32
	heard  time.Time
}

// Run plays the worker's side of a job over a socket that is bound to the address by which the aggregator knows it. The error
// matches ErrConfig or ErrStalled, or is the context's.
func (w *Worker) Run(ctx context.Context, conn *net.UDPConn) (WorkerReport, error) {
	if err := w.check(); err != nil {
		return WorkerReport{}, err
	}
	if int(w.Worker) >= w.Workers || w.Skip < 0 || w.Skip == 1 || w.Every < 0 {
		return WorkerReport{}, fmt.Errorf("%w: worker %d of %d, leaving out every %d-th packet", ErrConfig, w.Worker, w.Workers, w.Skip)
	}
	k := &worker{
		Worker: w, conn: conn, report: WorkerReport{Worker: w.Worker}, have: make([]bool, w.Fragments()),
		out: make([]byte, room), in: make([]byte, room), lanes: make([]int32, w.Lanes), sum: make([]int32, w.Values),
	}
	for k.epoch = range w.Epochs {
		if err := k.round(ctx); err != nil {
			return k.report, fmt.Errorf("worker %d, vector %d: %w", w.Worker, k.epoch, err)
		}
	}
	return k.report, nil
}

// round sends a vector and waits for its sum.
func (k *worker) round(ctx context.Context) error {
	if k.Vectors == nil {
		return k.exchange(ctx)
	}
	k.vector = k.Vectors.Vector(k.epoch)
	if len(k.vector) != k.Values {
		return fmt.Errorf("%w: a vector of %d values, of a job of %d", ErrConfig, len(k.vector), k.Values)
	}
	if err := k.exchange(ctx); err != nil {
		return err
	}
	k.Vectors.Sum(k.epoch, k.sum)
	return nil
}

// exchange sends what there is and waits for the sum.
func (k *worker) exchange(ctx context.Context) error {
	clear(k.have)
	k.left, k.heard = len(k.have), time.Now()
	start := k.heard
	for i := range k.have {
		due := start.Add(time.Duration(i) * k.Every)
		if err := k.listen(due); err != nil {
			return err
		}
		if k.Every > 0 {
			k.report.Late = max(k.report.Late, time.Since(due))
		}
		if k.Skip > 0 && (k.report.Sent+k.report.Skipped)%k.Skip == k.Skip-1 {
			k.report.Skipped++
			continue
		}
		if err := k.send(i); err != nil {
			return err
		}
	}
	return k.wait(ctx)
}

// wait takes results until all are here, and asks for what does not come.
func (k *worker) wait(ctx context.Context) error {
	for k.left > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		before := k.left
		if err := k.listen(time.Now().Add(silence)); err != nil {
			return err
		}
		switch {
		case k.left < before:
			k.heard = time.Now()
		case time.Since(k.heard) > patience:
			return fmt.Errorf("%w: %d of %d results are missing", ErrStalled, k.left, len(k.have))
		default:
			if err := k.repeat(); err != nil {
				return err
			}
		}
	}
	return nil
}

// most is how many missing fragments are dealt with at a time.
const most = 256

// repeat sends what is missing again, which is dropped where it is inside already, and asks the server for its sum.
func (k *worker) repeat() error {
	n := 0
	for i, have := range k.have {
		if have {
			continue
		}
		if n++; n > most {
			break
		}
		if err := k.send(i); err != nil {
			return err
		}
		k.report.Resent++
		if _, err := k.conn.WriteToUDPAddrPort(encodeAsk(uint16(k.epoch), i), k.Server); err != nil {
			return err
		}
		k.report.Asked++
	}
	return nil
}

func (k *worker) send(i int) error {
	lanes := k.lanes[:k.Job.lanes(i)]
	for n := range lanes {
		if k.vector != nil {
			lanes[n] = k.vector[i*k.Lanes+n]
		} else {
			lanes[n] = Value(int(k.Worker.Worker), k.epoch, i*k.Lanes+n)
		}
	}
	b, err := encode(k.out, &k.Job, k.Worker.Worker, uint16(k.epoch), i, 1, lanes)
	if err != nil {
		return err
	}
	k.report.Sent++
	_, err = k.conn.WriteToUDPAddrPort(b, k.Aggregator)
	return err
}

// listen takes results until an instant, or until all are here.
func (k *worker) listen(until time.Time) error {
	for k.left > 0 {
		b, _, err := receive(k.conn, k.in, until)
		if b == nil || err != nil {
			return err
		}
		k.take(b)
	}
	return nil
}

// take holds a result against what it must be.
func (k *worker) take(b []byte) {
	p, ok := decode(b)
	if !ok || int(p.epoch) != k.epoch || p.fragment >= len(k.have) || k.have[p.fragment] {
		return
	}
	k.have[p.fragment] = true
	k.left--
	k.report.Results++
	n := k.Job.lanes(p.fragment)
	if p.length() != n || p.count != k.Workers {
		k.report.Wrong += n
		return
	}
	for i := range n {
		k.report.Checked++
		k.sum[p.fragment*k.Lanes+i] = p.lane(i)
		if k.vector == nil && p.lane(i) != k.Sum(k.epoch, p.fragment*k.Lanes+i) {
			k.report.Wrong++
		}
	}
}
