package netlab

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"
)

// LayCable moves two interfaces of the calling thread's namespace that are joined by a cable to their nodes, like
// Adopt. It waits until frames pass in both directions, because network cards renegotiate the link. If one may not
// be taken, neither is. The error matches ErrNetwork, or ErrRights if frames may not be sent.
func Lay(a, b End, virtual bool) (*Cable, error) {
	below, err := a.Node.find(a.Name, virtual)
	if err != nil {
		return nil, err
	}
	above, err := b.Node.find(b.Name, virtual)
	if err != nil {
		return nil, err
	}
	c := new(Cable)
	if c.A, err = a.Node.take(below); err != nil {
		return nil, err
	}
	if c.B, err = b.Node.take(above); err != nil {
		return nil, err
	}
	return c, errors.Join(joined(c.A, c.B, joinPatience), joined(c.B, c.A, joinPatience))
}

// joinPatience is the time for a frame to pass between two interfaces, joinPause the wait for each frame.
const (
	joinPatience = 10 * time.Second
	joinPause    = 20 * time.Millisecond
)

// probe is the content of a test frame after the addresses: a protocol for local experiments (IEEE 802), and our
// name.
var probe = append([]byte{0x88, 0xb5}, "olafctl tries this cable"...)

// waitForFrame sends frames from one interface to another until one arrives.
func joined(from, to *Interface, patience time.Duration) (err error) {
	out, err := from.Packets(false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	in, err := to.Packets(true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	frame := slices.Concat(to.MAC, from.MAC, probe, make([]byte, 60-12-len(probe)))
	var refused error
	for began := time.Now(); time.Since(began) < patience; {
		refused = out.Send(frame)
		in.Wait(int(joinPause / time.Millisecond))
		if came(in, frame) {
			return nil
		}
	}
	return fmt.Errorf("%w: no frame got from interface %s to %s in %v; are they at the two ends of one cable, and both plugged in?%s", ErrNetwork, from.Name, to.Name, patience, because(refused))
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return " The last one was refused: " + err.Error()
}

// hasReceived reports whether a frame is in a socket's receive queue.
func came(in *Socket, frame []byte) bool {
	buf := make([]byte, 2*len(frame))
	for {
		n, err := in.Receive(buf)
		if err != nil {
			return false
		}
		if bytes.HasPrefix(buf[:n], frame) {
			return true
		}
	}
}
