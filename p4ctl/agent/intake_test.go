package agent

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/olafctl/olaf/p4ctl/p4"
)

// TestPushesAreLimited checks that pushes above the limit are rejected unread, and that a place is free again when a
// client leaves.
func TestPushesAreLimited(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(Options{Backend: new(Embedded), Profile: p4.Lab()})
	if err != nil {
		t.Fatal(err)
	}
	server := a.Serve(l, nil)
	defer server.Close()
	conn, err := grpc.NewClient(server.Target(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	slow, leave := context.WithCancel(t.Context())
	defer leave()
	for range pushesAtOnce {
		if _, err := conn.NewStream(slow, &grpc.StreamDesc{ClientStreams: true},
			v1.P4Runtime_SetForwardingPipelineConfig_FullMethodName); err != nil {
			t.Fatal(err)
		}
	}
	push := func() codes.Code {
		_, err := v1.NewP4RuntimeClient(conn).SetForwardingPipelineConfig(t.Context(),
			&v1.SetForwardingPipelineConfigRequest{DeviceId: 1})
		return status.Code(err)
	}
	if code := push(); code != codes.ResourceExhausted {
		t.Errorf("one more push: %v", code)
	}
	if _, err := v1.NewP4RuntimeClient(conn).Capabilities(t.Context(), &v1.CapabilitiesRequest{}); err != nil {
		t.Errorf("another call beside: %v", err)
	}
	leave()
	for push() == codes.ResourceExhausted { // until the server has noticed
	}
	if code := push(); code != codes.PermissionDenied {
		t.Errorf("a push of nobody's: %v", code)
	}
}
