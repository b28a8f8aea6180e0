package netsim

import (
	"context"
	"os"
	"testing"
)

func TestScratchCSV(t *testing.T) {
	tp, _ := Preset("ns3-fifo", Scale{})
	in, _ := os.Open("/tmp/ns3b/sends.csv")
	if err := tp.SetSends("sends.csv", in); err != nil {
		t.Fatal(err)
	}
	f, _ := os.Create("/tmp/ns3b/ours.csv")
	w := NewRxWriter(f)
	if _, err := Run(context.Background(), tp, Options{Observer: w}); err != nil {
		t.Fatal(err)
	}
	w.Flush()
	f.Close()
}
