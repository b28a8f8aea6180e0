package silence

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc/peer"
)

// TestSilence checks that silence lasts from the last byte from a client, and that a refusal mentions it after five
// seconds.
func TestSilence(t *testing.T) {
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1000, 0)
	l := Listen(plain, func() time.Time { return now })
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	quiet := Of(peer.NewContext(context.Background(), &peer.Peer{Addr: server.RemoteAddr()}))
	now = now.Add(14 * time.Second)
	if d := quiet(); d != 14*time.Second {
		t.Errorf("14 s after it connected, the client has been silent for %v", d)
	}
	const want = "; the agent last heard of that client 14s ago, and drops it after 40s of silence"
	if got := Clause(quiet()); got != want {
		t.Errorf("a refusal because of it ends with %q; want %q", got, want)
	}
	if _, err := client.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if d := quiet(); d != 0 || Clause(d) != "" {
		t.Errorf("when it sent a byte, it had been silent for %v: %q", d, Clause(d))
	}
	if d := Of(context.Background())(); d != 0 {
		t.Errorf("the client of another listener is silent for %v", d)
	}
}
