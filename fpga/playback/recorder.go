package playback

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
)

// Recorder is a device that passes every access on to another device and records it. It is not safe for concurrent use.
type Recorder struct {
	device  fpga.Device
	out     *bufio.Writer
	scratch []byte
	err     error
}

var (
	_ fpga.Device      = (*Recorder)(nil)
	_ fpga.PortCounter = (*Recorder)(nil)
)

// NewRecorder returns a device that passes accesses on to d and records them in w. The caller must close w after the
// device.
func NewRecorder(d fpga.Device, w io.Writer) (*Recorder, error) {
	r := &Recorder{device: d, out: bufio.NewWriter(w)}
	identity, err := json.Marshal(d.Identity())
	if err != nil {
		return nil, fmt.Errorf("record a session: %w", err)
	}
	_, err = fmt.Fprintf(r.out, "%s\nidentity %s\n", Schema, identity)
	return r, err
}

// recordAccess writes one access to the recording. If this fails, all later accesses fail too, because a recording with
// a missing access is useless.
func (r *Recorder) recordAccess(a access, err error) error {
	a.fails = failureOf(err)
	r.scratch = a.appendTo(r.scratch[:0])
	if _, writeErr := r.out.Write(r.scratch); writeErr != nil && r.err == nil {
		r.err = fmt.Errorf("record a session: %w", writeErr)
	}
	return errors.Join(err, r.err)
}

// Identity returns the device's identity.
func (r *Recorder) Identity() fpga.Identity { return r.device.Identity() }

// PortCounts returns the device's port counts. They are not recorded, because they are not registers, so a playback has
// no ports.
func (r *Recorder) PortCounts() ([]fpga.Port, error) { return fpga.PortCounts(r.device) }

// Read32 reads a register and records the access.
func (r *Recorder) Read32(addr uint32) (uint32, error) {
	v, err := r.device.Read32(addr)
	return v, r.recordAccess(access{op: 'r', addr: addr, value: uint64(v)}, err)
}

// Write32 writes a register and records the access.
func (r *Recorder) Write32(addr, value uint32) error {
	err := r.device.Write32(addr, value)
	return r.recordAccess(access{op: 'w', addr: addr, value: uint64(value)}, err)
}

// WriteBurst writes a burst and records the access.
func (r *Recorder) WriteBurst(addr uint32, words []uint32) error {
	err := r.device.WriteBurst(addr, words)
	return r.recordAccess(access{op: 'b', addr: addr, words: words}, err)
}

// Sleep lets time pass on the device and records the duration.
func (r *Recorder) Sleep(ctx context.Context, d olaf.Duration) error {
	err := r.device.Sleep(ctx, d)
	return r.recordAccess(access{op: 's', value: uint64(max(d, 0))}, err)
}

// Close closes the device and returns an error if the recording is incomplete.
func (r *Recorder) Close() error {
	err := r.device.Close()
	return errors.Join(err, r.err, r.out.Flush())
}

// Player is a device that answers like the recorded device. It is not safe for concurrent use.
type Player struct {
	session *session
	next    int
	err     error
}

var _ fpga.Device = (*Player)(nil)

// NewPlayer reads a session from r and returns a device that plays it back. The error matches ErrSession and includes
// the line number.
func NewPlayer(r io.Reader) (*Player, error) {
	s, err := parseSession(r)
	if err != nil {
		return nil, err
	}
	return &Player{session: s}, nil
}

// Left returns the number of recorded accesses that have not been played back yet.
func (p *Player) Left() int { return len(p.session.accesses) - p.next }

// takeNext returns the next recorded access if it matches the requested one. The first deviation ends the playback;
// every later access returns the same error.
func (p *Player) takeNext(asked access) (*access, error) {
	if p.err != nil {
		return nil, p.err
	}
	if p.Left() == 0 {
		p.err = fmt.Errorf("%w: it ends before: %s", ErrDiverged, &asked)
		return nil, p.err
	}
	recorded := &p.session.accesses[p.next]
	if !recorded.sameRequest(&asked) {
		p.err = fmt.Errorf("%w: line %d has: %s; this run asks: %s", ErrDiverged, recorded.line, recorded, &asked)
		return nil, p.err
	}
	p.next++
	return recorded, nil
}

// Identity returns the identity of the recorded device, but with kind playback.
func (p *Player) Identity() fpga.Identity {
	id := p.session.identity
	id.Kind = "playback"
	return id
}

// Read32 returns the value that was recorded for this read.
func (p *Player) Read32(addr uint32) (uint32, error) {
	a, err := p.takeNext(access{op: 'r', addr: addr})
	if err != nil {
		return 0, err
	}
	return uint32(a.value), a.fails.err()
}

// Write32 returns the error that was recorded for this write, or nil.
func (p *Player) Write32(addr, value uint32) error {
	return p.replay(access{op: 'w', addr: addr, value: uint64(value)})
}

// WriteBurst returns the error that was recorded for this burst, or nil.
func (p *Player) WriteBurst(addr uint32, words []uint32) error {
	return p.replay(access{op: 'b', addr: addr, words: slices.Clone(words)})
}

// Sleep returns the error that was recorded for this sleep, or nil. It returns immediately.
func (p *Player) Sleep(ctx context.Context, d olaf.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return p.replay(access{op: 's', value: uint64(max(d, 0))})
}

func (p *Player) replay(asked access) error {
	a, err := p.takeNext(asked)
	if err != nil {
		return err
	}
	return a.fails.err()
}

// Close ends the playback.
func (p *Player) Close() error {
	if p.err == nil {
		p.err = fmt.Errorf("%w: it was closed", fpga.ErrGone)
	}
	return nil
}
