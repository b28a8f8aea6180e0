package host

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/engine"
)

// answer returns the current state of the queue. The caller must hold the lock.
func (p *plane) answer(at int64) dataplane.Exchange {
	_, updates := p.discipline.QueuedCount()
	return dataplane.Exchange{
		Slot: -1, AtNS: uint64(at), Waiting: p.discipline.Waiting(), Leaving: int(p.leaving),
		Active: p.discipline.ActiveClusters(),
		Peak:   p.counts.peak, Updates: updates, OccupancyNS: p.counts.occupancy, Number: p.number,
	}
}

// Turn releases the frame on the wire if release is set, and starts the next one if start is set.
func (p *plane) Turn(release, start bool, buf []byte) (dataplane.Exchange, []byte, error) {
	at := readClock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.settle(at, p.discipline)
	released := release && p.leaving != engine.NoSlot
	if released {
		p.release(at)
	}
	slot := engine.NoSlot
	if start && p.leaving == engine.NoSlot {
		if s, _, ok := p.discipline.Lock(); ok {
			slot, p.leaving = s, s
		}
	}
	if slot == engine.NoSlot {
		x := p.answer(at)
		x.Released = released
		return x, nil, nil
	}
	var f engine.Frame
	p.discipline.View(slot, &f)
	p.logDecision(dataplane.Decision{AtNS: uint64(at), Kind: dataplane.Start, Slot: slot, Update: departureUpdate(&f)})
	x := p.answer(at)
	x.Released, x.Started = released, true
	p.show(&x, slot, &f)
	frame, err := p.write(buf, slot, &f)
	return x, frame, err
}

// departureUpdate returns the fields of a departing frame that are written to the log.
func departureUpdate(f *engine.Frame) olaf.Update {
	return olaf.Update{Cluster: f.Update.Cluster, Count: f.Update.Count, Lanes: f.Update.Lanes}
}

func (p *plane) show(x *dataplane.Exchange, slot engine.Slot, f *engine.Frame) {
	x.Slot, x.Update, x.AppendedNS = int(slot), f.Update, uint64(f.AppendedAt.NS())
}

// release removes the frame on the wire from the queue.
func (p *plane) release(at int64) {
	var f engine.Frame
	p.discipline.View(p.leaving, &f)
	p.discipline.Release(p.leaving)
	p.logDecision(dataplane.Decision{AtNS: uint64(at), Kind: dataplane.Release, Slot: p.leaving, Update: departureUpdate(&f)})
	p.counts.delivered += uint64(f.Update.Size())
	c := &p.clusters[f.Update.Cluster]
	c.DeliveredFrames++
	c.DeliveredUpdates += uint64(f.Update.Count)
	c.LastDepartureNS = uint64(at)
	p.leaving = engine.NoSlot
}

// write encodes the frame in a slot into buf and returns the part of buf that contains it.
func (p *plane) write(buf []byte, slot engine.Slot, f *engine.Frame) ([]byte, error) {
	newest, err := olaf.ParseTruncated(p.headers[slot][:], int(f.Update.Size()))
	if err != nil {
		return nil, fmt.Errorf("host: the header in slot %d: %w", slot, err)
	}
	a := newest.Addresses()
	n, err := olaf.EncodeUpdate(buf, &a, &f.Update, f.Lanes)
	if err != nil {
		return nil, fmt.Errorf("host: the frame in slot %d: %w", slot, err)
	}
	return buf[:n], nil
}

// Flush discards all queued frames and counts them.
func (p *plane) Flush() (dataplane.Exchange, error) {
	at := readClock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.settle(at, p.discipline)
	p.discipline.Flush()
	p.leaving = engine.NoSlot
	p.logDecision(dataplane.Decision{AtNS: uint64(at), Kind: dataplane.Flush, Slot: engine.NoSlot})
	return p.answer(at), nil
}

// Inspect returns the queued frame at the given index in departure order. The frame on the wire comes first.
func (p *plane) Inspect(index int, _ []byte) (dataplane.Exchange, error) {
	at := readClock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.settle(at, p.discipline)
	x := p.answer(at)
	k := 0
	p.discipline.Queued(func(s engine.Slot, _ bool) bool {
		if k++; k <= index {
			return true
		}
		var f engine.Frame
		p.discipline.View(s, &f)
		p.show(&x, s, &f)
		return false
	})
	return x, nil
}

// Latch returns the counts since its previous call. If clearing is set, it also resets the peak, the occupancy integral
// and the counts per cluster.
func (p *plane) Latch(clearing bool) (dataplane.Exchange, map[string]uint64, error) {
	at := readClock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.settle(at, p.discipline)
	x := p.answer(at)
	sums := p.counts.takeSums(p.discipline.Stats())
	if clearing {
		p.counts.peak, p.counts.occupancy = p.discipline.Occupancy(), 0
		clear(p.clusters)
	}
	return x, sums, nil
}
