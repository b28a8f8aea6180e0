package attach

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// Layout of an update and of a model that travel as float32 through a network that adds nothing, with Config.Floats. An
// update begins with six lanes that are not float32: vectorMark, the version of the model on which the update was
// computed, the update's number, its reward in float32, and the low and high half of the time when it was ready. A model
// begins with vectorMark and its version.
const (
	vectorMark = 0x4f4c4146 // "OLAF"; a worker that waits for sums begins with 1.0
	updateHead = 6
	modelHead  = 2
)

// appendUpdate appends a client's update as float32.
func appendUpdate(lanes []uint32, h *handed) []uint32 {
	ready := uint64(h.at.UnixNano()) % olaf.GenModulus
	lanes = append(lanes, vectorMark, h.versions[0], h.round, math.Float32bits(h.reward), uint32(ready), uint32(ready>>32))
	return appendFloat32(lanes, h.values)
}

// appendFloat32 appends little-endian values to lanes.
func appendFloat32(lanes []uint32, values []byte) []uint32 {
	for i := 0; i+4 <= len(values); i += 4 {
		lanes = append(lanes, binary.LittleEndian.Uint32(values[i:]))
	}
	return lanes
}

// appendBytes appends lanes to little-endian values.
func appendBytes(values []byte, lanes []uint32) []byte {
	for _, v := range lanes {
		values = binary.LittleEndian.AppendUint32(values, v)
	}
	return values
}

// applyModel stores the server's answer to the client's update and reports to the client that the update arrived.
func (w *Pushes) applyModel(a *endpoint.Aggregate) {
	if len(a.Values) < modelHead || a.Values[0] != vectorMark {
		w.end(fmt.Errorf("%w: the server adds vectors and does not answer single updates; start it with the same --mode as "+
			"the workers, and with --attach", ErrDisagree))
		return
	}
	if n := len(a.Values) - modelHead; n > w.config.Largest {
		w.end(fmt.Errorf("%w: the server's answer has %d values or more, and this worker's longest vector has %d; start both "+
			"with the same --values", ErrDisagree, n, w.config.Largest))
		return
	}
	if len(a.Values) > modelHead {
		w.SetModel(a.Values[1], appendBytes(nil, a.Values[modelHead:]))
	}
	w.Answer(true)
}

// readUpdate returns an update that arrived as float32, or false if it is not from a worker that sends such updates.
func readUpdate(a *endpoint.Aggregate) (u Update, values []byte, ok bool) {
	v := a.Values
	if len(v) < updateHead || v[0] != vectorMark {
		return u, nil, false
	}
	u = Update{Count: 1, Worker: uint32(a.Worker), Vector: v[2], VersionSum: uint64(v[1]), GenNS: uint64(v[5])<<32 | uint64(v[4]),
		Reward: math.Float32frombits(v[3]), Waiting: uint32(a.Waiting)}
	return u, appendBytes(nil, v[updateHead:]), true
}

// modelLanes returns a model as float32.
func modelLanes(version uint32, values []byte) []uint32 {
	return appendFloat32([]uint32{vectorMark, version}, values)
}
