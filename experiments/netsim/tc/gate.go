package tc

import (
	"fmt"
	"math/rand/v2"

	"github.com/olafctl/olaf"
)

// Control selects the workers' transmission control (paper §5), as in documents.
type Control struct {
	Law       LawName       `json:"law"`
	Threshold olaf.Duration `json:"threshold,omitempty"` // Δ̄T
	Slope     Slope         `json:"slope,omitempty"`
	Ack       AckContent    `json:"ack,omitempty"` // empty: NumberAck
}

// Build returns the selected law.
func (c *Control) Build() (Law, error) {
	law, err := NewLaw(c.Law, Config{Threshold: c.Threshold, Slope: c.Slope, Ack: c.Ack})
	if err != nil {
		return nil, fmt.Errorf("transmission control: its %w", err)
	}
	return law, nil
}

// Gate decides for a worker that receives real ACKs which updates it sends.
type Gate struct {
	law        Law
	ack        AckContent
	controller Controller
	draws      *rand.Rand
}

// NewGate returns the gate of a worker that reads this content of ACKs. Its draws follow from the seed.
func NewGate(law Law, ack AckContent, seed uint64, worker olaf.WorkerID) *Gate {
	return &Gate{law: law, ack: ack, draws: rand.New(rand.NewPCG(seed, uint64(worker)))}
}

// RecordStatus records the status in an ACK.
func (g *Gate) RecordStatus(now olaf.Time, s olaf.QueueStatus) {
	status := Status{Active: uint32(s.ActiveClusters), Slots: uint32(s.Slots), Occupancy: s.Occupancy}
	if g.ack == FullAck { // the bit alone, so that a queue need not send its occupancy
		if status.Occupancy = 0; s.Full {
			status.Occupancy = status.Slots
		}
	}
	g.controller.OnAck(now, status)
}

// Sends reports whether to send the next update at now.
func (g *Gate) Sends(now olaf.Time) bool { return g.controller.Decide(g.law, now, g.draws.Float64()) }
