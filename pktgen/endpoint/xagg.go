package endpoint

import (
	"cmp"
	"fmt"
	"math/bits"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/xagg"
	"github.com/olafctl/olaf/internal/splitmix"
)

// XAgg configures an XAgg worker.
type XAgg struct {
	// Timeout is the time without a result, rate or check after which the worker asks again; default defaultTimeout. It
	// doubles up to 64 times its value.
	Timeout olaf.Duration
	// Overhead is a frame's overhead on the line, which counts towards the divided rates.
	Overhead olaf.Size
	// Epoch is the epoch of the first vector. It must be later than those of earlier jobs with the same fragments.
	Epoch uint16
	// Ticket, if not 0, makes the worker request Epoch from its parent before the first vector. The request carries
	// Ticket, which must differ for each worker instance. During silences the worker asks whether the epoch is still
	// the same. The epoch changes if another worker of the job was restarted: this worker then switches to the new
	// epoch, or gives up if it already had a result.
	Ticket uint32
	// Follows makes the worker wait, after its first round, for the mean duration of rounds plus four times their mean
	// deviation instead of Timeout, as TCP does (RFC 6298). On a busy host sums are late rather than lost, and
	// requesting them costs more than waiting.
	Follows bool
	// Fixed converts float32 gradients to integers, and sums back to float32.
	Fixed Fixed
}

// MaxEpochs is the maximum number of vectors in a job for which the epochs do not collide with those of the next job.
// Epochs in frames have 16 bits, and an epoch that is more than half this range behind counts as ahead.
const MaxEpochs = 1 << 14

// XAggScale is the published scale for converting values to integers (paper, §III). Sums beyond ±21.47 overflow int32.
const XAggScale = 1e8

func (o *XAgg) check() error {
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	switch {
	case o.Timeout < 0:
		return badTimeout(o.Timeout)
	case o.Overhead < 0 || o.Fixed.Scale < 0:
		return fmt.Errorf("%w: %s beside a frame, a scale of %g", ErrConfig, o.Overhead, o.Fixed.Scale)
	}
	return nil
}

// hushes is the maximum number of times that the timeout doubles without packets. idles replaces it if the parent has
// everything but no result has arrived yet, because another worker is still computing.
const (
	hushes = 6
	idles  = 10
)

// stage is the protocol state of an XAgg worker.
type stage uint8

const (
	away    stage = iota // computing or applying
	joining              // waiting for the epoch of the first vector
	waiting              // waiting for a rate
	sending
	sent // waiting for results
)

// treeWorker sends a vector at the rate that its parent assigns, sends fragments again that the parent lacks, and
// requests missing results (paper, §IV). When the tree has changed, it sends the vector again in another epoch.
type treeWorker struct {
	rounds
	xagg XAgg

	ticket          uint32 // ticket with which the worker got its epoch; 0 before
	replaced        bool   // another job replaced this one before its end
	refused         string // why the parent refuses an epoch
	changes         uint16 // number of changes of the tree
	first           uint16 // epoch in which the vector was first sent
	stage           stage
	ints            []uint32      // integers for the current fragment, if values are scaled
	rate            olaf.Rate     // rate on the line; 0 means unlimited
	next            int           // next fragment to send for the first time in this epoch
	again           []uint32      // fragments that the parent lacks
	due             olaf.Time     // when the next fragment is due
	frame           olaf.Size     // size of the last frame on the line
	last            olaf.Time     // when an awaited packet last arrived or left
	resends         int           // number of fragments sent again since the parent was last notified of the end
	lacked          int           // the same before that
	vain            int           // number of repairs in a row after which the parent lacked as many fragments as before
	checked         bool          // the parent has all fragments
	quiet           int           // number of timeouts in a row
	silences        uint32        // number of all timeouts so far
	offered         olaf.Time     // when the current vector was offered
	earlierTimeouts uint32        // number of timeouts before that
	average         olaf.Duration // mean duration of a round without timeouts; 0 before the first
	spread          olaf.Duration // mean deviation of the duration
	sum             gather
	out             program.Packet
}

