package metric

import "github.com/olafctl/olaf"

// Host names and describes a metric of hosts that wait for answers. Benches with a device and jobs in a network use the
// same names.
type Host struct{ Name, Title, Unit, Doc string }

// PerUpdate reports whether the metric counts or times updates of the weights. Such metrics are not comparable between
// systems whose updates have different sizes.
func (h *Host) PerUpdate() bool { return h.Name == "iteration_ns" || h.Name == "staleness_updates" }

// ofHosts lists the metrics that benches and jobs have in common. Metrics that only one of them has are declared where
// they are used.
var ofHosts = []Host{
	{"iteration_ns", "Iteration", "ns",
		"time between two updates of the weights, mean over the hosts that have them: the server if it applies " +
			"every gradient, otherwise the workers. An update is one gradient for an asynchronous server and " +
			"several in other systems"},
	{"gradient_ns", "Time per gradient", "ns",
		"the same per gradient in an update, to compare systems with updates of different size"},
	{"aggregation_ns", "Gradient aggregation", "ns",
		"time from when a round's last gradient is ready until the last worker has the sum, mean over rounds; " +
			"for synchronous jobs"},
	{"goodput_bps", "Goodput per worker", "bit/s",
		"gradient values that came back in sums, per time until a worker's last update; mean over workers"},
	{"staleness_updates", "Staleness", "updates",
		"updates of the weights between reading them and applying the gradient, mean over contributions; 0 if " +
			"all workers wait for the sum"},
	{"slots_held", "Slots held", "slots", "of all tables, mean over time; missing if there is none"},
	{"slots_held_peak", "Slots held, most", "slots", "sum of each switch's peak"},
	{"held_bytes", "Memory held", "B",
		"slots in use × memory per slot in the switch, mean over time; missing if there is no table"},
	{"memory_bytes", "Switch memory", "B", "of all tables as built"},
	{"frames", "Frames", "frames", "handed to links, in both directions"},
	{"frames_lost", "Frames lost", "frames", "on links"},
	{"frames_marked", "Frames marked", "frames", "that met congestion"},
	{"wire_bytes", "Bytes", "B", "of frames handed to links, without the overhead of a frame"},
}

// OfHosts returns the common metric with the given name. If there is none, the result has no title.
func OfHosts(name string) Host {
	for _, h := range ofHosts {
		if h.Name == name {
			return h
		}
	}
	return Host{Name: name}
}

// hostMetric returns m with the title, unit and description of the common metric with the same name.
func hostMetric(m Metric) *Metric {
	h := OfHosts(m.Name)
	m.Title, m.Unit, m.Doc, m.PerUpdate = h.Title, h.Unit, h.Doc, h.PerUpdate()
	return &m
}

// hostCounter returns c with the title, unit and description of the common metric with the same name.
func hostCounter(c olaf.Counter) olaf.Counter {
	h := OfHosts(c.Name)
	c.Title, c.Unit, c.Doc = h.Title, h.Unit, h.Doc
	return c
}
