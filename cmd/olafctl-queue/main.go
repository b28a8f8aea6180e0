// Command olafctl-queue is the work queue for sweeps on several machines. It is a NATS server with JetStream. 'olafctl
// sweep serve' starts it, and it ends when its standard input is closed.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/olafctl/olaf/internal/lockfile"
)

// ready is the time limit for the server to start listening.
const ready = 20 * time.Second

// maxResult is the maximum size of a result in bytes. It is large because training results contain the curves of every
// worker.
const maxResult = 8 << 20

// wholeDisk is the server's storage limit in bytes. It is so large that the disk is always full first, which causes an
// error that is reported.
const wholeDisk = 1 << 60

func main() { os.Exit(begin(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// begin runs the program and returns its exit code: 2 for a usage error, as in olafctl.
func begin(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var s settings
	err := s.parseFlags(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	if err := s.serve(stdin, stdout); err != nil {
		fmt.Fprintln(stderr, "olafctl-queue:", err)
		return 1
	}
	return 0
}

// settings contains the values of the flags.
type settings struct {
	listen, folder, cert, key, clients, token string
}

// parseFlags parses the command line. Errors and the help are printed to stderr.
func (s *settings) parseFlags(args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("olafctl-queue", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.listen, "listen", "127.0.0.1:4222", "HOST:PORT")
	flags.StringVar(&s.folder, "store", "", "folder for jobs and results")
	flags.StringVar(&s.cert, "tls-cert", "", "certificate, PEM")
	flags.StringVar(&s.key, "tls-key", "", "its private key")
	flags.StringVar(&s.clients, "tls-client-ca", "", "let in only clients that this PEM file vouches for")
	flags.StringVar(&s.token, "token-file", "", "admit only clients that send the token in this file")
	err := flags.Parse(args)
	switch {
	case err != nil:
		return err // already printed
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q; --help lists the flags", flags.Arg(0))
	case s.folder == "":
		err = errors.New("name the folder for jobs and results with -store")
	}
	if err != nil {
		fmt.Fprintln(stderr, "olafctl-queue:", err)
	}
	return err
}

// serve runs the server until stdin ends, and prints the server's address to stdout.
func (s *settings) serve(stdin io.Reader, stdout io.Writer) error {
	options, err := s.serverOptions()
	if err != nil {
		return err
	}
	unlock, err := s.claimFolder()
	if err != nil {
		return err
	}
	defer unlock()
	n, err := server.NewServer(options)
	if err != nil {
		return err
	}
	full := make(complaints, 1)
	n.SetLogger(full, false, false)
	go n.Start()
	defer n.WaitForShutdown()
	defer n.Shutdown()
	if !n.ReadyForConnections(ready) {
		return fmt.Errorf("the server does not listen at %s after %v", s.listen, ready)
	}
	fmt.Fprintf(stdout, "%s\n", n.Addr())
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, stdin)
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-full:
		return fmt.Errorf("the disk of %s is full; free space and start it again: workers wait for it, and stored "+
			"results stay", s.folder)
	}
}

// complaints is a logger that signals when the server logs that its disk is full. After that, the server stores nothing
// until it is restarted.
type complaints chan struct{}

func (c complaints) Errorf(format string, v ...any) {
	if strings.Contains(fmt.Sprintf(format, v...), syscall.ENOSPC.Error()) {
		select {
		case c <- struct{}{}:
		default: // one signal is enough
		}
	}
}
func (c complaints) Fatalf(format string, v ...any) { c.Errorf(format, v...) }
func (c complaints) Warnf(format string, v ...any)  { c.Errorf(format, v...) }
func (complaints) Noticef(string, ...any)           {}
func (complaints) Debugf(string, ...any)            {}
func (complaints) Tracef(string, ...any)            {}

// leaving is the time that the server has to exit after it was killed.
const leaving = 2 * time.Second

// claimFolder reserves the folder and the port for this server, because two servers would corrupt the stored jobs. It
// waits for a while if another server is about to exit.
func (s *settings) claimFolder() (unlock func(), err error) {
	for until := time.Now().Add(leaving); ; time.Sleep(leaving / 100) {
		unlock, err = s.tryClaim()
		taken := errors.Is(err, lockfile.ErrHeld) || errors.Is(err, syscall.EADDRINUSE)
		if !taken || time.Now().After(until) {
			return unlock, err
		}
	}
}

// tryClaim is like claimFolder but does not wait.
func (s *settings) tryClaim() (unlock func(), err error) {
	if err := os.MkdirAll(s.folder, 0o755); err != nil {
		return nil, err
	}
	lock, err := lockfile.Take(filepath.Join(s.folder, "lock"), 0o644)
	if errors.Is(err, lockfile.ErrHeld) {
		return nil, fmt.Errorf("another server uses %s (%w); stop it, or use another --store", s.folder, err)
	}
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", s.listen)
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot listen at %s: %w", s.listen, err), lock.Close())
	}
	return func() { _ = lock.Close() }, nil
}

// serverOptions returns the server's options.
func (s *settings) serverOptions() (*server.Options, error) {
	host, port, err := net.SplitHostPort(s.listen)
	if err != nil {
		return nil, fmt.Errorf("-listen %s: use HOST:PORT", s.listen)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("-listen %s: use HOST:PORT", s.listen)
	}
	if number == 0 {
		number = server.RANDOM_PORT
	}
	o := &server.Options{Host: host, Port: number, JetStream: true, StoreDir: s.folder, JetStreamMaxStore: wholeDisk,
		NoSigs: true, ServerName: "olafctl-queue", MaxPayload: maxResult}
	if s.token != "" {
		text, err := os.ReadFile(s.token)
		if err != nil {
			return nil, err
		}
		if o.Authorization = strings.TrimSpace(string(text)); o.Authorization == "" {
			return nil, fmt.Errorf("%s is empty", s.token)
		}
	}
	if s.cert == "" {
		return o, nil
	}
	pair, err := tls.LoadX509KeyPair(s.cert, s.key)
	if err != nil {
		return nil, err
	}
	o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}}
	o.TLSTimeout = ready.Seconds()
	if s.clients == "" {
		return o, nil
	}
	text, err := os.ReadFile(s.clients)
	if err != nil {
		return nil, err
	}
	o.TLSConfig.ClientCAs, o.TLSConfig.ClientAuth, o.TLSVerify = x509.NewCertPool(), tls.RequireAndVerifyClientCert,
		true
	if !o.TLSConfig.ClientCAs.AppendCertsFromPEM(text) {
		return nil, errors.New(s.clients + " contains no certificate in PEM form")
	}
	return o, nil
}
