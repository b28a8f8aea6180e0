package remote

import (
	"context"
	"encoding/binary"
	"time"

	"google.golang.org/grpc"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
)

// sleepSlice is the longest sleep in a single request. It is limited so that a canceled context is noticed and the
// session stays usable.
const sleepSlice = 100 * olaf.Millisecond

// Sleep lets time pass on the device.
func (d *Device) Sleep(ctx context.Context, t olaf.Duration) error {
	for first := true; first || t > 0; first = false {
		if err := ctx.Err(); err != nil {
			return err
		}
		slice := min(max(t, 0), sleepSlice)
		if err := d.requestSlices(slice, 1); err != nil {
			return err
		}
		t -= slice
	}
	return nil
}

// WatchGenerator implements fpga.Watcher. The agent sends updates while device time continues to pass.
func (d *Device) WatchGenerator(ctx context.Context, step olaf.Duration, each func(passed olaf.Duration) (more bool, err error)) error {
	if err := d.endStream(); err != nil {
		return err
	}
	for d.slices = 0; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := d.awaitSlices(step); err != nil {
			return err
		}
		if more, err := each(olaf.Duration(d.slices) * step); err != nil || !more {
			return err
		}
	}
}

// awaitSlices waits for the next answer about time that passes in steps. If the last request has no further answer, it
// makes a new request.
func (d *Device) awaitSlices(step olaf.Duration) error {
	if !d.streams {
		return d.requestSlices(step, maxSlices)
	}
	d.ahead.expire()
	return d.readSlices(d.takeReply(d.awaitReply))
}

// requestSlices makes a request to let time pass in at most n steps, and reads the first answer.
func (d *Device) requestSlices(step olaf.Duration, n uint32) error {
	d.startRequest(opSleep)
	d.request = binary.LittleEndian.AppendUint64(d.request, uint64(step))
	d.putWords(n)
	return d.readSlices(d.sendRequest())
}

// readSlices reads an answer to opSleep. If err is not nil, it returns err.
func (d *Device) readSlices(r reader, err error) error {
	if d.streams = false; err != nil {
		return err
	}
	d.streams = r.u8() != 0
	d.slices += r.u32()
	d.ahead.addRegisters(&r)
	if err := d.ahead.addUpdates(&r, drainsAfterSleep); err != nil {
		d.failed = err // answers may not belong to their requests any more
	}
	return d.failed
}

// endStream waits for the remaining answers to the last request and keeps their updates.
func (d *Device) endStream() error {
	for d.streams {
		if err := d.readSlices(d.takeReply(d.awaitReply)); err != nil {
			return err
		}
	}
	return nil
}

// Limits on the answers to one request to let time pass.
const (
	maxSlices   = 1 << 20
	streamTime  = 100 * time.Millisecond // time until the last answer is sent, so that the client can interrupt
	answerTime  = time.Millisecond       // time until an answer is sent
	answerBytes = 32 << 10               // bytes of updates after which an answer is sent
)

// streamSlices lets time pass in slices while the generator runs, and sends the updates delivered in them. It ends with
// the slice in which the generator ended, with the last requested slice, or after streamTime.
func (s *Server) streamSlices(stream grpc.ServerStream, request []byte, readOnly bool) error {
	r := reader{b: request}
	step, left := olaf.Duration(r.u64()), r.u32()
	if err := errBroken; !r.atEnd() || step < 0 || left < 1 || readOnly {
		if readOnly {
			err = errReadOnly
		}
		b := appendStatus(nil, err)
		return stream.SendMsg(&b)
	}
	end := time.Now().Add(streamTime)
	for more := true; more; {
		var b []byte // a new buffer each time, as the last one may not have been sent yet
		s.Do(func() { b, more = s.appendSlices(stream.Context(), step, &left, end) })
		if err := stream.SendMsg(&b); err != nil {
			return err
		}
	}
	return nil
}

// watchedRegisters lists the registers that are read after slices of time, because clients usually wait for one of them
// to change.
var watchedRegisters = [...]uint32{regmap.GeneratorState, regmap.QueueStatus}

// appendSlices lets one or several slices of time pass and returns the answer. The answer contains whether more answers
// follow, the number of slices, the watched registers that can be read, as a number followed by addresses and values,
// and the updates delivered since the last answer.
func (s *Server) appendSlices(ctx context.Context, step olaf.Duration, left *uint32, end time.Time) (b []byte, more bool) {
	s.lists = s.lists[:0]
	slices, send := uint32(0), time.Now().Add(answerTime)
	for done := false; !done; {
		if err := s.device.Sleep(ctx, step); err != nil {
			return appendStatus(nil, err), false
		}
		s.lists = s.appendDrained(s.lists)
		slices++
		*left--
		now := time.Now()
		more = *left > 0 && now.Before(end) && s.isRunning()
		done = !more || len(s.lists) >= answerBytes || now.After(send)
	}
	b = appendStatus(make([]byte, 0, len(s.lists)+64), nil)
	if b = append(b, 0); more {
		b[len(b)-1] = 1
	}
	b = append(binary.LittleEndian.AppendUint32(b, slices), 0)
	number := len(b) - 1
	for _, addr := range watchedRegisters {
		if v, err := s.device.Read32(addr); err == nil {
			b[number]++
			b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, addr), v)
		}
	}
	return append(b, s.lists...), more
}

// isRunning reports whether the generator is sending packets.
func (s *Server) isRunning() bool {
	v, err := s.device.Read32(regmap.GeneratorState)
	state := v & regmap.GeneratorStateStateMask
	return err == nil && (state == regmap.GeneratorStateStateRunning || state == regmap.GeneratorStateStateStopping)
}
