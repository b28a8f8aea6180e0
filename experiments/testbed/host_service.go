package testbed

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/capture/live"
)

// CallHandler answers the requests with one name. The context ends when the client gives up or disconnects.
type CallHandler func(ctx context.Context, body json.RawMessage) (answer any, err error)

// HostService provides what a testbed needs from a host in addition to a device: the host's clock, frames from an
// interface, three programs, and the files that they write. It runs in agents that end together with the head of the
// testbed, and ends the programs that it started.
type HostService struct {
	Now        func() time.Time                   // the host's clock; nil is time.Now
	OpenFrames func(live.Options) (Frames, error) // captures from an interface
	Program    string                             // this program's executable, for the programs
	Folder     string                             // folder of the run: the programs start and write there; only its files are read
	Calls      map[string]CallHandler             // further requests, by name

	mu       sync.Mutex
	children map[*exec.Cmd]bool
	closed   bool
}

const hostServiceName = "olafctl.host.v1.Host"

// hostPrograms lists the programs that a head may start, as arguments of olafctl.
var hostPrograms = map[string][]string{"worker": {"testbed", "worker"}, "ps": {"testbed", "ps"}, "capture": {"capture"}}

// hostMethods lists the methods of the service. Each is a stream of byte strings.
var hostMethods = map[string]func(*HostService, *hostStream) error{
	"Echo": (*HostService).serveEcho, "Frames": (*HostService).serveFrames, "Start": (*HostService).serveStart,
	"Read": (*HostService).serveRead, "Call": (*HostService).serveCall,
}

// Register registers the service with a gRPC server.
func (s *HostService) Register(r grpc.ServiceRegistrar) {
	d := grpc.ServiceDesc{ServiceName: hostServiceName, HandlerType: (*any)(nil)}
	for name, serve := range hostMethods {
		d.Streams = append(d.Streams, grpc.StreamDesc{StreamName: name, ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error { return serve(s, &hostStream{stream}) }})
	}
	r.RegisterService(&d, s)
}

// Close kills the programs that the service started.
func (s *HostService) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for cmd := range s.children {
		_ = cmd.Process.Kill() // the process may have ended
	}
	return nil
}

func (s *HostService) nowNS() int64 {
	if s.Now != nil {
		return s.Now().UnixNano()
	}
	return time.Now().UnixNano()
}

// hostStream is one end of a stream that transfers byte strings.
type hostStream struct {
	messages
}

// messages is implemented by both ends of a gRPC stream.
type messages interface {
	Context() context.Context
	SendMsg(m any) error
	RecvMsg(m any) error
}

func (h *hostStream) send(b []byte) error { return h.SendMsg(wrapperspb.Bytes(b)) }

func (h *hostStream) receive() ([]byte, error) {
	m := new(wrapperspb.BytesValue)
	err := h.RecvMsg(m)
	return m.Value, err
}

func (h *hostStream) sendJSON(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return h.send(b)
}

func (h *hostStream) receiveJSON(v any) error {
	b, err := h.receive()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	return nil
}

// refuse converts an error to the form in which the host sends it to the head.
func refuse(err error) error { return status.Error(codes.FailedPrecondition, err.Error()) }

// unlessEnd returns err, or nil if err means the regular end of a stream.
func unlessEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// reading is one answer of the method Echo. It contains the times at which the message arrived and the answer left, in
// ns since 1970.
type reading struct{ T1, T2 int64 }

// serveEcho answers each message with the host's time.
func (s *HostService) serveEcho(stream *hostStream) error {
	for {
		if _, err := stream.receive(); err != nil {
			return unlessEnd(err)
		}
		t1 := s.nowNS()
		if err := stream.sendJSON(reading{t1, s.nowNS()}); err != nil {
			return err
		}
	}
}

// pulled is one answer of the method Frames. It contains the packets since the last answer and the capture's state.
type pulled struct {
	Packets []pulledPacket
	Full    bool // more packets may wait
	Info    live.Info
	Stamps  live.Stamped
	Drops   live.Drops
	NowNS   int64  // the host's time before the last look for packets
	Broken  string // why the capture ended; empty if it goes on
}

type pulledPacket struct {
	UnixNS int64
	Wire   int
	Data   []byte
}

// pulledAtMost is the maximum number of bytes in one answer of the method Frames.
const pulledAtMost = 4 << 20

// serveFrames captures packets at an interface. It answers each further message with the packets that were captured
// since the last answer.
func (s *HostService) serveFrames(stream *hostStream) error {
	var o live.Options
	if err := stream.receiveJSON(&o); err != nil {
		return unlessEnd(err)
	}
	if s.OpenFrames == nil {
		return refuse(errors.New("this host captures nothing"))
	}
	frames, err := s.OpenFrames(o)
	if err != nil {
		return refuse(err)
	}
	defer frames.Close()
	for {
		answer, err := s.pull(frames)
		if err == nil {
			err = stream.sendJSON(answer)
		}
		if err != nil {
			return err
		}
		if _, err := stream.receive(); err != nil {
			return unlessEnd(err)
		}
	}
}

