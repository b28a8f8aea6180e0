package experiments

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"

	"github.com/olafctl/olaf"
)

// digest is the running SHA-256 over what one run delivered: for every frame, in order, its time, how long it was queued,
// and its header. Two runs with the same digest had the same observations.
type digest struct {
	sum hash.Hash
	buf []byte
	n   int64
}

// observationBytes is the record of one observation: At and Queued in ps, then the fields of the update.
const observationBytes = 8 + 8 + 8 + 4 + 4 + 2 + 2 + 2 + 2

func (d *digest) reset() {
	if d.sum == nil {
		d.sum, d.buf = sha256.New(), make([]byte, 0, 256*observationBytes)
	}
	d.sum.Reset()
	d.buf, d.n = d.buf[:0], 0
}

func (d *digest) add(o *olaf.Observation) {
	if len(d.buf)+observationBytes > cap(d.buf) {
		d.flush()
	}
	u, le := &o.Update, binary.LittleEndian
	b := le.AppendUint64(d.buf, uint64(o.At))
	b = le.AppendUint64(b, uint64(o.Queued))
	b = le.AppendUint64(b, u.GenNS)
	b = le.AppendUint32(b, u.Seq)
	b = le.AppendUint32(b, uint32(u.Reward))
	b = le.AppendUint16(b, uint16(u.Cluster))
	b = le.AppendUint16(b, uint16(u.Worker))
	b = le.AppendUint16(b, u.Count)
	d.buf = le.AppendUint16(b, u.Lanes)
	d.n++
}

func (d *digest) flush() {
	d.sum.Write(d.buf)
	d.buf = d.buf[:0]
}

// hex ends the run.
func (d *digest) hex() string {
	d.flush()
	return hex.EncodeToString(d.sum.Sum(nil))
}
