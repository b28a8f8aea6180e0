package results

import "github.com/olafctl/olaf"

// Age integrates one age over time. It is for callers that index their clusters and workers themselves because these
// are more than WorkerID can number, as in a simulated network. A Collector computes ages in the same way. The zero Age
// starts at its first delivery.
type Age struct{ saw saw }

// Begin sets the age at the start of the fixed window w, if w specifies an initial age.
func (a *Age) Begin(w Window) {
	if !w.FirstToLast() && w.InitialAge >= 0 {
		a.saw = saw{newest: int64(w.From) - int64(w.InitialAge), since: int64(w.From), start: int64(w.From), running: true}
	}
}

// Deliver records the delivery, at time at, of an update that was generated at gen. If the update is newer than those
// before it, the age drops to the age of the update. Deliver returns the age just before the delivery, which is a peak,
// or 0 for the first delivery. Calls must be in order of time.
func (a *Age) Deliver(w Window, at, gen olaf.Time) (peak olaf.Duration) {
	from := int64(w.From)
	if a.saw.delivered {
		peak = olaf.Duration(int64(at) - a.saw.newest)
	}
	a.saw.advance(from, int64(at))
	a.saw.deliver(from, int64(at), int64(gen))
	return peak
}

// Renew adds another update to the latest delivery. The delivery then has the generation time of the newer one.
func (a *Age) Renew(gen olaf.Time) { a.saw.newest = max(a.saw.newest, int64(gen)) }

// Close integrates the age up to the end of a fixed window.
func (a *Age) Close(w Window) {
	if !w.FirstToLast() {
		a.saw.advance(int64(w.From), int64(w.To))
	}
}

// At returns the age at an instant that is not before the latest delivery. It returns false before the first delivery,
// unless Begin has set the age.
func (a *Age) At(at olaf.Time) (age olaf.Duration, known bool) {
	return olaf.Duration(int64(at) - a.saw.newest), a.saw.running
}

// MeanNS returns the age's time average in nanoseconds, or a missing value if no time was integrated.
func (a *Age) MeanNS() Float { return a.saw.meanNS() }

// Deliveries returns the number of deliveries in the window.
func (a *Age) Deliveries() int64 { return a.saw.deliveries }

// Peaks averages the peaks of one age.
type Peaks struct {
	sum sum128
	n   int64
}

// Add adds the next peak of the age.
func (p *Peaks) Add(peak olaf.Duration) {
	p.sum.addInt(int64(peak))
	p.n++
}

// MeanNS returns the mean peak in nanoseconds, or a missing value (0/0) if there were no peaks.
func (p *Peaks) MeanNS() Float { return Float(p.sum.float() / float64(p.n) / 1000) }
