package verify

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/aomcheck"
	"github.com/olafctl/olaf/pktgen/trace"
)

// useTrace replaces the clusters' arrivals with recorded ones.
func (f *verifyFlags) useTrace(cmd *cobra.Command, p *aomcheck.Problem) error {
	if err := cli.RefuseFlags(cmd, []string{"clusters", "interval", "phase"}, "--trace"); err != nil {
		return err
	}
	reader, closer, err := trace.Open(f.trace)
	if err != nil {
		return cli.UsageError("--trace: %v", err)
	}
	p.Clusters, err = readArrivals(reader, p.Horizon)
	if err = errors.Join(err, closer.Close()); err != nil {
		return cli.UsageError("--trace %s: %v", f.trace, err)
	}
	jitter := p.Clusters[0].Jitter
	if err := jitter.Set(f.jitter); err != nil {
		return cli.UsageError("--jitter: %v", err)
	}
	longest := 0
	for i := range p.Clusters {
		p.Clusters[i].Jitter = jitter
		longest = max(longest, len(p.Clusters[i].Arrivals))
	}
	p.Horizon = longest
	return nil
}

// readArrivals returns the first updates of every cluster in a trace, at most limit each, relative to the first of all.
func readArrivals(source trace.Source, limit int) ([]aomcheck.Cluster, error) {
	clusters := make([]aomcheck.Cluster, source.Header().Clusters)
	var first int64
	var u trace.Update
	for n := 0; ; n++ {
		err := source.Next(&u)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if n == 0 {
			first = u.GenNS
		}
		at := olaf.Duration(u.GenNS-first) * olaf.Nanosecond
		if c := &clusters[u.Cluster]; len(c.Arrivals) < limit {
			c.Arrivals = append(c.Arrivals, at)
		}
	}
	for i := range clusters {
		clusters[i].Name = fmt.Sprintf("c%d", i)
		if len(clusters[i].Arrivals) < 2 {
			return nil, fmt.Errorf("cluster %d has %s; a peak needs at least 2", i, olaf.Plural(len(clusters[i].Arrivals), "update"))
		}
	}
	return clusters, nil
}