// NewXAgg returns an XAgg worker. The error matches ErrConfig.
func NewXAgg(cfg Config, x XAgg, host Host) (Endpoint, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if err := x.check(); err != nil {
		return nil, err
	}
	w := &treeWorker{rounds: rounds{cfg: cfg, host: host}, xagg: x, sum: newGather(cfg.Layout)}
	return w, nil
}

// epoch returns the epoch of the current vector. A change of the tree increases epochs by two, so that the packets of
// one worker's current vector and of another worker's next vector never have the same epoch.
func (w *treeWorker) epoch() uint16 { return w.xagg.Epoch + uint16(w.round) + 2*w.changes }

func (w *treeWorker) OnComputed(now olaf.Time, values []uint32) {
	w.begin(now, values)
	w.cfg.fit(values)
	w.sum.fit(w.cfg.Layout)
	if w.xagg.Ticket != 0 {
		w.stage, w.quiet, w.last = joining, 0, now
		w.join()
		return
	}
	w.first = w.epoch()
	w.offer(now)
}

// vectors returns the number of vectors for which epochs are requested. For an endless job, it is the maximum.
func (w *treeWorker) vectors() uint64 { return uint64(min(w.cfg.Updates, MaxEpochs)) }

// join requests the epoch of the first vector.
func (w *treeWorker) join() {
	w.control(xagg.Begin, w.vectors(), uint64(w.xagg.Ticket), 0)
}

// still asks the parent whether the epoch of the first vector is unchanged.
func (w *treeWorker) still() {
	w.sendControl(w.xagg.Epoch, xagg.Still, w.vectors(), uint64(w.ticket), 0)
}

// Leave notifies the parent that no worker should wait for this worker any longer, either in its job or in a job that
// replaced it.
func (w *treeWorker) Leave() {
	switch {
	case w.ticket == 0 || w.over:
	case w.replaced:
		w.control(xagg.Leave, 0, uint64(w.ticket), 0)
	default:
		w.control(xagg.Leave, w.vectors(), uint64(w.ticket), 0)
	}
}

// Superseded reports whether another worker of the job was restarted when sums of the job had already arrived.
func (w *treeWorker) Superseded() bool { return w.replaced }

// Refused returns the reason why the parent refused an epoch, or "" if it did not.
func (w *treeWorker) Refused() string { return w.refused }

// handleEpoch starts with the requested epoch, or restarts if the epoch is different.
func (w *treeWorker) handleEpoch(now olaf.Time, p *program.Packet) {
	first := uint16(p.Value)
	if w.ticket != 0 && w.xagg.Ticket == 0 { // too late to switch to another epoch
		w.replaced = w.replaced || p.Seg == uint64(w.ticket) && first != w.xagg.Epoch
		return
	}
	if w.xagg.Ticket == 0 || p.Seg != uint64(w.xagg.Ticket) || w.stage > joining && first == w.xagg.Epoch {
		return
	}
	w.xagg.Epoch, w.ticket = first, w.xagg.Ticket
	w.first = w.epoch()
	w.offer(now)
}

// lanes returns the values in fragment i as integers.
func (w *treeWorker) lanes(i int) []uint32 {
	lanes := w.cfg.cut(w.values, i)
	if lanes == nil || !w.xagg.Fixed.on() {
		return lanes
	}
	w.ints = w.xagg.Fixed.integers(w.ints, lanes)
	return w.ints
}

// offer starts sending the current vector. If the rate of the host's link is known, it first requests a rate.
func (w *treeWorker) offer(now olaf.Time) {
	w.next, w.again, w.checked, w.quiet, w.last = 0, nil, false, 0, now
	w.offered, w.earlierTimeouts = now, w.silences
	w.resends, w.lacked, w.vain = 0, 0, 0
	if w.cfg.Line > 0 {
		w.stage = waiting
		w.control(xagg.Ready, uint64(w.cfg.Line), 0, 0)
		return
	}
	w.rate, w.stage, w.due = 0, sending, now
}

