package verify

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/aomcheck"
	"github.com/olafctl/olaf/pktgen/trace"
)

// useTrace replaces the clusters' arrivals with the arrivals in a recorded trace.
func (f *verifyFlags) useTrace(cmd *cobra.Command, p *aomcheck.Problem) error {
	if err := cli.RefuseFlags(cmd, []string{"clusters", "interval", "phase"}, "--trace"); err != nil {
		return err
	}
	reader, closer, err := trace.Open(f.trace)
	if err != nil {
		return cli.UsageError("--trace: %v", err)
	}
	p.Clusters, err = aomcheck.ReadArrivals(reader, p.Horizon)
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
