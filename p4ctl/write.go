package p4ctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// PipelineConfig returns the pipeline config for a profile, with the tables of the given switch programs. Its cookie is
// computed from the rest of the config, so that equal pipelines from different controllers have the same cookie.
func PipelineConfig(p p4.Profile, programs ...program.Description) *v1.ForwardingPipelineConfig {
	c := &v1.ForwardingPipelineConfig{P4Info: p.Info(programs...), P4DeviceConfig: p.DeviceConfig(programs...)}
	c.Cookie = &v1.ForwardingPipelineConfig_Cookie{Cookie: p4.Cookie(c.P4Info, c.P4DeviceConfig)}
	return c
}

// Pipeline returns the P4Info and the cookie of the device's pipeline config, or nil if there is none.
func (s *Session) Pipeline(ctx context.Context) (*v1.ForwardingPipelineConfig, error) {
	got, err := s.client.GetForwardingPipelineConfig(ctx, &v1.GetForwardingPipelineConfigRequest{
		DeviceId: s.options.DeviceID, ResponseType: v1.GetForwardingPipelineConfigRequest_P4INFO_AND_COOKIE})
	if err != nil {
		return nil, rpcError("get pipeline", err)
	}
	return got.GetConfig(), nil
}

// PushPipeline sets the device's pipeline. pushed reports whether a push was necessary, which clears the tables. If the
// device has a pipeline with the same cookie, it keeps its tables. A server without pipeline support is not changed.
func (s *Session) PushPipeline(ctx context.Context, config *v1.ForwardingPipelineConfig) (pushed bool, err error) {
	s.mu.Lock()
	s.config = config
	s.mu.Unlock()
	got, err := s.client.GetForwardingPipelineConfig(ctx, &v1.GetForwardingPipelineConfigRequest{
		DeviceId: s.options.DeviceID, ResponseType: v1.GetForwardingPipelineConfigRequest_COOKIE_ONLY})
	if err == nil && config.Cookie != nil && proto.Equal(got.GetConfig().GetCookie(), config.Cookie) {
		return false, nil
	}
	_, err = s.client.SetForwardingPipelineConfig(ctx, &v1.SetForwardingPipelineConfigRequest{
		DeviceId: s.options.DeviceID, Role: s.options.Role, ElectionId: s.ElectionID().toProto(),
		Action: v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, Config: config})
	if status.Code(err) == codes.Unimplemented {
		return false, nil
	}
	if err != nil {
		return false, s.explain(rpcError("push pipeline", err))
	}
	return true, nil
}

// ProfileOf returns the lab profile if the table of workers in a P4Info has the lab profile's size, and otherwise the
// twin's profile.
func ProfileOf(info *configv1.P4Info) p4.Profile {
	lab := p4.Lab()
	if slices.ContainsFunc(info.GetTables(), func(t *configv1.Table) bool {
		return t.GetPreamble().GetId() == p4.TableWorkers && t.GetSize() == int64(lab.Workers)
	}) {
		return lab
	}
	return p4.Twin()
}

// AddPrograms adds the tables of switch programs to the device's pipeline and keeps all entries. added reports whether
// any tables were missing.
func (s *Session) AddPrograms(ctx context.Context, programs ...program.Description) (added bool, err error) {
	config, err := s.Pipeline(ctx)
	if err != nil {
		return false, err
	}
	has := func(d program.Description) bool {
		return !slices.ContainsFunc(p4.TablesOf([]program.Description{d}), func(t p4.Table) bool {
			return !slices.ContainsFunc(config.GetP4Info().GetTables(),
				func(given *configv1.Table) bool { return given.GetPreamble().GetId() == t.ID })
		})
	}
	var want []program.Description
	for _, d := range programs {
		if !has(d) {
			want = append(want, d)
		}
	}
	if len(want) == 0 {
		return false, nil
	}
	for _, d := range s.options.Programs {
		if len(d.Tables) > 0 && has(d) {
			want = append(want, d)
		}
	}
	slices.SortFunc(want, func(a, b program.Description) int { return cmp.Compare(a.Code, b.Code) })
	next := PipelineConfig(ProfileOf(config.GetP4Info()), want...)
	_, err = s.client.SetForwardingPipelineConfig(ctx, &v1.SetForwardingPipelineConfigRequest{
		DeviceId: s.options.DeviceID, Role: s.options.Role, ElectionId: s.ElectionID().toProto(),
		Action: v1.SetForwardingPipelineConfigRequest_RECONCILE_AND_COMMIT, Config: next})
	if err != nil {
		return false, s.explain(rpcError("add tables to the pipeline", err))
	}
	s.mu.Lock()
	s.config = next
	s.mu.Unlock()
	return true, nil
}

// Read returns the device's tables in canonical order. The session need not be primary. A server without multicast
// support is treated as if it had no groups.
func (s *Session) Read(ctx context.Context) (Tables, error) {
	t, err := s.readEntities(ctx, readAll())
	if status.Code(err) == codes.Unimplemented {
		t, err = s.readEntities(ctx, readAll()[:1])
	}
	return t, err
}

