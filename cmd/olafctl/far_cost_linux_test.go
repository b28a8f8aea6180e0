package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/olafctl/olaf/experiments/testbed/testbedtest"
)

// farRuns is the number of runs of the default bench for one queue.
const farRuns = 120

// roundTrip is the time that the cable to a distant host adds to a round trip.
const roundTrip = 500 * time.Microsecond

// BenchmarkFarRuns measures how much longer a run on another host's twin takes than on a twin behind a socket of this host: through
// ssh, through ssh and a holder that lends the twin (relayed), and through ssh with 0.5 ms of round trip. The start of ssh, about
// half a second, is part of it, and so is the examination of the holder's host.
func BenchmarkFarRuns(b *testing.B) {
	l := testbedtest.NewNetwork(b, 1, pathOfOlafctl(b))
	socket := filepath.Join(b.TempDir(), "s")
	serve := headCommand(b, l, "device", "serve", "-d", "twin:", "--listen", "unix:"+socket)
	words, err := serve.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	p, err := l.Head.Start(serve)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = p.Signal(os.Interrupt)
		_ = p.Wait() // interrupted
	})
	for lines := bufio.NewScanner(words); lines.Scan() && !strings.Contains(lines.Text(), "Ctrl-C"); {
	}
	measure := func(l *testbedtest.Network, device string) time.Duration {
		start := time.Now()
		if _, said, code := runOnHead(b, l, "bench", "--queue", "olaf", "--rate", "60G", "-q", "--keep=false", "-d", device); code != 0 {
			b.Fatalf("%s: exit code %d: %s", device, code, said)
		}
		return time.Since(start)
	}
	distant := *l
	distant.SSH += " -o HostKeyAlias=" + strings.TrimPrefix(l.Hosts[0].Name, "root@")
	far := fmt.Sprintf("ssh://root@%s/twin:", delayTCP(b, l, strings.TrimPrefix(l.Hosts[0].Name, "root@")+":22"))
	name := fmt.Sprintf("relayed%d", os.Getpid())
	file := filepath.Join(b.TempDir(), name+".yaml")
	text := fmt.Sprintf("hosts: {a: {ssh: %s}}\nroles:\n  queue: {host: a, device: 'twin:'}\n", l.Hosts[0].Name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	if _, said, code := runOnHead(b, l, "testbed", "up", file); code != 0 {
		b.Fatalf("testbed up: exit code %d: %s", code, said)
	}
	b.Cleanup(func() { runOnHead(b, l, "testbed", "down", name) })
	var near, ssh, relayed, distance time.Duration
	for b.Loop() {
		near += measure(l, "grpc:unix:"+socket)
		ssh += measure(l, l.Hosts[0].URL("twin:"))
		relayed += measure(l, "testbed:"+name)
		distance += measure(&distant, far)
	}
	runs := farRuns * float64(b.N)
	b.ReportMetric(near.Seconds()*1e3/runs, "socket-ms/run")
	b.ReportMetric((ssh-near).Seconds()*1e3/runs, "ssh-more-ms/run")
	b.ReportMetric((relayed-near).Seconds()*1e3/runs, "relayed-more-ms/run")
	b.ReportMetric((distance-near).Seconds()*1e3/runs, "distant-more-ms/run")
}

// BenchmarkTestbedUp measures bringing a testbed of three hosts up and down.
func BenchmarkTestbedUp(b *testing.B) {
	l := testbedtest.NewNetwork(b, 3, pathOfOlafctl(b))
	text := "hosts:\n"
	for i, h := range l.Hosts {
		text += fmt.Sprintf("  h%d: {ssh: %s}\n", i, h.Name)
	}
	text += "roles:\n  generator: {host: h0, device: 'twin:'}\n  queue: {host: h1, device: 'twin:'}\n  server: {host: h2, interface: lan}\n"
	file := filepath.Join(b.TempDir(), fmt.Sprintf("up%d.yaml", os.Getpid()))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for _, command := range []string{"up", "down"} {
			start := time.Now()
			if out, said, code := runOnHead(b, l, "testbed", command, file); code != 0 {
				b.Fatalf("testbed %s: exit code %d: %s%s", command, code, out, said)
			}
			b.ReportMetric(time.Since(start).Seconds(), command+"-s")
		}
	}
}

// delayTCP listens on the head and forwards connections to an address there, delaying each direction by half of
// roundTrip. It returns the address on which it listens.
func delayTCP(b *testing.B, l *testbedtest.Network, to string) string {
	b.Helper()
	var listener net.Listener
	err := l.Head.Do(func() (err error) {
		listener, err = net.Listen("tcp", "10.29.0.1:0")
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { listener.Close() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			var far net.Conn
			if err := l.Head.Do(func() (err error) {
				far, err = net.Dial("tcp", to)
				return err
			}); err != nil {
				near.Close()
				continue
			}
			go delayCopy(far, near)
			go delayCopy(near, far)
		}
	}()
	return listener.Addr().String()
}

// delayCopy copies data until from ends. It writes each piece half of roundTrip after reading it.
func delayCopy(to, from net.Conn) {
	type piece struct {
		due  time.Time
		data []byte
	}
	queue := make(chan piece, 1024)
	go func() {
		defer to.Close()
		for p := range queue {
			// Timers of the runtime would round a quarter of a millisecond up to one.
			left := unix.NsecToTimespec(max(time.Until(p.due).Nanoseconds(), 0))
			_ = unix.Nanosleep(&left, nil)
			if _, err := to.Write(p.data); err != nil {
				return
			}
		}
	}()
	defer close(queue)
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			queue <- piece{time.Now().Add(roundTrip / 2), bytes.Clone(buffer[:n])}
		}
		if err != nil { // either end has closed the connection
			return
		}
	}
}