// control sends the parent a message about the current vector.
func (w *treeWorker) control(action uint8, value, seg, bitmap uint64) {
	w.sendControl(w.epoch(), action, value, seg, bitmap)
}

func (w *treeWorker) sendControl(epoch uint16, action uint8, value, seg, bitmap uint64) {
	w.out = program.Packet{
		Kind: program.Control, Action: action, Job: w.cfg.Job, Worker: w.cfg.Worker, Round: epoch, Value: value, Seg: seg, Bitmap: bitmap,
	}
	w.host.Send(Network, &w.out, nil)
	w.tally[asked]++
}

// send sends fragment i and computes when the next fragment is due.
func (w *treeWorker) send(now olaf.Time, i int) {
	w.out = program.Packet{
		Kind: program.Data, Job: w.cfg.Job, Worker: w.cfg.Worker, Seg: uint64(i), Round: w.epoch(), Count: 1, Lanes: uint16(w.cfg.Lanes(i)),
		Trace: w.contribution(),
	}
	left := w.host.Send(Network, &w.out, w.lanes(i))
	w.last = max(now, left)
	if w.rate > 0 {
		w.frame = w.xagg.Overhead + olaf.LaneBytes*olaf.Size(w.cfg.Lanes(i))
		w.due = max(w.due, now.Add(-behind)).Add(w.takes(w.frame))
	}
}

// behind is the maximum delay that a host catches up with if it is behind its sending schedule.
const behind = 10 * olaf.Millisecond

// takes returns the transmission time of a frame at the current rate.
func (w *treeWorker) takes(frame olaf.Size) olaf.Duration {
	hi, lo := bits.Mul64(uint64(frame)*8, uint64(olaf.Second))
	if hi >= uint64(w.rate) { // the rate is less than a bit in centuries
		return olaf.Second
	}
	took, _ := bits.Div64(hi, lo, uint64(w.rate))
	return olaf.Duration(min(took, uint64(olaf.Second)))
}

// advance sends all fragments that are due.
func (w *treeWorker) advance(now olaf.Time) {
	for w.stage == sending {
		switch {
		case w.next >= w.cfg.Packets() && len(w.again) == 0:
			w.control(xagg.Finished, 0, uint64(w.cfg.Packets()), 0)
			w.stage = sent
			w.countRepair()
		case w.due > now:
			return
		case w.next < w.cfg.Packets():
			if w.cfg.opens(w.next) {
				w.host.Message()
			}
			w.send(now, w.next)
			if w.next++; w.first == w.epoch() {
				w.tally[sentPackets]++
			} else {
				w.tally[resent]++
			}
		default:
			w.send(now, int(w.again[0]))
			w.again = w.again[1:]
			w.tally[resent]++
			w.resends++
		}
	}
}

func (w *treeWorker) Receive(now olaf.Time, p *program.Packet, lanes []uint32) {
	switch {
	case w.over:
		w.tally[repeated]++
	case p.Kind == program.Control:
		w.handleControl(now, p)
	case p.Kind == program.Result:
		w.result(now, p, lanes)
	}
}