func (s *Session) readEntities(ctx context.Context, what []*v1.Entity) (Tables, error) {
	var t Tables
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := s.client.Read(ctx, &v1.ReadRequest{DeviceId: s.options.DeviceID, Role: s.options.Role, Entities: what})
	if err != nil {
		return t, rpcError("read tables", err)
	}
	seen := make(map[identity]bool) // a response may contain an entity more than once
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) || onlyUnimplemented(err) {
			return t.Canonical(), nil
		}
		if err != nil {
			return t, rpcError("read tables", err)
		}
		for _, e := range m.GetEntities() {
			o, ok, err := toObject(e, s.known)
			if err != nil {
				return t, fmt.Errorf("read tables: %w", err)
			}
			if ok && !seen[o.identity()] {
				seen[o.identity()] = true
				t.add(o)
			}
		}
	}
}

// onlyUnimplemented reports whether a Read failed only because the server does not support some kinds of entities.
func onlyUnimplemented(err error) bool {
	st, ok := status.FromError(err)
	if !ok || st.Code() != codes.Unknown || len(st.Details()) == 0 {
		return false
	}
	for _, detail := range st.Details() {
		e, ok := detail.(*v1.Error)
		if code := codes.Code(e.GetCanonicalCode()); !ok || code != codes.OK && code != codes.Unimplemented {
			return false
		}
	}
	return true
}

// Applied describes how a plan was applied.
type Applied struct {
	Updates int  // number of updates applied
	Batches int  // number of batches sent
	Atomic  bool // sent as one batch that would have been rolled back on an error
}

// Apply writes a plan. If the plan fits into one batch and the server supports it, the plan is written completely or
// not at all. Otherwise, Apply stops after the first batch with a rejected update. The error for a rejected update is a
// *BatchError.
func (s *Session) Apply(ctx context.Context, p Plan) (Applied, error) {
	updates := p.toUpdates()
	if len(updates) == 0 {
		return Applied{}, nil
	}
	if len(updates) <= s.options.BatchSize {
		err := s.Write(ctx, updates, v1.WriteRequest_ROLLBACK_ON_ERROR)
		if status.Code(err) != codes.Unimplemented {
			return wholeResult(Applied{Updates: len(updates), Batches: 1, Atomic: true}, err)
		}
	}
	var done Applied
	for at := 0; at < len(updates); at += s.options.BatchSize {
		batch := updates[at:min(at+s.options.BatchSize, len(updates))]
		err := s.writeBatch(ctx, batch, at, v1.WriteRequest_CONTINUE_ON_ERROR)
		done.Batches++
		if err != nil {
			var refused *BatchError
			if errors.As(err, &refused) {
				done.Updates += len(batch) - len(refused.Failed)
			}
			return done, fmt.Errorf("%w (%d of %d updates were written)", err, done.Updates, len(updates))
		}
		done.Updates += len(batch)
	}
	return done, nil
}

// ErrTooMany is returned if the changes do not fit into one batch.
var ErrTooMany = olaf.NewError(olaf.Usage, "too many changes for one batch")

// ApplyWhole writes a plan as one batch, either completely or not at all. If the plan does not fit into a batch
// (ErrTooMany) or the server cannot roll back, ApplyWhole returns an error and changes nothing.
func (s *Session) ApplyWhole(ctx context.Context, p Plan) (Applied, error) {
	updates := p.toUpdates()
	switch n := len(updates); {
	case n == 0:
		return Applied{}, nil
	case n > s.options.BatchSize:
		return Applied{}, fmt.Errorf("%w: %d; the limit is %d", ErrTooMany, n, s.options.BatchSize)
	}
	return wholeResult(Applied{Updates: len(updates), Batches: 1, Atomic: true},
		s.Write(ctx, updates, v1.WriteRequest_ROLLBACK_ON_ERROR))
}

func wholeResult(a Applied, err error) (Applied, error) {
	if err != nil {
		return Applied{Batches: a.Batches, Atomic: true}, err
	}
	return a, nil
}

// Sync changes the tables to the desired ones and returns the plan that it applied.
func (s *Session) Sync(ctx context.Context, desired Tables) (Plan, error) {
	if err := desired.Validate(); err != nil {
		return Plan{}, err
	}
	s.mu.Lock()
	s.desired = &desired
	s.mu.Unlock()
	actual, err := s.Read(ctx)
	if err != nil {
		return Plan{}, err
	}
	p := Diff(actual, desired)
	_, err = s.Apply(ctx, p)
	return p, err
}

// Write sends one batch without changing it. Most callers should use Apply instead. The error for a rejected update is
// a *BatchError.
func (s *Session) Write(ctx context.Context, updates []*v1.Update, atomicity v1.WriteRequest_Atomicity) error {
	return s.writeBatch(ctx, updates, 0, atomicity)
}

func (s *Session) writeBatch(ctx context.Context, updates []*v1.Update, offset int,
	atomicity v1.WriteRequest_Atomicity) error {
	_, err := s.client.Write(ctx, &v1.WriteRequest{
		DeviceId: s.options.DeviceID, Role: s.options.Role, ElectionId: s.ElectionID().toProto(), Updates: updates,
		Atomicity: atomicity})
	err = writeError(err, updates, offset, atomicity != v1.WriteRequest_CONTINUE_ON_ERROR)
	var refused *BatchError
	if errors.As(err, &refused) {
		for _, failed := range refused.Failed {
			failed.known = s.known
		}
	}
	return s.explain(err)
}

// explain adds the competing controller to the error for a rejected request and, if that is the reason, the preemption.
func (s *Session) explain(err error) error {
	if !errors.Is(err, ErrNotPrimary) {
		return err
	}
	if why := s.Err(); errors.Is(why, ErrPreempted) {
		return &kinded{ErrPreempted, why.Error(), err}
	}
	return s.contestError(s.highestSeen(), err)
}
