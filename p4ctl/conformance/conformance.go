// Package conformance checks a P4Runtime server against the specification, clause by clause. It requires a pipeline
// that contains a table with exact keys and an action with parameters, which it finds in the given P4Info. Clauses that
// write push the pipeline, which empties the tables, and replace the primary. They run only on request. Like all
// election IDs, those of the clauses are remembered by the server.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/p4ctl"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// ErrSilent is the error for a server that does not answer requests that every clause needs.
var ErrSilent = olaf.NewError(olaf.Device, "no P4Runtime server for this device answers")

// ErrInUse is returned if the check would replace a live primary controller.
var ErrInUse = olaf.NewError(olaf.Device, "another controller is primary")

// ErrUnlike is the error for a P4Info without a table to which the clauses can write.
var ErrUnlike = olaf.NewError(olaf.Usage, "the P4Info has no table with exact keys and an action with parameters")

// Outcome is the result of checking a clause.
type Outcome string

const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped"
)

// Clause is a requirement in the specification.
type Clause struct {
	ID       string // part of the specification, and a number
	Section  string // heading of the requirement in the specification
	Sentence string // the requirement, in our words
	Writes   bool   // the check changes tables, pipeline or primary
	try      func(*probe)
}

// asPrimary returns a clause that is checked by a primary controller.
func asPrimary(id, section, sentence string, try func(*probe)) Clause {
	return Clause{id, section, sentence, true, func(p *probe) {
		if p.lead(); !p.isOver() {
			try(p)
		}
	}}
}

// onEmpty returns a clause that is checked by a primary controller with empty tables.
func onEmpty(id, section, sentence string, try func(*probe)) Clause {
	return Clause{id, section, sentence, true, func(p *probe) {
		if p.leadEmpty(); !p.isOver() {
			try(p)
		}
	}}
}

// Result contains the outcome of a clause and the answers of the server.
type Result struct {
	Clause
	Outcome Outcome
	Seen    string // answers from the server, step by step
}

// Target is a server and the pipeline config to push. If Config is nil, the server's own config is used or, if it has
// none, ours.
type Target struct {
	Conn     grpc.ClientConnInterface
	DeviceID uint64
	Config   *v1.ForwardingPipelineConfig
	Patience time.Duration // maximum time that a clause waits for answers; default 10 s
}

// clauses returns all clauses in order.
func clauses() []Clause {
	var all []Clause
	for _, part := range [][]Clause{transport, arbitration, pipeline, writing, entries, byteStrings, reading,
		replication, streams} {
		all = append(all, part...)
	}
	return all
}

// Run checks every clause and calls onResult with each result immediately. Clauses that write are checked only if write
// is set. Run returns an error if nothing could be checked or if ctx ended.
func Run(ctx context.Context, t Target, write bool, onResult func(Result)) error {
	if t.Patience <= 0 {
		t.Patience = 10 * time.Second
	}
	run := &session{Target: t, client: v1.NewP4RuntimeClient(t.Conn)}
	if err := run.inspect(ctx, write); err != nil {
		return err
	}
	for _, c := range clauses() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if c.Writes && !write {
			onResult(Result{c, Skipped, "it writes, which was not asked for"})
			continue
		}
		onResult(run.try(ctx, c))
	}
	if write {
		return run.leave(ctx)
	}
	return nil
}

// session is the state shared by the clauses of one run.
type session struct {
	Target
	client v1.P4RuntimeClient
	shape  shape
	high   uint64 // election ids of this run exceed all that the server has seen
	low    uint64
}

// inspect checks that the server answers, determines which election IDs it has seen, and checks that no controller
// would be disturbed.
func (s *session) inspect(ctx context.Context, write bool) error {
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	p := &probe{session: s, ctx: ctx}
	if s.Config == nil {
		var err error
		if s.Config, err = p.getPipeline(v1.GetForwardingPipelineConfigRequest_ALL); err != nil {
			return fmt.Errorf("%w: ask for the pipeline config: %w", ErrSilent, err)
		}
	}
	if s.Config.GetP4Info() == nil {
		s.Config = p4ctl.PipelineConfig(p4.Twin())
	}
	var err error
	if s.shape, err = shapeOf(s.Config.P4Info); err != nil {
		return err
	}
	_, answer, err := p.announce(nil)
	switch {
	case status.Code(err) == codes.Unavailable || ctx.Err() != nil:
		return fmt.Errorf("%w: announce a controller: %w", ErrSilent, err)
	case write && status.Code(err) == codes.ResourceExhausted:
		return fmt.Errorf("%w: %s", p4ctl.ErrBusy, status.Convert(err).Message())
	case err != nil: // the server rejects a stream without an election id, which a clause reports
		s.high = 1
		return nil
	case write && codes.Code(answer.GetStatus().GetCode()) == codes.AlreadyExists:
		return fmt.Errorf("%w, and clauses that write would take its place", ErrInUse)
	}
	s.high = answer.GetElectionId().GetHigh() + 1
	return nil
}

