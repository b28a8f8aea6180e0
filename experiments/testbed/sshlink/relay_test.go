package sshlink

import (
	"bufio"
	"fmt"
	"net"
	"path/filepath"
	"testing"
)

// TestRelay checks that a relay passes on bytes in both directions, keeps running when one connection ends, and reports
// the end of the other process.
func TestRelay(t *testing.T) {
	folder := t.TempDir()
	target, at := filepath.Join(folder, "target"), filepath.Join(folder, "relay")
	l, err := net.Listen("unix", target)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan net.Conn)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			line, err := bufio.NewReader(c).ReadString('\n')
			if err != nil { // the relay checks whether the target still listens
				c.Close()
				continue
			}
			fmt.Fprintf(c, "answer to %s", line)
			served <- c
		}
	}()
	r, err := StartRelay(at, target)
	if err != nil {
		t.Fatal(err)
	}
	ask := func() (c, behind net.Conn) {
		t.Helper()
		c, err := net.Dial("unix", at)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(c, "request")
		behind = <-served
		if line, err := bufio.NewReader(c).ReadString('\n'); line != "answer to request\n" {
			t.Fatalf("%q, %v", line, err)
		}
		return c, behind
	}
	first, behind := ask()
	first.Close()
	if n, err := behind.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes after the end of a connection", n)
	}
	second, behind := ask()
	select {
	case <-r.Lost():
		t.Error("the end of one connection counts as the end of the process")
	default:
	}
	l.Close()
	behind.Close()
	<-r.Lost()
	if n, err := second.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes after the end of the process", n)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
