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
	// Mirror is the interface at which copies of the generator's frames are stamped by the same clock as arrivals, if
	// ages begin at these stamps; empty if ages begin by the generator's clock. With Mirror, UncertaintyNS bounds the
	// known lateness of the stamps, and DriftNS is 0.
	Mirror string `json:"mirror,omitempty"`
	// AbovePath means that ages are above the delay of the fastest path from the generator to the server, which probe
	// frames measured. UncertaintyNS then bounds the error of that delay.
	AbovePath bool `json:"above_path,omitempty"`
	// UncertaintyNS bounds the error in placing the start of the run on the system clock. Ages are too long by at most
	// this amount.
	UncertaintyNS int64 `json:"uncertainty_ns"`
	// DriftNS is the drift between the two clocks over SpanNS, from the start of the run to its last update, within
	// UncertaintyNS.
	DriftNS int64 `json:"drift_ns"`
	SpanNS  int64 `json:"span_ns"`
	// Updates counts the updates delivered to the caller. YoungestNS is the smallest age on arrival; it is an upper
	// bound on every delay common to all updates, including that of interrupts.
	Updates    int64 `json:"updates"`
	YoungestNS int64 `json:"youngest_ns"`
	// LateNS is a lower bound on the lateness of the latest stamp. It follows from the line rate, since frames cannot
	// arrive closer together.
	LateNS int64 `json:"late_ns"`
	// LeftOver counts frames stamped before the run began. They belong to an earlier run and were skipped.
	LeftOver int64 `json:"left_over"`
	// SocketLost counts OLAF frames dropped because the socket buffer was full. InterfaceLost counts frames of any kind
	// dropped by the network card or its driver.
	SocketLost    int64 `json:"socket_lost"`
	InterfaceLost int64 `json:"interface_lost"`
	// Malformed counts broken OLAF frames, Duplicates counts frames delivered twice.
	Malformed  int64 `json:"malformed"`
	Duplicates int64 `json:"duplicates"`
	// Decisions is set for devices whose queue logs its decisions, Pacing for devices whose output is served by a
	// process.
	Decisions *olaf.Decisions `json:"decisions,omitempty"`
	Pacing    *Pacing         `json:"pacing,omitempty"`
	// Others counts the non-OLAF frames at the queue's input, up to the last latch; the counter bypassed includes them.
	// It is nil for devices that count them only together with updates of unknown workers. OthersNow counts the same
	// frames up to now.
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
