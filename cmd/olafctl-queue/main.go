// Command olafctl-queue is the work queue for sweeps on several machines: a NATS server with JetStream. 'olafctl sweep
// serve' starts it; it ends when its standard input does.
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

// ready is the time limit for the server to listen.
const ready = 20 * time.Second

// maxResult is the size limit of a result in bytes; training results contain every worker's curves.
const maxResult = 8 << 20

// wholeDisk is a storage limit in bytes that is never reached, so that a full disk is the only limit and its error is
// reported.
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

// settings are the values of the flags.
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
	flags.StringVar(&s.token, "token-file", "", "let in only clients that say what stands in this file")
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

// serve runs the server until stdin ends, and prints its address to stdout.
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

// complaints receives a signal when the server logs that its disk is full. After that the server stores nothing until
// it is restarted.
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

// leaving is the time that a killed server may take to exit.
const leaving = 2 * time.Second

// claimFolder reserves the folder and the port for this server, because two servers would corrupt the jobs. It waits a
// while for a server that is about to exit.
func (s *settings) claimFolder() (unlock func(), err error) {
	for until := time.Now().Add(leaving); ; time.Sleep(leaving / 100) {
		unlock, err = s.tryClaim()
		taken := errors.Is(err, lockfile.ErrHeld) || errors.Is(err, syscall.EADDRINUSE)
		if !taken || time.Now().After(until) {
			return unlock, err
		}
	}
}

// tryClaim is claim without waiting.
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