// pull takes the packets that wait in the capture.
func (s *HostService) pull(frames Frames) (a pulled, err error) {
	a.Info = frames.Info()
	for size := 0; ; {
		a.NowNS = s.nowNS()
		var p capture.Packet
		err := frames.Next(&p)
		if errors.Is(err, capture.ErrIdle) {
			break
		}
		if err != nil {
			a.Broken = err.Error()
			break
		}
		a.Packets = append(a.Packets, pulledPacket{p.UnixNS, p.Wire, slices.Clone(p.Data)})
		if size += len(p.Data); size >= pulledAtMost {
			a.Full = true
			break
		}
	}
	a.Stamps = frames.StampCounts()
	a.Drops, err = frames.Drops()
	return a, err
}

// HostCommand describes a program that is to be started on a host.
type HostCommand struct {
	Name string   `json:"name"` // worker, ps or capture
	Args []string `json:"args"`
}

// hostLine is one answer of the method Start: a line of the program's output, or the end of the program.
type hostLine struct {
	Stderr bool   `json:"stderr,omitempty"`
	Text   string `json:"text,omitempty"`
	Ended  bool   `json:"ended,omitempty"`
	Code   int    `json:"code,omitempty"` // -1 if a signal ended it
}

// hostSignals maps the names of the signals that a head may send to a program to the signals.
var hostSignals = map[string]os.Signal{"interrupt": os.Interrupt, "kill": os.Kill}

// serveStart runs a program and sends its output line by line. Further messages are signals for the program. The
// program is killed when the stream breaks.
func (s *HostService) serveStart(stream *hostStream) error {
	var c HostCommand
	if err := stream.receiveJSON(&c); err != nil {
		return unlessEnd(err)
	}
	words, known := hostPrograms[c.Name]
	if !known {
		return refuse(fmt.Errorf("the head host may start only worker, ps or capture here, not %q", c.Name))
	}
	cmd := exec.Command(s.Program, slices.Concat(words, c.Args)...)
	cmd.Dir, cmd.WaitDelay = s.Folder, time.Second
	var mu sync.Mutex
	send := func(l hostLine) error {
		mu.Lock()
		defer mu.Unlock()
		return stream.sendJSON(l)
	}
	ended := make(chan error, 1)
	started := make(chan error, 1)
	go s.runChild(cmd, send, started, ended)
	if err := <-started; err != nil {
		return refuse(err)
	}
	go func() {
		for {
			b, err := stream.receive()
			if sig, ok := hostSignals[string(b)]; ok && err == nil {
				_ = cmd.Process.Signal(sig) // the process may have ended
				continue
			}
			if !errors.Is(err, io.EOF) { // the head broke off, or sent no signal
				_ = cmd.Process.Kill()
			}
			return
		}
	}()
	err := <-ended
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		return refuse(err)
	}
	return send(hostLine{Ended: true, Code: cmd.ProcessState.ExitCode()})
}

// runChild starts a program, passes on its output and waits for its end. It uses its thread for nothing else, because
// the kernel kills the program when the thread ends.
func (s *HostService) runChild(cmd *exec.Cmd, send func(hostLine) error, started, ended chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	EndWithParent(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		started <- err
		return
	}
	words, err := cmd.StderrPipe()
	if err == nil {
		err = s.startChild(cmd)
	}
	started <- err
	if err != nil {
		return
	}
	var read sync.WaitGroup
	for isErr, from := range map[bool]io.Reader{false: out, true: words} {
		read.Go(func() {
			for lines := bufio.NewReader(from); ; {
				text, err := lines.ReadString('\n')
				if text != "" && send(hostLine{Stderr: isErr, Text: strings.TrimSuffix(text, "\n")}) != nil {
					_ = cmd.Process.Kill() // nothing receives its output
				}
				if err != nil {
					return
				}
			}
		})
	}
	read.Wait()
	err = cmd.Wait()
	s.mu.Lock()
	delete(s.children, cmd)
	s.mu.Unlock()
	ended <- err
}

// startChild starts a program, unless the service is closed.
func (s *HostService) startChild(cmd *exec.Cmd) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return context.Canceled
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if s.children == nil {
		s.children = make(map[*exec.Cmd]bool)
	}
	s.children[cmd] = true
	return nil
}

// serveRead receives the name of a file in the run's folder and sends the file's content.
func (s *HostService) serveRead(stream *hostStream) error {
	name, err := stream.receive()
	if err != nil {
		return unlessEnd(err)
	}
	root, err := os.OpenRoot(s.Folder)
	if err != nil {
		return refuse(err)
	}
	defer root.Close()
	info, err := root.Lstat(string(name))
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", name, syscall.EINVAL)
	}
	if err != nil {
		return refuse(err)
	}
	file, err := root.Open(string(name))
	if err != nil {
		return refuse(err)
	}
	defer file.Close()
	for chunk := make([]byte, 1<<20); ; {
		n, err := file.Read(chunk)
		if n > 0 {
			if err := stream.send(chunk[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return unlessEnd(err)
		}
	}
}

// hostCall is a request to the handler with a given name.
type hostCall struct {
	Name string          `json:"name"`
	Body json.RawMessage `json:"body"`
}

// serveCall answers one hostCall with a JSON document.
func (s *HostService) serveCall(stream *hostStream) error {
	var c hostCall
	if err := stream.receiveJSON(&c); err != nil {
		return unlessEnd(err)
	}
	call, known := s.Calls[c.Name]
	if !known {
		return refuse(fmt.Errorf("this agent does not support request %q", c.Name))
	}
	answer, err := call(stream.Context(), c.Body)
	if err != nil {
		return refuse(err)
	}
	return stream.sendJSON(answer)
}
