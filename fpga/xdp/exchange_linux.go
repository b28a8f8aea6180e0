package xdp

import (
	"encoding/binary"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/dataplane"
)

// Bits in the request of an exchange, and the length of an exchange (bpf/serve.h).
const (
	askRelease = 1 << iota
	askStart
	askClear

	exchangeBytes = 104
)

// Turn releases the frame on the wire if release is set, and starts the frame at the head of the queue if start is set.
// Both are done under one lock. The starting frame is written to buf, which must have room for the longest frame, and
// is returned.
func (q *Queue) Turn(release, start bool, buf []byte) (dataplane.Exchange, []byte, error) {
	x, err := q.run("turn", boolBit(release)*askRelease|boolBit(start)*askStart, 0, buf)
	if err != nil || !x.Started {
		return x, nil, err
	}
	return x, buf[:min(int(x.Update.Size()), len(buf))], nil
}

// Flush discards all queued frames and counts them.
func (q *Queue) Flush() (dataplane.Exchange, error) { return q.run("flush", 0, 0, nil) }

// Inspect returns the queued frame at the given index in departure order. The frame on the wire comes first. Slot is -1
// if there is no such frame.
func (q *Queue) Inspect(index int, buf []byte) (dataplane.Exchange, error) {
	return q.run("inspect", 0, uint32(index), buf)
}

// Latch returns the counts since its previous call, by counter name and summed over all processors. It also returns the
// queue's state at the beginning of the new counting period. If clear is set, it also resets the peak, the occupancy
// integral and the counts per cluster.
func (q *Queue) Latch(clear bool) (dataplane.Exchange, map[string]uint64, error) {
	x, err := q.run("latch", boolBit(clear)*askClear, 0, nil)
	if err != nil {
		return x, nil, err
	}
	if err := q.settle(); err != nil {
		return x, nil, err
	}
	sums, err := q.drain(x.Bank ^ 1)
	return x, sums, err
}

// Cluster returns the counts of a cluster.
func (q *Queue) Cluster(c olaf.ClusterID) (n dataplane.ClusterCounts, err error) {
	const offClasses = 16 // as in bpf/queue.h
	var all []byte
	if err := q.collection.Maps["clusters"].Lookup(uint32(0), &all); err != nil {
		return n, fmt.Errorf("xdp: %s: read the clusters: %w: %w", q.name, ErrKernel, err)
	}
	state, err := q.epoch()
	at := int(c) * clusterBytes
	if err != nil || at+clusterBytes > len(all) || binary.NativeEndian.Uint32(all[at+12:]) != state {
		return n, err // no counts since the last clear
	}
	fields := all[at+offClasses:]
	next := func() uint64 {
		v := binary.NativeEndian.Uint64(fields)
		fields = fields[8:]
		return v
	}
	for i := range n.Class {
		n.Class[i] = next()
	}
	n.DeliveredFrames, n.DeliveredUpdates, n.LastDepartureNS = next(), next(), next()
	return n, nil
}

// epoch returns how many times the counts of the clusters were cleared.
func (q *Queue) epoch() (uint32, error) {
	const offEpoch = 36 // as in bpf/queue.h
	var state []byte
	if err := q.collection.Maps["queue"].Lookup(uint32(0), &state); err != nil {
		return 0, fmt.Errorf("xdp: %s: read the queue: %w: %w", q.name, ErrKernel, err)
	}
	return binary.NativeEndian.Uint32(state[offEpoch:]), nil
}

// run runs one of the queue's programs with a request and returns its answer. The program's data has room for a frame
// after the request.
func (q *Queue) run(program string, ask, index uint32, frame []byte) (dataplane.Exchange, error) {
	size := exchangeBytes + len(frame)
	if len(q.exchange) < 2*size {
		q.exchange = make([]byte, 2*size)
	}
	in, out := q.exchange[:size], q.exchange[size:2*size]
	clear(in)
	binary.NativeEndian.PutUint32(in, ask)
	binary.NativeEndian.PutUint32(in[4:], index)
	opts := ebpf.RunOptions{Data: in, DataOut: out}
	verdict, err := q.collection.Programs[program].Run(&opts)
	if err != nil {
		return dataplane.Exchange{}, fmt.Errorf("xdp: %s: %w: %w", program, ErrKernel, err)
	}
	if Verdict(verdict) != Pass {
		return dataplane.Exchange{}, fmt.Errorf("xdp: %s returned %d", program, verdict)
	}
	copy(frame, out[exchangeBytes:])
	return decodeExchange(out), nil
}

func decodeExchange(b []byte) dataplane.Exchange {
	u16 := func(at int) uint16 { return binary.NativeEndian.Uint16(b[at:]) }
	u32 := func(at int) uint32 { return binary.NativeEndian.Uint32(b[at:]) }
	u64 := func(at int) uint64 { return binary.NativeEndian.Uint64(b[at:]) }
	return dataplane.Exchange{
		Released: u32(8)&askRelease != 0, Started: u32(8)&askStart != 0, Slot: int(int32(u32(12))), AtNS: u64(16),
		Update: olaf.Update{
			GenNS: u64(24), Seq: u32(40), Reward: int32(u32(44)), Cluster: olaf.ClusterID(u16(48)),
			Worker: olaf.WorkerID(u16(50)),
			Count:  u16(52), Lanes: u16(54), Flags: olaf.Flags(u32(56)),
		},
		AppendedNS: u64(32), Waiting: int(u32(60)), Leaving: int(int32(u32(64))), Active: int(u32(68)),
		Peak: int(u32(72)), Bank: u32(76),
		Updates: u64(80), OccupancyNS: u64(88), Number: u64(96),
	}
}
