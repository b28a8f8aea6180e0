package testbed

import (
	"context"
	"encoding/json"
	"net"

	"github.com/olafctl/olaf/capture"
)

// callProbe is the name of the request to send a probe frame.
const callProbe = "probe"

// probeRequest asks a host to send a probe frame.
type probeRequest struct {
	Interface string
	Token     []byte
}

// SendProbe sends a probe frame through an interface of this host. The error matches ErrReserved if another user has
// reserved the interface.
func (a *Access) SendProbe(name string, token []byte) error {
	if err := a.CheckInterfaces(name); err != nil {
		return err
	}
	at, err := net.InterfaceByName(name)
	if err != nil {
		return err
	}
	return sendFrame(at, capture.EncodeProbe(at.HardwareAddr, token))
}

// answerProbe sends the probe frame that a request asks for.
func (a *Access) answerProbe(_ context.Context, body json.RawMessage) (any, error) {
	var r probeRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	return nil, a.SendProbe(r.Interface, r.Token)
}

// SendProbe sends a probe frame through an interface of the host.
func (h *Host) SendProbe(ctx context.Context, name string, token []byte) error {
	return h.Call(ctx, callProbe, probeRequest{name, token}, new(any))
}
