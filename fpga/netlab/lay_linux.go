package netlab

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"
)

// LayCable moves two interfaces that are connected by a cable from the calling thread's namespace to their nodes, as
// Adopt does. It then waits until frames pass in both directions, because network cards renegotiate the link. If either
// interface may not be taken, neither is moved. The error matches ErrNetwork, or ErrRights if sending frames is not
// permitted.
func LayCable(a, b End, virtual bool) (*Cable, error) {
	below, err := a.Node.findAdoptable(a.Name, virtual)
	if err != nil {
		return nil, err
	}
	above, err := b.Node.findAdoptable(b.Name, virtual)
	if err != nil {
		return nil, err
	}
	c := new(Cable)
	if c.A, err = a.Node.takeLink(below); err != nil {
		return nil, err
	}
	if c.B, err = b.Node.takeLink(above); err != nil {
		return nil, err
	}
	return c, errors.Join(waitForFrame(c.A, c.B, joinPatience), waitForFrame(c.B, c.A, joinPatience))
}

// joinPatience is the time within which a frame must pass between two interfaces, joinPause the wait for each frame.
const (
	joinPatience = 10 * time.Second
	joinPause    = 20 * time.Millisecond
)

// probe is the part of a test frame after the addresses. It consists of the protocol number for local experiments (IEEE
// 802) and a text with our name.
var probe = append([]byte{0x88, 0xb5}, "olafctl tries this cable"...)

// waitForFrame sends test frames from one interface to another until a frame arrives. It fails after patience.
func waitForFrame(from, to *Interface, patience time.Duration) (err error) {
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
		if hasReceived(in, frame) {
			return nil
		}
	}
	return fmt.Errorf("%w: no frame got from interface %s to %s in %v; are they at the two ends of one cable, and "+
		"both plugged in?%s", ErrNetwork, from.Name, to.Name, patience, refusedText(refused))
}

func refusedText(err error) string {
	if err == nil {
		return ""
	}
	return " The last one was refused: " + err.Error()
}

// hasReceived reports whether a frame is in the receive queue of a socket.
func hasReceived(in *Socket, frame []byte) bool {
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
