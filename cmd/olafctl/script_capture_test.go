package main

import (
	"errors"
	"io"
	"os"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/capture/capturetest"
)

// restamp SECONDS IN OUT copies a capture with the stamps of another clock.
func restamp(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: restamp SECONDS IN OUT")
	}
	seconds, err := strconv.ParseInt(args[0], 10, 64)
	ts.Check(err)
	in, err := capture.Open(ts.MkAbs(args[1]))
	ts.Check(err)
	defer in.Close()
	out, err := capture.Create(ts.MkAbs(args[2]), false, 0)
	ts.Check(err)
	defer out.Abandon()
	var p capture.Packet
	for {
		err := in.Next(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		ts.Check(err)
		p.UnixNS += seconds * 1e9
		ts.Check(out.WritePacket(&p))
	}
	ts.Check(out.Commit())
}

// recode FORM IN OUT writes a capture in another form, which is named as in capturetest.
func recode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: recode FORM IN OUT")
	}
	in, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	for _, c := range capturetest.Copies(scriptFailure{ts}, in) {
		if c.Name == args[0] {
			ts.Check(os.WriteFile(ts.MkAbs(args[2]), c.Data, 0o644))
			return
		}
	}
	ts.Fatalf("no form %s", args[0])
}

// scriptFailure makes a script fail like a test.
type scriptFailure struct{ *testscript.TestScript }

func (scriptFailure) Helper() {}

func (f scriptFailure) Fatal(args ...any) { f.Fatalf("%v", args) }