// handleControl handles a message from the parent or from the management plane.
func (w *treeWorker) handleControl(now olaf.Time, p *program.Packet) {
	if p.Action == xagg.Renew {
		w.renew(now, uint16(p.Value))
		return
	}
	if p.Action == xagg.First {
		w.handleEpoch(now, p)
		return
	}
	if p.Action == xagg.Refuse {
		w.refuse(p)
		return
	}
	if p.Action == xagg.Awaits { // it does not end a silence
		return
	}
	if w.stage <= joining || p.Round != w.epoch() && p.Action != xagg.Rate { // a rate counts in any epoch
		return
	}
	w.last, w.quiet = now, 0
	switch p.Action {
	case xagg.Rate:
		w.pace(now, max(olaf.Rate(p.Value), 1)) // a rate of 1 in effect stops the worker until another rate arrives
	case xagg.Checked:
		w.checked = true
	case xagg.Lost:
		for which := p.Bitmap; which != 0; which &= which - 1 {
			if i := packet(p) + bits.TrailingZeros64(which); i < w.next {
				w.again = append(w.again, uint32(i))
			}
		}
		if w.stage == sent && len(w.again) > 0 {
			w.stage, w.due, w.checked = sending, max(now, w.due).Add(w.holdRepair()), false
		}
	}
}

// leavers is the number of successive timeouts for which a worker waits for the last sums of a job after another worker
// has left the job.
const leavers = 4

// refuse handles a refusal of the request or of the current vector. It ignores that another worker has left if no sum
// has arrived yet, since that worker may restart, or if sums are still arriving.
func (w *treeWorker) refuse(p *program.Packet) {
	why := xagg.Answer(p.Value)
	switch why {
	case xagg.TooManyFragments:
		if w.stage <= joining || p.Round != w.epoch() {
			return
		}
	case xagg.WorkerLeft:
		if p.Seg != uint64(w.ticket) || w.xagg.Ticket != 0 || w.quiet < leavers {
			return
		}
	default:
		if w.stage != joining || p.Seg != uint64(w.xagg.Ticket) {
			return
		}
	}
	w.refused = why.String()
}

// pace applies a new rate, which also affects when the next fragment is due.
func (w *treeWorker) pace(now olaf.Time, rate olaf.Rate) {
	switch {
	case w.stage == waiting:
		w.stage, w.due = sending, now
	case w.rate > 0 && w.frame > 0:
		left := w.due.Add(-w.takes(w.frame))
		w.rate = rate
		w.due = max(now, left.Add(w.takes(w.frame)))
	}
	w.rate = rate
}

// renew begins a new epoch after a change of the tree and sends the whole vector again (paper, §V: children resend the
// entire gradient).
func (w *treeWorker) renew(now olaf.Time, changes uint16) {
	if int16(changes-w.changes) <= 0 {
		return
	}
	w.changes = changes
	if w.stage > joining {
		w.offer(now)
	}
}

// isCurrent reports whether a result with this epoch belongs to the current vector.
func (w *treeWorker) isCurrent(epoch uint16) bool {
	ahead := epoch - w.first
	return w.stage > joining && ahead <= w.epoch()-w.first && ahead%2 == 0
}

func (w *treeWorker) result(now olaf.Time, p *program.Packet, lanes []uint32) {
	if !w.isCurrent(p.Round) || p.Seg >= uint64(w.cfg.Packets()) || !w.sum.take(packet(p), &p.Trace, lanes) {
		w.tally[repeated]++
		return
	}
	w.took(p)
	w.last, w.quiet, w.xagg.Ticket = now, 0, 0
	w.lacked, w.vain = 0, 0
	if w.sum.isWhole() {
		w.follow(now)
		w.applySum()
	}
}

// leastFollow and longestFollow limit the waiting time that a worker derives from its rounds. leastFollow is longer
// than the pauses of a busy host.
const (
	leastFollow   = 20 * olaf.Millisecond
	longestFollow = olaf.Second
)

// follow updates the average duration of a round. It ignores rounds with a timeout.
func (w *treeWorker) follow(now olaf.Time) {
	took := now.Sub(w.offered)
	switch {
	case w.silences != w.earlierTimeouts:
	case w.average == 0:
		w.average, w.spread = took, took/2
	default:
		off := took - w.average
		w.spread += (max(off, -off) - w.spread) / 4
		w.average += off / 8
	}
}

// vainRepairs is the number of vain repairs after which the worker waits before each further one.
const vainRepairs = 3

