package trace

import (
	"bufio"
	"io"
	"strconv"

	"github.com/olafctl/olaf"
)

// RxHeader is the first line of a receive trace file.
const RxHeader = "rx_ns,worker,seq,gen_ns"

// RxWriter writes a receive trace. It has one line per received frame, in the order of reception. A line contains the
// index of the frame's newest contributor, counted over all clusters. Lines end in LF.
type RxWriter struct {
	w   *bufio.Writer
	buf []byte
	err error
}

// NewRxWriter returns an RxWriter and writes the header. The caller must call Flush at the end.
func NewRxWriter(w io.Writer) *RxWriter {
	x := &RxWriter{w: bufio.NewWriterSize(w, 1<<16), buf: make([]byte, 0, 96)}
	_, x.err = x.w.WriteString(RxHeader + "\n")
	return x
}

// Deliver implements netsim.Observer. It writes one line.
func (x *RxWriter) Deliver(_, worker int, o *olaf.Observation) {
	b := strconv.AppendInt(x.buf[:0], o.At.NS(), 10)
	b = strconv.AppendInt(append(b, ','), int64(worker), 10)
	b = strconv.AppendUint(append(b, ','), uint64(o.Update.Seq), 10)
	b = strconv.AppendInt(append(b, ','), olaf.UnwrapStamp(o.At, o.Update.GenNS).NS(), 10)
	b = append(b, '\n')
	if x.err == nil {
		_, x.err = x.w.Write(b)
	}
	x.buf = b
}

// Flush writes buffered data and returns the first error.
func (x *RxWriter) Flush() error {
	if err := x.w.Flush(); x.err == nil {
		x.err = err
	}
	return x.err
}
