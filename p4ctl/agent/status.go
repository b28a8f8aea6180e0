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

// errorSpace says whose vendor codes an error carries, as target-architecture-vendor.
const errorSpace = "olaf-xsa-olafctl"

// maxMessage keeps the details of a full batch below what small clients take as trailer.
const maxMessage = 160

// batchStatus makes the answer to a batch: nil without faults, else UNKNOWN with exactly one p4.v1.Error per element.
func batchStatus(what string, faults []error) error {
	failed, first := 0, ""
	st := &statuspb.Status{Code: int32(codes.Unknown)}
	for _, fault := range faults {
		detail := new(v1.Error)
		if fault != nil {
			failed++
			detail = &v1.Error{CanonicalCode: int32(faultCode(fault)), Message: printable(status.Convert(fault).Message()), Space: errorSpace}
			if failed == 1 {
				first = faultCode(fault).String() + ": " + detail.Message
			}
		}
		packed, err := anypb.New(detail)
		if err != nil {
			return status.Errorf(codes.Internal, "packing error details: %v", err)
		}
		st.Details = append(st.Details, packed)
	}
	if failed == 0 {
		return nil
	}
	// Many controllers print this line only, so it says why as well.
	st.Message = fmt.Sprintf("%d of %d %s failed; the first with %s", failed, len(faults), what, first)
	return status.ErrorProto(st)
}

// faultCode is the code of one element; an error of a backend that is no status is INTERNAL.
func faultCode(err error) codes.Code {
	if s, ok := status.FromError(err); ok {
		return s.Code()
	}
	return codes.Internal
}

// printable makes text that a protobuf string may hold, and not too long.
func printable(s string) string {
	if !utf8.ValidString(s) {
		s = strconv.QuoteToASCII(s)
	}
	if len(s) <= maxMessage {
		return s
	}
	cut := maxMessage
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
