package agent

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
)

// errorSpace says whose codes an error carries, as target-architecture-vendor.
const errorSpace = "olaf-xsa-olafctl"

// Limits on what the details of a failed batch take as gRPC trailer, in base64. Clients take 8 KB of it by default, and by
// the specification's rule of thumb 100 bytes more for every update of a batch. None takes more than 16 MB in Go, where more of it
// costs the connection.
const (
	maxMessage       = 160 // bytes of one text
	trailerBytes     = 8 << 10
	trailerPerUpdate = 100
	trailerLimit     = 15 << 20
	trailerReserve   = 1 << 10 // for the other headers and the status' own message, which stands there twice
	packedDetail     = 48      // bytes of a detail without its text, type URL included
	maxDetails       = (trailerLimit - trailerReserve) * 3 / 4 / packedDetail
)

// batchStatus makes the answer to a batch: nil without faults, else UNKNOWN with exactly one p4.v1.Error per element. The
// codes of all elements come first; texts are as long as small clients can take. A batch of so many elements that not even their
// codes fit has details for the first of them, and its message says so.
func batchStatus(what string, faults []error) error {
	details := make([]*v1.Error, len(faults))
	why, cause := "", error(nil)
	var texts []int // lengths
	for i, fault := range faults {
		details[i] = new(v1.Error)
		if fault == nil {
			continue
		}
		details[i].CanonicalCode = int32(faultCode(fault))
		details[i].Message = printable(status.Convert(fault).Message(), maxMessage)
		texts = append(texts, len(details[i].Message))
		switch named := faultCode(fault).String() + ": " + details[i].Message; {
		case len(texts) == 1:
			why, cause = "the first with "+named, fault
		case faultCode(cause) == codes.Aborted && faultCode(fault) != codes.Aborted: // what took the others along
			why, cause = "because of "+named, fault
		}
	}
	if len(texts) == 0 {
		return nil
	}
	longest := longestText(texts, len(faults))
	// Many controllers print this line only, so it says why as well.
	st := &statuspb.Status{Code: int32(codes.Unknown), Message: fmt.Sprintf("%d of %d %s failed; %s", len(texts), len(faults), what, why)}
	if len(details) > maxDetails {
		details = details[:maxDetails]
		st.Message += fmt.Sprintf(" (details are of the first %d; send smaller batches)", maxDetails)
	}
	for _, detail := range details {
		detail.Message = printable(detail.Message, longest)
		packed, err := anypb.New(detail)
		if err != nil {
			return status.Errorf(codes.Internal, "packing error details: %v", err)
		}
		st.Details = append(st.Details, packed)
	}
	return status.ErrorProto(st)
}

// longestText is how long a text may be so that the details of n updates fit: into what every client takes, as long as the
// codes alone do, else into what the specification asks of clients.
func longestText(texts []int, n int) int {
	room := func(trailer int) int { return (min(trailer, trailerLimit)-trailerReserve)*3/4 - packedDetail*n }
	if small := room(trailerBytes); small >= 0 {
		return fitting(texts, small)
	}
	return fitting(texts, room(trailerBytes+trailerPerUpdate*n))
}

// fitting is the greatest length at which all texts, cut to it, take no more than room.
func fitting(texts []int, room int) int {
	for longest := maxMessage; longest > 0; longest-- {
		sum := 0
		for _, t := range texts {
			sum += min(t, longest)
		}
		if sum <= room {
			return longest
		}
	}
	return 0
}

// faultCode is the code of one element; an error of a backend that is no status is INTERNAL.
func faultCode(err error) codes.Code {
	if s, ok := status.FromError(err); ok {
		return s.Code()
	}
	return codes.Internal
}

// printable makes text that a protobuf string may hold, of at most longest bytes.
func printable(s string, longest int) string {
	const more = "…"
	if !utf8.ValidString(s) {
		s = strconv.QuoteToASCII(s)
	}
	if len(s) <= longest {
		return s
	}
	cut := max(0, longest-len(more))
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	if cut == 0 {
		return ""
	}
	return s[:cut] + more
}
