package process

import (
	"context"
	"math"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// Open is the codec for updates that a queue can merge and for their ACKs. It uses OLAF's frames without the headers
// that the network adds. Packet i of a vector in job j has the cluster j × Packets + i, so that only packets with the
// same place are merged.
type Open struct {
	Packets int // number of packets in a vector
	lanes   []uint32
	signed  []int32
}

// MaxOpenLanes is the maximum number of values in a packet that the program in the kernel can merge.
const MaxOpenLanes = 704

// Offset implements Codec.
func (*Open) Offset() int { return olaf.PayloadOffset }

// Encode implements Codec.
func (o *Open) Encode(dst []byte, p *program.Packet, lanes []uint32, reward int32, zeroNS uint64) ([]byte, error) {
	u := olaf.Update{
		GenNS: (zeroNS + p.NewestNS) % olaf.GenModulus, Seq: p.Index, Cluster: p.Job*olaf.ClusterID(o.Packets) + olaf.ClusterID(p.Seg),
		Worker: p.Worker, Count: p.Count, Lanes: p.Lanes,
	}
	if p.Flags&program.Resend != 0 {
		u.Flags = olaf.Retransmission
	}
	o.signed = o.signed[:0]
	for _, v := range lanes {
		o.signed = append(o.signed, int32(v))
	}
	signed := o.signed
	if lanes == nil {
		signed = nil
	}
	var n int
	var err error
	if p.Kind == program.Ack {
		n, err = olaf.EncodeAck(dst, &olaf.Addresses{}, &u, endpoint.Status(p), signed)
	} else {
		u.Reward = reward
		n, err = olaf.EncodeUpdate(dst, &olaf.Addresses{}, &u, signed)
	}
	if err != nil {
		return nil, err
	}
	return dst[olaf.PayloadOffset:n], nil
}

// kinds maps the kinds of frames to kinds of packets.
var kinds = map[olaf.FrameKind]program.Kind{olaf.KindUpdate: program.Data, olaf.KindAck: program.Ack}

// Decode implements Codec. For an ACK, p.Value is the status of the queue. For an update, it is the sum of the rewards
// in units of 1/256.
func (o *Open) Decode(b []byte, p *program.Packet) (lanes []uint32, ok bool) {
	f, err := olaf.ParsePayload(b)
	if err != nil {
		return nil, false
	}
	u := f.Update()
	*p = program.Packet{
		Kind: kinds[f.Kind()], Job: u.Cluster / olaf.ClusterID(o.Packets), Seg: uint64(u.Cluster) % uint64(o.Packets), Worker: u.Worker,
		Index: u.Seq, Count: u.Count, Lanes: u.Lanes, Value: uint64(uint32(u.Reward)),
	}
	p.NewestNS = u.GenNS
	if f.Kind() == olaf.KindAck {
		endpoint.SetStatus(p, f.QueueStatus())
	}
	if u.Flags&olaf.Retransmission != 0 {
		p.Flags = program.Resend
	}
	if cap(o.signed) < int(u.Lanes) {
		o.signed = make([]int32, u.Lanes)
	}
	n := f.Lanes(o.signed[:u.Lanes])
	o.lanes = o.lanes[:0]
	for _, v := range o.signed[:n] {
		o.lanes = append(o.lanes, uint32(v))
	}
	return o.lanes, true
}

// Numbers implements Work for a worker whose values are computed from their place (see Value), and for a server that
// checks the values in unmerged packets.
type Numbers struct {
	Worker  olaf.WorkerID
	Layout  endpoint.Layout
	Every   time.Duration // interval between two updates
	Checked int           // number of values checked, in packets with a single update
	Wrong   int
	Inside  int // number of updates in all packets
}

// Compute implements Work.
func (w *Numbers) Compute(_ context.Context, vector uint32) Computed {
	c := Computed{Values: make([]uint32, w.Layout.Values), Due: time.Duration(vector) * w.Every}
	for i := range c.Values {
		c.Values[i] = uint32(Value(int(w.Worker), int(vector%math.MaxUint16), i))
	}
	return c
}

// Apply implements Work. Its answer is only an ACK.
func (w *Numbers) Apply(a *endpoint.Aggregate) {
	w.Inside += int(a.Vectors)
	if a.Vectors == 1 {
		for i, v := range a.Values {
			w.Checked++
			if int32(v) != Value(int(a.Worker), int(a.Vector%math.MaxUint16), a.First+i) {
				w.Wrong++
			}
		}
	}
	a.Values = nil
}
