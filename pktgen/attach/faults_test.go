//go:build unix

package attach

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/olafctl/olaf/pktgen/endpoint"
)

// serving starts a server's socket for a test.
func serving(t *testing.T) (u *Updates, address string) {
	t.Helper()
	port, address := open(t)
	u, err := NewUpdates(Config{System: "olaf", Largest: 3, Lanes: 5, Scale: 1}, func(error) {}, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	go port.Serve(u)
	return u, address
}

// TestNextClientGetsTheUnansweredFrame checks that if a server's client dies with a frame, the next client gets the
// same frame and its answer reaches the workers.
func TestNextClientGetsTheUnansweredFrame(t *testing.T) {
	u, address := serving(t)
	a := &endpoint.Aggregate{Vectors: 1, Values: []uint32{uint32(u.config.code()), 0, 7, 8, 9}}
	done := make(chan struct{})
	u.ApplyLater(a, func() { close(done) })
	first := dial(t, address)
	taken, _, err := first.Take()
	if err != nil {
		t.Fatal(err)
	}
	_ = first.conn.Close() // it crashes
	var second *Client
	for second == nil { // until the port has noticed
		second, _ = Dial(address)
	}
	defer second.Close()
	again, values, err := second.Take()
	if err != nil || again != taken || len(values) != 3 || values[0] != 7 {
		t.Errorf("the next client takes %+v %v, %v; want the frame that has no answer, %+v", again, values, err, taken)
	}
	if err := second.Reply(again.Number, []float32{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	<-done
	if a.Values[1] != 1 || a.Values[2] != 1 {
		t.Errorf("the workers get %v, want the second client's answer as version 1", a.Values)
	}
}

// TestAnswersOutOfTurnEndTheConnection checks that a reply without a waiting frame, and two requests at once, end the
// connection.
func TestAnswersOutOfTurnEndTheConnection(t *testing.T) {
	for name, c := range map[string]struct {
		send func(*Client) error
		want string
	}{
		"a reply before a frame": {func(c *Client) error { return c.Reply(0, nil) }, "a server takes an update first"},
		"a vector for a server": {func(c *Client) error {
			_, err := c.Push(nil, 0)
			return err
		}, "a server takes an update first"},
		"two requests at once": {func(c *Client) error {
			_, err := c.conn.Write(Append(Append(nil, KindTake, nil, nil), KindTake, nil, nil))
			return err
		}, "while it waits for an answer"},
	} {
		_, address := serving(t)
		client := dial(t, address)
		err := c.send(client)
		if err == nil {
			_, err = client.answer(KindUpdate)
		}
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the answer is %v, want an error with %q", name, err, c.want)
		}
	}
}

// TestDaemonThatDiesEndsItsClient closes the socket without a message, as a killed daemon does, and checks that a
// waiting client gets an error at once.
func TestDaemonThatDiesEndsItsClient(t *testing.T) {
	j := newSumming(t, usual, usual)
	c := dial(t, j.addresses[0])
	waits := make(chan error, 1)
	go func() { _, _, err := c.Sum([]float32{1}, 0); waits <- err }()
	for j.workers[0].Accepted() == 0 { // until it waits for the other worker
	}
	j.ports[0].mu.Lock()
	for conn := range j.ports[0].conns {
		_ = conn.(*net.UnixConn).CloseRead()
		_ = conn.(*net.UnixConn).CloseWrite()
	}
	j.ports[0].mu.Unlock()
	if err := <-waits; !errors.Is(err, io.EOF) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("a client whose daemon was killed gets %v, want the end of the connection", err)
	}
}

// TestOtherUsersCannotAttach checks that another user cannot dial a socket, even in folders that all users may enter.
func TestOtherUsersCannotAttach(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can dial as another user")
	}
	interpreter := python(t, "socket")
	_, address := serving(t)
	path := strings.TrimPrefix(address, "unix:")
	for dir := filepath.Dir(path); dir != os.TempDir() && len(dir) > 1; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), pythonTime)
	defer cancel()
	dialAs := func(uid uint32) string {
		cmd := exec.CommandContext(ctx, interpreter, "-c", "import socket, sys\nsocket.socket(socket.AF_UNIX).connect(sys.argv[1])", path)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, _ := cmd.CombinedOutput() // the output already contains the error
		return string(out)
	}
	if out := dialAs(65534); !strings.Contains(out, "PermissionError") {
		t.Errorf("another user gets %q, want that permission is denied", out)
	}
	if out := dialAs(0); out != "" {
		t.Errorf("the socket's user gets %q, want a connection", out)
	}
}

// TestUpdatesWithoutClientEndWithTheirContext checks that updates to a server whose client never attaches end with
// their context, even while the previous update still waits for a client.
func TestUpdatesWithoutClientEndWithTheirContext(t *testing.T) {
	u, _ := serving(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range 3 {
		if _, ok := u.ApplyVector(ended, Update{Count: 1}, nil); ok {
			t.Errorf("update %d has an answer, want none without a client", i)
		}
	}
}

// TestClientThatDiesAfterItsVectorIsInTheSum kills a worker's client that waits for a sum: the other worker gets the sum
// with the dead client's vector, and the next client begins with the next round.
func TestClientThatDiesAfterItsVectorIsInTheSum(t *testing.T) {
	j := newSumming(t, usual, usual)
	first, other := dial(t, j.addresses[0]), dial(t, j.addresses[1])
	go func() { _, _, _ = first.Sum([]float32{1, 2}, 0) }()
	for j.workers[0].Accepted() == 0 { // until it waits for the other worker
	}
	_ = first.conn.Close() // it crashes
	if _, got, err := other.Sum([]float32{8, 8}, 0); err != nil || got[0] != 9 || got[1] != 10 {
		t.Errorf("the other worker gets %v, %v; want the sum of both vectors", got, err)
	}
	var next *Client
	for next == nil { // until the port has noticed
		next, _ = Dial(j.addresses[0])
	}
	defer next.Close()
	if next.Round != 1 {
		t.Errorf("the next client begins with round %d, want 1", next.Round)
	}
	heads, all, errs := sums(t, []*Client{next, other}, [][]float32{{3}, {4}})
	if errs[0] != nil || errs[1] != nil || heads[0].Round != 1 || all[0][0] != 7 || all[1][0] != 7 {
		t.Errorf("in round %d they get %v, %v; want 7 in round 1", heads[0].Round, all, errs)
	}
}
