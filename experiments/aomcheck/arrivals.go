package aomcheck

import (
	"errors"
	"fmt"
	"io"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/pktgen/trace"
)

// ReadArrivals returns the clusters in a trace with at most limit updates each. Arrival times are relative to the first
// update in the trace. A cluster with fewer than two updates is an error. ReadArrivals stops reading as soon as it has
// all the updates it needs.
func ReadArrivals(source trace.Source, limit int) ([]Cluster, error) {
	clusters := make([]Cluster, source.Header().Clusters)
	var first int64
	var u trace.Update
	for n, full := 0, 0; full < len(clusters); n++ {
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
		c := &clusters[u.Cluster]
		if len(c.Arrivals) >= limit {
			continue
		}
		c.Arrivals = append(c.Arrivals, olaf.Duration(u.GenNS-first)*olaf.Nanosecond)
		if len(c.Arrivals) == limit {
			full++
		}
	}
	for i := range clusters {
		clusters[i].Name = fmt.Sprintf("c%d", i)
		if n := len(clusters[i].Arrivals); n < 2 {
			return nil, fmt.Errorf("cluster %d has %s; a peak needs at least 2", i, olaf.Plural(n, "update"))
		}
	}
	return clusters, nil
}
