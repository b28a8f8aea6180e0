package results

import "github.com/olafctl/olaf"

// Age is a single age sawtooth for callers that index their clusters and workers themselves because they have more
// than WorkerID can number (a simulated network). A Collector uses the same sawtooth. The zero Age starts at its
// first delivery.
type Age struct{ saw saw }

// Begin sets the age at the start of the fixed window w, unless w leaves it unknown.
func (a *Age) Begin(w Window) {
	if !w.FirstToLast() && w.InitialAge >= 0 {
		a.saw = saw{newest: int64(w.From) - int64(w.InitialAge), since: int64(w.From), start: int64(w.From), running: true}
	}
}

// Deliver lowers the age at time at to that of an update generated at gen, if that is newer, and returns the peak
// before it, or 0 at the first delivery. Calls must be in order of time.
func (a *Age) Deliver(w Window, at, gen olaf.Time) (peak olaf.Duration) {
	from := int64(w.From)
	if a.saw.delivered {
		peak = olaf.Duration(int64(at) - a.saw.newest)
	}
	a.saw.advance(from, int64(at))
	a.saw.deliver(from, int64(at), int64(gen))
	return peak
}

// Renew adds another update to the latest delivery, whose newest update counts.
func (a *Age) Renew(gen olaf.Time) { a.saw.newest = max(a.saw.newest, int64(gen)) }

// Close integrates up to the end of a fixed window.
func (a *Age) Close(w Window) {
	if !w.FirstToLast() {
		a.saw.advance(int64(w.From), int64(w.To))
	}
}

// At returns the age at an instant that is not before the latest delivery; false before the first one, unless Begin
// set it.
func (a *Age) At(at olaf.Time) (age olaf.Duration, known bool) {
	return olaf.Duration(int64(at) - a.saw.newest), a.saw.running
}

// MeanNS returns the time average in ns, or a missing value if nothing was integrated.
func (a *Age) MeanNS() Float { return a.saw.meanNS() }

// Deliveries returns the number of deliveries in the window.
func (a *Age) Deliveries() int64 { return a.saw.deliveries }

// Peaks averages the peaks of one sawtooth.
type Peaks struct {
	sum sum128
	n   int64
}

// Add adds the next peak.
func (p *Peaks) Add(peak olaf.Duration) {
	p.sum.addInt(int64(peak))
	p.n++
}

// MeanNS returns the mean peak in ns; missing (0/0) if there were none.
func (p *Peaks) MeanNS() Float { return Float(p.sum.float() / float64(p.n) / 1000) }
