package remote

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSocketErrors checks that the errors distinguish a socket that this user may not use, a socket without a listener,
// and a socket with one.
func TestSocketErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	if isDenied("unix:"+path) || isDenied("127.0.0.1:1") {
		t.Error("denied where nothing is")
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if isDenied("unix:" + path) {
		t.Error("denied where somebody listens")
	}
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	answer := make(chan bool)
	go func() {
		runtime.LockOSThread() // the thread, on which root gives up its file rights, ends with the goroutine
		if os.Getuid() == 0 {
			_ = unix.Setfsuid(65534)
		}
		answer <- isDenied("unix:" + path)
	}()
	if !<-answer {
		t.Error("not denied where this user may not write")
	}
}
