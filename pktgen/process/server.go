package process

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// Server is what a parameter server is told.
type Server struct {
	Job
	Workers []netip.AddrPort // who gets every sum
	Agent   netip.AddrPort   // of the aggregator, who is asked for sums that did not come
}

// ServerReport is what a server did.
type ServerReport struct {
	Sums     int `json:"sums"`     // fragments, each for the first time
	Repeated int `json:"repeated"` // that were here already
	Sent     int `json:"sent"`     // results
	Asked    int `json:"asked"`    // the aggregator, for sums
	Answered int `json:"answered"` // workers that asked
}

// server is a server at work.
type server struct {
	*Server
	conn   *net.UDPConn
	report ServerReport
	epoch  []uint16 // by fragment, of the sum that is here
	sums   [][]byte
}

// Run passes on every sum that arrives to all workers, and answers those that ask, until nobody has asked or sent anything for
// a while after the last sum, or the context ends. The error matches ErrConfig or ErrStalled.
func (s *Server) Run(ctx context.Context, conn *net.UDPConn) (ServerReport, error) {
	if err := s.check(); err != nil {
		return ServerReport{}, err
	}
	if len(s.Workers) != s.Job.Workers {
		return ServerReport{}, fmt.Errorf("%w: addresses of %d of %d workers", ErrConfig, len(s.Workers), s.Job.Workers)
	}
	k := &server{Server: s, conn: conn, epoch: make([]uint16, s.Fragments()), sums: make([][]byte, s.Fragments())}
	in, heard := make([]byte, room), time.Now()
	for ctx.Err() == nil {
		b, from, err := receive(conn, in, time.Now().Add(silence))
		if err != nil {
			return k.report, err
		}
		switch {
		case b != nil:
			heard = time.Now()
			if err := k.take(b, from); err != nil {
				return k.report, err
			}
		case time.Since(heard) > patience:
			return k.report, fmt.Errorf("%w: %d of %d sums came", ErrStalled, k.report.Sums, s.Fragments()*s.Epochs)
		}
	}
	return k.report, nil
}

func (k *server) take(b []byte, from netip.AddrPort) error {
	if epoch, fragment, ok := DecodeAsk(b); ok && fragment < len(k.sums) {
		return k.answer(epoch, fragment, from)
	}
	p, ok := decode(b)
	if !ok || p.fragment >= len(k.sums) {
		return nil
	}
	if k.sums[p.fragment] != nil && int16(p.epoch-k.epoch[p.fragment]) <= 0 {
		k.report.Repeated++
		return nil
	}
	k.report.Sums++
	k.sums[p.fragment], k.epoch[p.fragment] = append(k.sums[p.fragment][:0], b...), p.epoch
	for _, w := range k.Workers {
		if _, err := k.conn.WriteToUDPAddrPort(b, w); err != nil {
			return err
		}
		k.report.Sent++
	}
	return nil
}

// answer sends a worker a sum, or asks the aggregator for it.
func (k *server) answer(epoch uint16, fragment int, to netip.AddrPort) error {
	if k.sums[fragment] != nil && k.epoch[fragment] == epoch {
		k.report.Answered++
		_, err := k.conn.WriteToUDPAddrPort(k.sums[fragment], to)
		return err
	}
	k.report.Asked++
	_, err := k.conn.WriteToUDPAddrPort(encodeAsk(epoch, fragment), k.Agent)
	return err
}
