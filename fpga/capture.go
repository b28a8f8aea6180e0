package fpga

import "github.com/olafctl/olaf"

// Capture is what a capture behind a card says of one run, beside the updates that it handed out. A capture can lose
// frames, and it has a clock of its own; both must show in what is made of the run.
type Capture struct {
	Interface string `json:"interface"`
	// ServerPort is the card's port on the other side of it.
	ServerPort int `json:"server_port"`
	// Hardware says that the network card stamped the frames, on a clock that is only taken to be the system's; otherwise
	// the kernel did, on the system's, when it took them from the network card.
	Hardware bool `json:"hardware"`
	// UncertaintyNS is how much later than it was put on the system's clock the start of the run may have been: so much too
	// long is every age at most.
	UncertaintyNS int64 `json:"uncertainty_ns"`
	// DriftNS is how far the two clocks moved apart over SpanNS, from the start of the run to its last update, as far as
	// looks with such an uncertainty can tell.
	DriftNS int64 `json:"drift_ns"`
	SpanNS  int64 `json:"span_ns"`
	// Updates were handed out. YoungestNS is the least age that one had on arrival: no delay that all have in common,
	// that of interrupts included, can be longer.
	Updates    int64 `json:"updates"`
	YoungestNS int64 `json:"youngest_ns"`
	// LateNS is how late some stamp was for certain, because frames cannot have come as close together as they are stamped.
	LateNS int64 `json:"late_ns"`
	// LeftOver frames were stamped before the run began; they belong to an earlier one and were passed over.
	LeftOver int64 `json:"left_over"`
	// SocketLost OLAF frames found no room in the socket's buffer. InterfaceLost counts frames of any kind that the network
	// card or its driver dropped.
	SocketLost    int64 `json:"socket_lost"`
	InterfaceLost int64 `json:"interface_lost"`
	// Malformed frames were OLAF and broken; Duplicates were handed out twice.
	Malformed  int64 `json:"malformed"`
	Duplicates int64 `json:"duplicates"`
	// Decisions and Pacing are of devices whose queue logs what it decides, and whose output a process serves.
	Decisions *olaf.Decisions `json:"decisions,omitempty"`
	Pacing    *Pacing         `json:"pacing,omitempty"`
	// Faults are other reasons for which the run must not be used, a sentence each.
	Faults []string `json:"faults,omitempty"`
}

// Capturer is a tap that can tell how well it captured.
type Capturer interface {
	// Capture tells of the run that was started last, up to now; nil where the tap sees everything by itself, as a twin's
	// does.
	Capture() (*Capture, error)
}
