package p4ctl

import (
	"errors"
	"fmt"
	"strings"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// Kinds of errors, for errors.Is. Errors sent by a server also unwrap to their gRPC status.
var (
	// ErrUnreachable is returned if no P4Runtime server answers.
	ErrUnreachable = olaf.NewError(olaf.Device, "no P4Runtime server answers")
	// ErrElectionInUse is returned if another live controller uses the same election ID.
	ErrElectionInUse = olaf.NewError(olaf.Device, "election id is in use by another controller")
	// ErrNotPrimary is returned if another controller is primary and may write to the tables.
	ErrNotPrimary = olaf.NewError(olaf.Device, "not primary")
	// ErrPreempted is the error for a session that was primary until a controller with a higher election ID took over.
	ErrPreempted = olaf.NewError(olaf.Device, "pre-empted by a higher election id")
	// ErrBusy is returned if the server does not accept any more controllers, or does not accept this user.
	ErrBusy = olaf.NewError(olaf.Device, "the server is in use")
	// ErrTablesUnknown is returned if the device behind the server disappeared, was replaced, or failed in the middle
	// of a write.
	ErrTablesUnknown = olaf.NewError(olaf.Device, "the contents of the device's tables are unknown")
	// ErrClosed is the error for a session that was closed or ended permanently.
	ErrClosed = errors.New("P4Runtime session is closed")
	// ErrNoPipeline is the error for a device that has no pipeline config yet.
	ErrNoPipeline = errors.New("the device has no pipeline config")

	// ErrExists and the errors below are the kinds of rejected updates.
	ErrExists   = errors.New("already exists")
	ErrNotFound = errors.New("does not exist")
	ErrFull     = errors.New("is full")
)

// UpdateError describes why the server rejected an update in a batch.
type UpdateError struct {
	Index   int        // position in the written slice, from 0
	Update  *v1.Update // nil if the server reported more results than there were updates
	Code    codes.Code
	Message string // message from the server
	Space   string // namespace that the vendor code belongs to
	Vendor  int32
	known   []p4.Table // tables of switch programs, used to look up their names
}

// Error returns a sentence with the index of the update, its object and the reason.
func (e *UpdateError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "update %d", e.Index)
	if e.Update != nil {
		fmt.Fprintf(&b, " (%s)", describeUpdate(e.Update, e.known))
	}
	fmt.Fprintf(&b, ": %v: %s", e.Code, e.Message)
	if e.Vendor != 0 {
		fmt.Fprintf(&b, " [%s %d]", e.Space, e.Vendor)
	}
	return b.String()
}

// Is reports whether target is the error for this kind of rejection.
func (e *UpdateError) Is(target error) bool {
	switch target {
	case ErrExists:
		return e.Code == codes.AlreadyExists
	case ErrNotFound:
		return e.Code == codes.NotFound
	case ErrFull:
		return e.Code == codes.ResourceExhausted
	}
	return false
}

// BatchError describes a batch in which at least one update was rejected. errors.Is and errors.As find the individual
// errors.
type BatchError struct {
	Updates int            // number of updates in the batch
	Failed  []*UpdateError // failed updates in batch order, without those that were only rolled back
	Rolled  bool           // no update of the batch was applied
	status  error
}

// Error returns the first failure and the number of further failures.
func (e *BatchError) Error() string {
	rest := ""
	if n := len(e.Failed) - 1; n > 0 {
		rest = fmt.Sprintf(" (and %d more)", n)
	}
	first := "no details were sent"
	if len(e.Failed) > 0 {
		first = e.Failed[0].Error()
	}
	if e.Rolled {
		return fmt.Sprintf("batch of %d was rolled back: %s%s", e.Updates, first, rest)
	}
	return fmt.Sprintf("%d of %d updates rejected: %s%s", len(e.Failed), e.Updates, first, rest)
}

// Unwrap returns every rejected update and the gRPC status.
func (e *BatchError) Unwrap() []error {
	var all []error
	for _, f := range e.Failed {
		all = append(all, f)
	}
	return append(all, e.status)
}

// writeError decodes the response to a Write of updates. offset is the index of the first update in the caller's slice.
func writeError(err error, updates []*v1.Update, offset int, atomic bool) error {
	st, ok := status.FromError(err)
	if err == nil || !ok {
		return err
	}
	if st.Code() != codes.Unknown {
		return rpcError("write tables", err)
	}
	batch := &BatchError{Updates: len(updates), Rolled: atomic, status: err}
	for i, detail := range st.Details() {
		e, ok := detail.(*v1.Error)
		if !ok || codes.Code(e.GetCanonicalCode()) == codes.OK || atomic &&
			codes.Code(e.GetCanonicalCode()) == codes.Aborted {
			continue
		}
		failed := &UpdateError{Index: offset + i, Code: codes.Code(e.GetCanonicalCode()), Message: e.GetMessage(),
			Space: e.GetSpace(), Vendor: e.GetCode()}
		if i < len(updates) {
			failed.Update = updates[i]
		}
		batch.Failed = append(batch.Failed, failed)
	}
	if len(batch.Failed) == 0 {
		return fmt.Errorf("write tables: the server rejected the batch without naming an update: %w", err)
	}
	return batch
}

// kinded adds a kind for errors.Is to an error. It still unwraps to the gRPC status.
type kinded struct {
	kind error
	text string
	err  error
}

func (k *kinded) Error() string   { return k.text }
func (k *kinded) Unwrap() []error { return []error{k.kind, k.err} }

// ContestError describes why a session may not write and what the user can do about it. It matches ErrNotPrimary,
// ErrPreempted or ErrElectionInUse, and unwraps to the gRPC status if a server sent one.
type ContestError struct {
	Target  string
	Chosen  bool       // the user chose the election id; otherwise it is derived from the last primary's
	Highest ElectionID // highest id that the server has seen; zero if it did not report one
	Vacant  bool       // there is no primary
	cause   error
}

func (e *ContestError) Error() string { return e.cause.Error() }
func (e *ContestError) Unwrap() error { return e.cause }

// rpcError returns the error for a failed RPC, with the kind that corresponds to its gRPC code.
func rpcError(what string, err error) error {
	st, ok := status.FromError(err)
	if err == nil || !ok {
		return err
	}
	say := func(kind error) error {
		return &kinded{kind, fmt.Sprintf("%s: %v: %s", what, kind, st.Message()), err}
	}
	switch st.Code() {
	case codes.Unavailable:
		return say(ErrUnreachable)
	case codes.DataLoss:
		return say(ErrTablesUnknown)
	case codes.PermissionDenied:
		return say(ErrNotPrimary)
	case codes.FailedPrecondition:
		return say(ErrNoPipeline)
	case codes.ResourceExhausted:
		return say(ErrBusy)
	}
	return fmt.Errorf("%s: %v: %s%w", what, st.Code(), st.Message(), silent{err})
}

// silent makes an error match another error without repeating the other error's text.
type silent struct{ error }

func (silent) Error() string   { return "" }
func (s silent) Unwrap() error { return s.error }

// Code returns the gRPC code of an error. It returns OK for nil and Unknown for an error without a code.
func Code(err error) codes.Code { return status.Code(err) }
