package agent

import (
	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// pipeline is a pushed configuration with the state that was written since. It is immutable; each batch creates a new
// pipeline.
type pipeline struct {
	config    *v1.ForwardingPipelineConfig
	schema    *schema
	state     *State
	committed bool   // the device runs the pipeline; otherwise it is only saved
	onDevice  *State // the device's state while this pipeline is only saved; nil if the device never had one
}

// forwarding returns the state of the device.
func (p *pipeline) forwarding() *State {
	if p == nil || p.committed {
		return p.writtenState()
	}
	return p.onDevice
}

func (p *pipeline) writtenState() *State {
	if p == nil {
		return nil
	}
	return p.state
}

// verify checks a pushed configuration without changing anything.
func verify(b Backend, built build, config *v1.ForwardingPipelineConfig) (*pipeline, error) {
	if config == nil {
		return nil, status.Error(codes.InvalidArgument, "the request has no pipeline config")
	}
	s, err := newSchema(config.P4Info, built)
	if err != nil {
		return nil, err
	}
	if err := b.Verify(config.P4Info, config.P4DeviceConfig); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "the device can't realise this pipeline: %v", err)
	}
	return &pipeline{config: proto.Clone(config).(*v1.ForwardingPipelineConfig), schema: s, state: s.empty()}, nil
}

// setPipeline performs the requested action and returns the pipeline that replaces now. now may be nil and is not
// changed. A nil result means that nothing changes. A committed state has the given version.
func setPipeline(b Backend, built build, now *pipeline, version uint64,
	req *v1.SetForwardingPipelineConfigRequest) (*pipeline, error) {
	switch req.Action {
	case v1.SetForwardingPipelineConfigRequest_COMMIT:
		return commitSaved(b, now, version, req)
	case v1.SetForwardingPipelineConfigRequest_VERIFY, v1.SetForwardingPipelineConfigRequest_VERIFY_AND_SAVE,
		v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, v1.SetForwardingPipelineConfigRequest_RECONCILE_AND_COMMIT:
	default:
		return nil, status.Errorf(codes.InvalidArgument, "unknown action %v", req.Action)
	}
	next, err := verify(b, built, req.Config)
	if err != nil {
		return nil, err
	}
	switch req.Action {
	case v1.SetForwardingPipelineConfigRequest_VERIFY:
		return nil, nil
	case v1.SetForwardingPipelineConfigRequest_VERIFY_AND_SAVE:
		next.onDevice = now.forwarding()
		return next, nil
	case v1.SetForwardingPipelineConfigRequest_RECONCILE_AND_COMMIT:
		if forwarding := now.forwarding(); forwarding != nil {
			if err := next.schema.fits(forwarding); err != nil {
				return nil, err
			}
			next.state = forwarding.under(next.schema)
		}
	}
	return next, next.commit(b, version, now.forwarding())
}

func commitSaved(b Backend, now *pipeline, version uint64, req *v1.SetForwardingPipelineConfigRequest) (
	*pipeline, error) {
	if req.Config != nil {
		return nil, status.Error(codes.InvalidArgument, "COMMIT takes no config: it realises the saved config")
	}
	if now == nil || now.committed {
		return nil, status.Error(codes.NotFound, "no saved pipeline config is waiting for COMMIT")
	}
	next := *now
	return &next, next.commit(b, version, now.forwarding())
}

// commit writes the pipeline to the device. If this fails, it restores the previous state.
func (p *pipeline) commit(b Backend, version uint64, before *State) error {
	state := *p.state
	state.version = version
	p.state = &state
	err := b.Commit(p.state)
	if err == nil {
		p.committed, p.onDevice = true, nil
		return nil
	}
	if before != nil {
		if again := b.Commit(before); again != nil {
			return status.Errorf(codes.DataLoss,
				"the commit failed (%v) and so did the rollback (%v): the contents of the device's tables are unknown",
				err,
				again)
		}
	}
	return status.Errorf(codes.Internal, "commit: %v", err)
}

// fits returns an error if a state exceeds the limits of the pipeline.
func (s *schema) fits(st *State) error {
	for i := range st.added {
		if n := st.added[i].entries.size; n > 0 && s.tables[st.added[i].ID] == nil {
			return status.Errorf(codes.InvalidArgument,
				"can't keep the state: %q has %d entries, but the new pipeline has no such table", st.added[i].Name, n)
		}
	}
	for id, t := range s.tables {
		entries := st.table(id)
		if entries == nil {
			continue // a new table is empty at first
		}
		if n := entries.size; n > capacity(t) {
			return status.Errorf(codes.InvalidArgument, "can't keep the state: %s has %d entries, the new limit is %d",
				nameOf(t), n, capacity(t))
		}
	}
	if st.groups.size > s.groups || st.replicas > s.replicas {
		return status.Errorf(codes.InvalidArgument,
			"can't keep the state: %d multicast groups with %d replicas, the new limits are %d and %d", st.groups.size,
			st.replicas, s.groups, s.replicas)
	}
	return nil
}

// viewOf returns the part of the configuration that a GetForwardingPipelineConfig request asks for.
func (p *pipeline) viewOf(kind v1.GetForwardingPipelineConfigRequest_ResponseType) (
	*v1.ForwardingPipelineConfig, error) {
	c := p.config
	switch kind {
	case v1.GetForwardingPipelineConfigRequest_ALL:
		return c, nil
	case v1.GetForwardingPipelineConfigRequest_COOKIE_ONLY:
		return &v1.ForwardingPipelineConfig{Cookie: c.Cookie}, nil
	case v1.GetForwardingPipelineConfigRequest_P4INFO_AND_COOKIE:
		return &v1.ForwardingPipelineConfig{P4Info: c.P4Info, Cookie: c.Cookie}, nil
	case v1.GetForwardingPipelineConfigRequest_DEVICE_CONFIG_AND_COOKIE:
		return &v1.ForwardingPipelineConfig{P4DeviceConfig: c.P4DeviceConfig, Cookie: c.Cookie}, nil
	}
	return nil, status.Errorf(codes.InvalidArgument, "unknown response type %v", kind)
}
