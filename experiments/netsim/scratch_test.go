package netsim

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/olafctl/olaf"
)

func TestScratch(t *testing.T) {
	d := func(env string) int64 { v, _ := strconv.ParseInt(os.Getenv(env), 10, 64); return v }
	j := olaf.Duration(d("JIT") * 1000)
	tp, err := Preset("ns3-fifo", Scale{Interval2: olaf.Duration(d("I2") * 1000), Jitter: &j, X1: olaf.Rate(d("X1"))})
	if err != nil {
		t.Fatal(err)
	}
	tp.Seed = uint64(d("SEED"))
	f, _ := os.Create("/tmp/ns3b/ours.csv")
	w := NewRxWriter(f)
	t0 := time.Now()
	r, err := Run(context.Background(), tp, Options{Observer: w})
	el := time.Since(t0)
	if err != nil {
		t.Fatal(err)
	}
	w.Flush()
	f.Close()
	fmt.Printf("%v events %d %.1f Mev/s sent %d del %d loss %.2f aomC %.1f aomW %.1f\n", el, r.Events, float64(r.Events)/el.Seconds()/1e6, r.Sent, r.DeliveredFrames, float64(r.Loss.Packets), float64(r.Ages.Cluster)/1e6, float64(r.Ages.Worker)/1e6)
	for _, g := range r.Clusters {
		fmt.Printf("%.1f/%.1f ", float64(g.Ages.Cluster)/1e6, float64(g.Loss.Packets))
	}
	fmt.Println()
}
