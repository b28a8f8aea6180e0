package agent

import (
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// TestStopWaits checks that the device is not used after the server was closed.
func TestStopWaits(t *testing.T) {
	l, err := Listen("unix:"+filepath.Join(t.TempDir(), "s"), false)
	if err != nil {
		t.Fatal(err)
	}
	entered := make(chan struct{})
	var left atomic.Bool
	stream := grpc.StreamDesc{StreamName: "Use", ServerStreams: true, ClientStreams: true,
		Handler: func(_ any, s grpc.ServerStream) error {
			close(entered)
			<-s.Context().Done()
			for range 10_000 { // time for an access to the device to end
				runtime.Gosched()
			}
			left.Store(true)
			return nil
		}}
	server := grpc.NewServer(ServerOptions(nil)...)
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "device", HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{stream}}, nil)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	client, err := grpc.NewClient("unix:"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.NewStream(t.Context(), &stream, "/device/Use"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-entered:
	case err := <-served:
		t.Fatalf("nobody is served: %v", err)
	}
	server.Stop()
	if !left.Load() {
		t.Error("the server is gone, and a request goes on")
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