// countRepair counts the repair that has ended if it was vain.
func (w *treeWorker) countRepair() {
	if w.vain++; w.resends == 0 || w.lacked == 0 || w.resends < w.lacked {
		w.vain = 0
	}
	w.resends, w.lacked = 0, w.resends
}

// holdRepair returns the time to wait before fragments are sent again. If the parent's program drops all of them, it
// would otherwise ask for them without pause. The time doubles up to a limit that follows the measured rounds.
func (w *treeWorker) holdRepair() olaf.Duration {
	if w.vain < vainRepairs {
		return 0
	}
	most := longestFollow
	if w.average > 0 {
		most = min(max((w.average+4*w.spread)<<hushes, leastFollow), longestFollow)
	}
	return min(w.xagg.Timeout<<min(w.vain-vainRepairs, idles), most)
}

// applySum applies the complete sum.
func (w *treeWorker) applySum() {
	w.stage = away
	if w.xagg.Fixed.on() {
		w.xagg.Fixed.floats(w.sum.values)
	}
	w.finish(&w.sum.traces[0], w.sum.mixed, w.sum.values)
}

func (w *treeWorker) OnApplied(olaf.Time) {
	w.sum.restart()
	w.endRound()
}

func (w *treeWorker) Next() olaf.Time {
	switch {
	case w.stage == away:
		return Never
	case w.stage == sending && (w.rate > 0 || w.cfg.Line == 0):
		return w.due
	}
	return w.last.Add(w.patience())
}

// draw returns a random number for the current timeout. If all hosts resent at the same time, they could lose the same
// packets every time.
func (w *treeWorker) draw() uint64 {
	return splitmix.MixBits(uint64(w.cfg.Worker)<<32 | uint64(w.silences))
}

// patience returns the length of the current timeout, which is at most twice the base time.
func (w *treeWorker) patience() olaf.Duration {
	most := hushes
	if w.idle() && w.ticket == 0 {
		most = idles
	}
	wait := w.xagg.Timeout
	if w.xagg.Follows && w.average > 0 {
		wait = min(max(w.average+4*w.spread, leastFollow), longestFollow)
	}
	wait <<= min(w.quiet, most)
	if w.quiet == 0 {
		return wait
	}
	return wait + wait/256*olaf.Duration(w.draw()%256)
}

// Timer sends the fragments that are due or handles a timeout.
func (w *treeWorker) Timer(now olaf.Time) {
	if w.stage == sending {
		w.advance(now)
		return
	}
	if w.stage == away || now < w.Next() {
		return
	}
	w.quiet++
	w.last = now
	if w.stage == joining {
		w.silences++
		w.join()
		return
	}
	if w.ticket != 0 {
		w.still()
	}
	if w.stage == waiting {
		w.control(xagg.Ready, uint64(w.cfg.Line), 0, 0)
	} else if !w.checked {
		w.control(xagg.Finished, 0, uint64(w.cfg.Packets()), 0)
	}
	w.silences++
	for range 1 + w.draw()>>8%2 {
		w.ask()
	}
}

// asks is the maximum number of packets with which missing results are requested at the same time.
const asks = 16

// idle reports whether no loss is known. In this case, the parent has all our packets and no result has arrived yet.
func (w *treeWorker) idle() bool { return w.checked && w.sum.left == w.cfg.Packets() }

// ask requests the first results that are missing.
func (w *treeWorker) ask() {
	n := w.cfg.Packets()
	at := w.sum.low &^ (xagg.NameSpan - 1)
	for i := range asks {
		if at >= n || i > 0 && w.idle() {
			return
		}
		var missing uint64
		for i := at; i < min(at+xagg.NameSpan, n); i++ {
			if !w.sum.have[i] {
				missing |= 1 << (i - at)
			}
		}
		if missing != 0 {
			w.control(xagg.Ask, uint64(w.first), uint64(at), missing)
		}
		at += xagg.NameSpan
	}
}
