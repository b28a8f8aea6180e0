package main

import (
	"errors"
	"io"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/olafctl/olaf/capture"
)

// restamp SECONDS IN OUT copies a capture as another clock would have timed it.
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
