package xdp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/engine"
)

const decisionBytes = 56

// Decisions calls visit for each entry logged since its previous call. It does not wait for more entries.
func (p *programs) Decisions(visit func(*dataplane.Decision)) error {
	if p.log == nil {
		return nil
	}
	p.log.SetDeadline(time.Unix(0, 0))
	for p.log.AvailableBytes() > 0 {
		err := p.log.ReadInto(&p.record)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		if err != nil {
			return fmt.Errorf("xdp: read the decision log: %w", err)
		}
		if len(p.record.RawSample) < decisionBytes {
			return fmt.Errorf("xdp: an entry of the decision log has %d bytes", len(p.record.RawSample))
		}
		d := decodeDecision(p.record.RawSample)
		visit(&d)
	}
	return nil
}

func decodeDecision(b []byte) dataplane.Decision {
	u16 := func(at int) uint16 { return binary.NativeEndian.Uint16(b[at:]) }
	u32 := func(at int) uint32 { return binary.NativeEndian.Uint32(b[at:]) }
	u64 := func(at int) uint64 { return binary.NativeEndian.Uint64(b[at:]) }
	return dataplane.Decision{
		Number: u64(0), AtNS: u64(8), Slot: engine.Slot(int32(u32(32))), Saturated: u32(36),
		Update: olaf.Update{
			GenNS: u64(16), Seq: u32(24), Reward: int32(u32(28)), Cluster: olaf.ClusterID(u16(40)),
			Worker: olaf.WorkerID(u16(42)),
			Count:  u16(44), Lanes: u16(46), Flags: olaf.Flags(b[50]),
		},
		Kind: dataplane.DecisionKind(b[48]), Class: engine.Class(b[49]),
	}
}
