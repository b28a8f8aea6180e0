package capture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"time"
)

// probeType is the EtherType of probe frames, which IEEE 802 reserves for experiments.
const probeType = 0x88b5

// leastFrame is the size of the shortest Ethernet frame without its FCS.
const leastFrame = 60

// EncodeProbe returns a broadcast frame that contains a token. It is sent to find out where a cable leads.
func EncodeProbe(from net.HardwareAddr, token []byte) []byte {
	frame := slices.Concat(bytes.Repeat([]byte{0xff}, 6), from)
	frame = append(binary.BigEndian.AppendUint16(frame, probeType), token...)
	return append(frame, make([]byte, max(0, leastFrame-len(frame)))...)
}

// isProbe reports whether a frame is a probe frame with the token.
func isProbe(frame, token []byte) bool {
	const typeAt = 12
	return len(frame) >= typeAt+2 && binary.BigEndian.Uint16(frame[typeAt:]) == probeType && bytes.HasPrefix(frame[typeAt+2:], token)
}

// probePoll is the time between looks for a probe frame.
const probePoll = 2 * time.Millisecond

// AwaitProbe reports whether a probe frame with the token arrives within the given time, even if other frames never stop.
func AwaitProbe(ctx context.Context, frames Source, token []byte, patience time.Duration) (arrived bool, err error) {
	for began := time.Now(); ; {
		var p Packet
		err := frames.Next(&p)
		switch {
		case err == nil && isProbe(p.Data, token):
			return true, nil
		case err != nil && !errors.Is(err, ErrIdle):
			return false, err
		case ctx.Err() != nil || time.Since(began) >= patience:
			return false, ctx.Err()
		case err == nil:
			continue
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(probePoll):
		}
	}
}
