package fpga

import "github.com/olafctl/olaf"

// Capture describes how complete and how precise the capture of one run is. A capture next to a card can lose frames,
// and its clock differs from the card's clock, so results must account for both.
type Capture struct {
	Interface string `json:"interface"`
	// ServerPort is the card's port at the other end of the cable.
	ServerPort int `json:"server_port"`
	// Hardware is set if the network card stamped the frames, on a clock assumed to follow the system's. Otherwise
	// the kernel stamped them on the system clock when it took them from the network card.
	Hardware bool `json:"hardware"`
	// Mirror is the interface at which copies of the generator's frames were stamped by the clock that stamps arrivals, if
	// ages begin at these stamps; empty if they begin by the generator's clock. UncertaintyNS then bounds what is known of
	// late stamps, and DriftNS is 0.
	Mirror string `json:"mirror,omitempty"`
	// UncertaintyNS bounds the error in placing the start of the run on the system clock. Ages are too long by at
	// most this.
	UncertaintyNS int64 `json:"uncertainty_ns"`
	// DriftNS is the drift between the two clocks over SpanNS, from the start of the run to its last update, within
	// UncertaintyNS.
	DriftNS int64 `json:"drift_ns"`
	SpanNS  int64 `json:"span_ns"`
	// Updates counts the updates delivered to the caller. YoungestNS is the smallest age on arrival; it bounds every
	// delay common to all updates, including interrupts.
	Updates    int64 `json:"updates"`
	YoungestNS int64 `json:"youngest_ns"`
	// LateNS is a lower bound on how late some stamp was: frames cannot arrive closer together than the line rate
	// allows.
	LateNS int64 `json:"late_ns"`
	// LeftOver counts frames stamped before the run began. They belong to an earlier run and were skipped.
	LeftOver int64 `json:"left_over"`
	// SocketLost counts OLAF frames dropped for lack of socket buffer. InterfaceLost counts frames of any kind that
	// the network card or its driver dropped.
	SocketLost    int64 `json:"socket_lost"`
	InterfaceLost int64 `json:"interface_lost"`
	// Malformed counts broken OLAF frames, Duplicates frames delivered twice.
	Malformed  int64 `json:"malformed"`
	Duplicates int64 `json:"duplicates"`
	// Decisions is set for devices whose queue logs its decisions, Pacing for devices whose output is served by a
	// process.
	Decisions *olaf.Decisions `json:"decisions,omitempty"`
	Pacing    *Pacing         `json:"pacing,omitempty"`
	// Others counts the frames at the queue's input that were not OLAF's, up to the last latch; the counter bypassed
	// includes them. It is nil for devices that count them only together with unknown workers' updates.
	// OthersNow counts them up to now.
	Others    *uint64 `json:"others,omitempty"`
	OthersNow uint64  `json:"others_now,omitempty"`
	// Withheld is the reason why the clocks do not allow ages; if empty, UncertaintyNS and DriftNS decide.
	Withheld string `json:"withheld,omitempty"`
	// Faults lists other reasons why the run must not be used, one sentence each.
	Faults []string `json:"faults,omitempty"`
}

// Capturer is implemented by taps that report the quality of their capture.
type Capturer interface {
	// Capture reports on the run started last, up to now. It returns nil for a tap that cannot miss frames, such as
	// a twin's.
	Capture() (*Capture, error)
}
