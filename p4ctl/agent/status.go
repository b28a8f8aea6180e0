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

// errorSpace is the namespace of our error codes, in the form target-architecture-vendor.
const errorSpace = "olaf-xsa-olafctl"

// Limits on the details of a failed batch as a gRPC trailer, in base64. Clients accept 8 KB by default and, by the
// specification's rule of thumb, 100 bytes more for each update. Go clients accept at most 16 MB; a longer trailer
// breaks the connection.
const (
	maxMessage       = 160 // number of bytes per text
	trailerBytes     = 8 << 10
	trailerPerUpdate = 100
	trailerLimit     = 15 << 20
	trailerReserve   = 1 << 10 // reserved for other headers and the status message, which is sent twice
	packedDetail     = 48      // number of bytes in a detail without its text, but with its type URL
	maxDetails       = (trailerLimit - trailerReserve) * 3 / 4 / packedDetail
)

// batchStatus returns the status for a batch. It is nil if there are no errors, or else UNKNOWN with exactly one
// p4.v1.Error per element. Codes take precedence over texts, which are as long as clients accept. If a batch is too
// large even for the codes alone, only the first elements have details, and the message mentions this.
func batchStatus(what string, faults []error) error {
	details := make([]*v1.Error, len(faults))
	why, cause := "", error(nil)
	var texts []int // lengths of the texts
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
		case faultCode(cause) == codes.Aborted && faultCode(fault) != codes.Aborted: // this fault aborted the other updates
			why, cause = "because of "+named, fault
		}
	}
	if len(texts) == 0 {
		return nil
	}
	longest := longestText(texts, len(faults))
	// Many controllers print only this line, so it includes the reason for the failure.
	st := &statuspb.Status{Code: int32(codes.Unknown), Message: fmt.Sprintf("%d of %d %s failed; %s", len(texts),
		len(faults), what, why)}
	if len(details) > maxDetails {
		details = details[:maxDetails]
		st.Message += fmt.Sprintf(" (details cover the first %d; send smaller batches)", maxDetails)
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

// longestText returns the maximum text length for which the details of n updates fit. It uses the limit that every
// client supports if the codes alone fit within that limit, or else the limit in the specification.
func longestText(texts []int, n int) int {
	room := func(trailer int) int { return (min(trailer, trailerLimit)-trailerReserve)*3/4 - packedDetail*n }
	if small := room(trailerBytes); small >= 0 {
		return fitLength(texts, small)
	}
	return fitLength(texts, room(trailerBytes+trailerPerUpdate*n))
}

// fitLength returns the greatest length such that all texts, cut to this length, fit into room bytes.
func fitLength(texts []int, room int) int {
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

// faultCode returns the code for the error of one element. An error from a backend that has no status is INTERNAL.
func faultCode(err error) codes.Code {
	if s, ok := status.FromError(err); ok {
		return s.Code()
	}
	return codes.Internal
}

// printable returns text that is valid in a protobuf string, shortened to at most longest bytes.
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
