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

// Kinds of errors; match them with errors.Is. Errors that a server sent also unwrap to their gRPC status.
var (
	// ErrUnreachable says that no P4Runtime server answers.
	ErrUnreachable = olaf.NewError(olaf.Device, "no P4Runtime server answers")
	// ErrElectionInUse says that another live controller has the same election id.
	ErrElectionInUse = olaf.NewError(olaf.Device, "election id is in use by another controller")
	// ErrNotPrimary says that another controller writes the tables.
	ErrNotPrimary = olaf.NewError(olaf.Device, "not primary")
	// ErrPreempted says that this session was primary until a higher election id came.
	ErrPreempted = olaf.NewError(olaf.Device, "pre-empted by a higher election id")
	// ErrTablesUnknown says that the device behind the server is gone, was replaced, or failed half-way.
	ErrTablesUnknown = olaf.NewError(olaf.Device, "the device's tables are unknown")
	// ErrClosed says that the session was closed or ended for good.
	ErrClosed = errors.New("P4Runtime session is closed")
	// ErrNoPipeline says that the device has no pipeline config yet.
	ErrNoPipeline = errors.New("the device has no pipeline config")

	// Kinds of a refused update.
	ErrExists   = errors.New("exists already")
	ErrNotFound = errors.New("does not exist")
	ErrFull     = errors.New("is full")
)

// UpdateError is why one update of a batch was refused.
type UpdateError struct {
	Index   int        // in what was written
	Update  *v1.Update // nil when the server answered more than it was asked
	Code    codes.Code
	Message string // the server's
	Space   string // whose vendor code it is
	Vendor  int32
	known   []p4.Table // of switch programs, which it can name
}

// Error is one sentence: which update, of what, and why.
func (e *UpdateError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "update %d", e.Index)
	if e.Update != nil {
		fmt.Fprintf(&b, " (%s)", describe(e.Update, e.known))
	}
	fmt.Fprintf(&b, ": %v: %s", e.Code, e.Message)
	if e.Vendor != 0 {
		fmt.Fprintf(&b, " [%s %d]", e.Space, e.Vendor)
	}
	return b.String()
}

// Is matches the kinds of refused updates.
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

// BatchError is a batch of which at least one update was refused. Its parts match with errors.Is and errors.As.
type BatchError struct {
	Updates int            // in the batch
	Failed  []*UpdateError // in their order; updates that were only rolled back are not here
	Rolled  bool           // nothing of the batch was done
	status  error
}

// Error tells the first failure and how many there are.
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
	return fmt.Sprintf("%d of %d updates refused: %s%s", len(e.Failed), e.Updates, first, rest)
}

// Unwrap gives every refused update and the gRPC status.
func (e *BatchError) Unwrap() []error {
	var all []error
	for _, f := range e.Failed {
		all = append(all, f)
	}
	return append(all, e.status)
}

// writeError decodes the answer to a Write of these updates, of which the first has index offset for the user.
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
		if !ok || codes.Code(e.GetCanonicalCode()) == codes.OK || atomic && codes.Code(e.GetCanonicalCode()) == codes.Aborted {
			continue
		}
		failed := &UpdateError{Index: offset + i, Code: codes.Code(e.GetCanonicalCode()), Message: e.GetMessage(), Space: e.GetSpace(), Vendor: e.GetCode()}
		if i < len(updates) {
			failed.Update = updates[i]
		}
		batch.Failed = append(batch.Failed, failed)
	}
	if len(batch.Failed) == 0 {
		return fmt.Errorf("write tables: the server refused the batch without saying which update: %w", err)
	}
	return batch
}

// kinded is an error with a kind for errors.Is that still unwraps to the gRPC status.
type kinded struct {
	kind error
	text string
	err  error
}

func (k *kinded) Error() string   { return k.text }
func (k *kinded) Unwrap() []error { return []error{k.kind, k.err} }

// ContestError is why a session may not write, with what somebody needs to know who wants to change that. It matches
// ErrNotPrimary, ErrPreempted or ErrElectionInUse, and unwraps to the gRPC status where a server sent one.
type ContestError struct {
	Target  string
	Chosen  bool       // the election id was asked for; otherwise it is whatever follows a primary that is gone
	Highest ElectionID // that the server ever saw; zero where it told none
	Vacant  bool       // nobody is primary
	why     error
}

func (e *ContestError) Error() string { return e.why.Error() }
func (e *ContestError) Unwrap() error { return e.why }

// rpcError describes an RPC's failure.
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
	}
	return fmt.Errorf("%s: %v: %s%w", what, st.Code(), st.Message(), silent{err})
}

// silent lets an error be matched without repeating its text.
type silent struct{ error }

func (silent) Error() string   { return "" }
func (s silent) Unwrap() error { return s.error }

// Code is the gRPC code inside an error; OK for nil, Unknown for an error without one.
func Code(err error) codes.Code { return status.Code(err) }