// leave commits the pipeline without entries and waits until the server has noticed that the last primary left, so that
// the next controller finds no primary.
func (s *session) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	p := &probe{session: s, ctx: ctx}
	p.leadEmpty()
	if p.outcome == Failed {
		return fmt.Errorf("the pipeline could not be put back: %s", strings.Join(p.seen, "; "))
	}
	if p.stream == nil {
		return nil
	}
	err := p.stream.CloseSend()
	for err == nil {
		_, err = p.stream.Recv()
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	if ctx.Err() != nil { // any other status means that the stream has ended
		return fmt.Errorf("%w: end the stream that a controller closed: %w", ErrSilent, err)
	}
	return nil
}

// try checks one clause. It opens separate streams for the clause.
func (s *session) try(ctx context.Context, c Clause) Result {
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	p := &probe{session: s, ctx: ctx, outcome: Passed}
	c.try(p)
	if len(p.seen) == 0 {
		p.fail("nothing was seen")
	}
	return Result{c, p.outcome, strings.Join(p.seen, "; ")}
}

// probe is a clause that is being checked. The clause fails if a step has an unexpected answer. All answers are
// recorded.
type probe struct {
	*session
	ctx     context.Context
	id      *v1.Uint128 // election id of the primary's stream
	stream  v1.P4Runtime_StreamChannelClient
	seen    []string
	outcome Outcome
}

func (p *probe) fail(format string, args ...any) {
	p.seen = append(p.seen, fmt.Sprintf(format, args...))
	p.outcome = Failed
}

func (p *probe) skip(why string) {
	p.seen = append(p.seen, why)
	if p.outcome != Failed {
		p.outcome = Skipped
	}
}

// isOver reports whether the clause has failed or was skipped.
func (p *probe) isOver() bool { return p.outcome == Failed || p.outcome == Skipped }

// expectStatus records the status of a step and compares it with the expected codes.
func (p *probe) expectStatus(what string, err error, want ...codes.Code) {
	p.expectCode(what, status.Code(err), want)
}

func (p *probe) expectCode(what string, got codes.Code, want []codes.Code) {
	if slices.Contains(want, got) {
		p.seen = append(p.seen, fmt.Sprintf("%s: %s", what, codeName(got)))
		return
	}
	p.fail("%s: %s instead of %s", what, codeName(got), joinCodes(want))
}

// expect records a step that is not checked by its status code. If good is false, the clause fails with the text
// otherwise.
func (p *probe) expect(what string, good bool, otherwise string) {
	if good {
		p.seen = append(p.seen, what)
	} else {
		p.fail("%s", otherwise)
	}
}

// expectUpdates compares the status of a batch with one expected code per update. If all expected codes are OK, the
// batch must succeed.
func (p *probe) expectUpdates(what string, err error, want ...codes.Code) {
	refused := false
	for _, w := range want {
		refused = refused || w != codes.OK
	}
	if !refused {
		p.expectStatus(what, err, codes.OK)
		return
	}
	st := status.Convert(err)
	if st.Code() != codes.Unknown {
		p.fail("%s: %s instead of UNKNOWN with details", what, codeName(st.Code()))
		return
	}
	details := st.Details()
	if len(details) != len(want) {
		p.fail("%s: %d details for %d elements", what, len(details), len(want))
		return
	}
	var got []codes.Code
	for _, d := range details {
		e, ok := d.(*v1.Error)
		if !ok {
			p.fail("%s: a detail is no p4.v1.Error", what)
			return
		}
		got = append(got, codes.Code(e.CanonicalCode))
	}
	for i, w := range want {
		if got[i] != w {
			p.fail("%s: %s instead of %s", what, joinCodes(got), joinCodes(want))
			return
		}
	}
	p.seen = append(p.seen, what+": "+joinCodes(got))
}

// codeName returns the name of a code as spelled in the specification.
func codeName(c codes.Code) string {
	var b strings.Builder
	for i, r := range c.String() {
		if i > 0 && r >= 'A' && r <= 'Z' && c != codes.OK {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}

func joinCodes(list []codes.Code) string {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = codeName(c)
	}
	return strings.Join(names, ", ")
}
