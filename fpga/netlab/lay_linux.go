package netlab

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Lay takes two interfaces of the namespace of the calling thread that a cable joins, each into its node, as Adopt does, and waits until
// frames get from either to the other: network cards find out anew what is plugged into them. Neither is taken if one may not be.
// The error matches ErrNetwork, or ErrRights where frames may not be sent.
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

// joinPatience is how long two interfaces may take until a frame gets through, and joinPause how long one is waited for.
const (
	joinPatience = 10 * time.Second
	joinPause    = 20 * time.Millisecond
)

// probe is what follows the addresses of a frame that tries a cable: a protocol that is for local experiments (IEEE 802), and our name.
var probe = append([]byte{0x88, 0xb5}, "olafctl tries this cable"...)

// joined waits until a frame gets from one interface to another.
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

// came says whether a frame is among those that a socket has.
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
