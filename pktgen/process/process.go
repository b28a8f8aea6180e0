// Package process is workers and parameter servers of XAgg as programs of their own: real frames over UDP sockets, to an
// aggregator that is in the kernel (fpga/xdp). What a worker sends of a vector follows from its number, so that everybody can
// say what the sum must be, to the last lane.
package process

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/olafctl/olaf"
)

// ErrConfig is the kind of every refused configuration.
var ErrConfig = olaf.NewError(olaf.Usage, "bad worker or server")

// ErrStalled says that nothing came for longer than a job may stand still.
var ErrStalled = olaf.NewError(olaf.Failed, "the job stands still")

// Job is what workers and server must agree on.
type Job struct {
	ID      olaf.ClusterID
	Workers int
	Values  int // int32 of a vector
	Lanes   int // of them in a fragment
	Epochs  int // vectors of every worker
}

func (j *Job) check() error {
	if j.Workers < 1 || j.Values < 1 || j.Lanes < 1 || j.Lanes > MaxLanes || j.Epochs < 1 || j.Epochs > 1<<15 {
		return fmt.Errorf("%w: %d vectors of %d values, %d in a packet, of %d workers", ErrConfig, j.Epochs, j.Values, j.Lanes, j.Workers)
	}
	return nil
}

// MaxLanes is what fits an Ethernet frame of 1,514 bytes.
const MaxLanes = (1514 - olaf.HeaderBytes) / olaf.LaneBytes

// Fragments is how many packets a vector takes.
func (j *Job) Fragments() int { return (j.Values + j.Lanes - 1) / j.Lanes }

func (j *Job) lanes(fragment int) int { return min(j.Lanes, j.Values-fragment*j.Lanes) }

// Value is lane i of a worker's vector.
func Value(worker, epoch, i int) int32 { return int32((worker+1)*1000 + epoch*7 + i%911) }

// Sum is what lane i of all workers' vectors adds up to.
func (j *Job) Sum(epoch, i int) int32 {
	var sum int32
	for w := range j.Workers {
		sum += Value(w, epoch, i)
	}
	return sum
}

// udpAt is where a frame's UDP payload begins: what a socket sends and receives of it.
const udpAt = 42

// The kinds of payloads, by their first byte: a fragment as fpga/xdp/bpf/xagg.c reads it, and a question for one.
const (
	magicData = 0x58
	magicAsk  = 0x59
)

// AskBytes is the length of a question: magic, a byte, epoch, fragment.
const askBytes = 8

// encode writes a fragment's payload: a frame of OLAF's without what the socket puts in front, under XAgg's magic.
func encode(dst []byte, j *Job, worker olaf.WorkerID, epoch uint16, fragment int, count uint16, lanes []int32) ([]byte, error) {
	u := olaf.Update{Cluster: j.ID, Worker: worker, Seq: uint32(fragment), Count: count, Lanes: uint16(len(lanes)), GenNS: uint64(time.Now().UnixNano()) % olaf.GenModulus}
	n, err := olaf.EncodeUpdate(dst[:u.Size()], &olaf.Addresses{}, &u, lanes)
	if err != nil {
		return nil, err
	}
	dst[udpAt] = magicData
	binary.BigEndian.PutUint32(dst[60:], uint32(epoch)<<16)
	return dst[udpAt:n], nil
}

// EncodeSum writes a sum as an aggregator sends it to the server.
func EncodeSum(dst []byte, j *Job, epoch uint16, fragment, count int, lanes []int32) ([]byte, error) {
	return encode(dst, j, 0, epoch, fragment, uint16(count), lanes)
}

// payload is a fragment that arrived.
type payload struct {
	worker   olaf.WorkerID
	epoch    uint16
	fragment int
	count    int
	lanes    []byte
}

// decode reads a fragment; false for anything else.
func decode(b []byte) (p payload, ok bool) {
	if len(b) < olaf.HeaderBytes-udpAt || b[0] != magicData || (len(b)-(olaf.HeaderBytes-udpAt))%olaf.LaneBytes != 0 {
		return payload{}, false
	}
	at := func(offset int) []byte { return b[offset-udpAt:] }
	return payload{
		worker: olaf.WorkerID(binary.BigEndian.Uint16(at(46))), epoch: binary.BigEndian.Uint16(at(60)), fragment: int(binary.BigEndian.Uint32(at(48))),
		count: int(binary.BigEndian.Uint16(at(52))), lanes: at(olaf.HeaderBytes),
	}, true
}

// lane is one value of a fragment.
func (p *payload) lane(i int) int32 {
	return int32(binary.BigEndian.Uint32(p.lanes[olaf.LaneBytes*i:]))
}

func (p *payload) length() int { return len(p.lanes) / olaf.LaneBytes }

// encodeAsk asks for a fragment's sum.
func encodeAsk(epoch uint16, fragment int) []byte {
	b := []byte{magicAsk, 0}
	b = binary.BigEndian.AppendUint16(b, epoch)
	return binary.BigEndian.AppendUint32(b, uint32(fragment))
}

// DecodeAsk reads a question; false for anything else.
func DecodeAsk(b []byte) (epoch uint16, fragment int, ok bool) {
	if len(b) != askBytes || b[0] != magicAsk {
		return 0, 0, false
	}
	return binary.BigEndian.Uint16(b[2:]), int(binary.BigEndian.Uint32(b[4:])), true
}

// room is what one datagram can be long.
const room = 2048

// silence is how long nothing may come before what is missing is asked for, and patience how long before a job is given up.
const (
	silence  = 20 * time.Millisecond
	patience = 20 * time.Second
)

// receive waits for a datagram until the deadline; nil where none came.
func receive(c *net.UDPConn, b []byte, until time.Time) ([]byte, netip.AddrPort, error) {
	if err := c.SetReadDeadline(until); err != nil {
		return nil, netip.AddrPort{}, err
	}
	n, from, err := c.ReadFromUDPAddrPort(b)
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		return nil, netip.AddrPort{}, nil
	}
	return b[:n], from, err
}
