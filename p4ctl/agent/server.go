// Package agent implements the P4Runtime server for the tables of one device, which is a twin or a card with a driver.
// A request passes through four parts. The arbiter decides which controller may write. The schema checks the request
// against the P4Info. The state stores the entries in immutable snapshots. The Backend is the device.
// docs/reference/p4runtime.md lists the rules of the specification that apply.
package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// apiVersion is the version of P4Runtime that the agent implements.
const apiVersion = "1.5.0"

// Role defines which tables a named role may access. The default role, which has no name, may access everything.
type Role struct {
	Tables   []uint32 // ids of the tables
	Groups   bool     // covers multicast groups
	Pipeline bool     // may push a pipeline config
}

// allowsTable reports whether the role may access a table. A nil role is the default role, which may access everything.
func (r *Role) allowsTable(id uint32) bool {
	return r == nil || slices.Contains(r.Tables, id)
}

func (r *Role) allowsGroups() bool { return r == nil || r.Groups }

func (r *Role) allowsPipeline() bool { return r == nil || r.Pipeline }

// Options configures an agent. Backend and Profile are required.
type Options struct {
	Backend Backend
	Profile p4.Profile // profile that the device was built for
	// Programs are the switch programs whose tables a pipeline may have in addition to the tables of the blocks.
	Programs []program.Description
	// DeviceID defaults to p4.DeviceID.
	DeviceID uint64
	// Roles are the named roles. A role with any other name covers no tables.
	Roles map[string]Role
	// Journal is the file that preserves pipeline and tables across restarts; if empty, they are kept only in memory.
	// After a crash the device is reset and the journal is replayed. Election ids are forgotten, as the specification
	// requires.
	Journal string
	// Check returns an error if the device is no longer the one that the tables were written to. nil means that this
	// cannot happen.
	Check func() error
	// Warn is called with sentences for the operator about a journal that was accepted despite faults; nil discards
	// them.
	Warn func(string)
	// MaxStreams limits the number of controllers per role; default 64.
	MaxStreams int

	// disk is the journal's file system; nil uses the operating system's.
	disk fileSystem
}

func (o *Options) files() fileSystem {
	if o.disk != nil {
		return o.disk
	}
	return disk{}
}

// Agent is a P4Runtime server. It is safe for concurrent use.
type Agent struct {
	v1.UnimplementedP4RuntimeServer

	device  uint64
	options Options

	// writes serializes batches and pipeline changes, and makes a new primary wait for the previous primary's last
	// batch.
	writes  sync.Mutex
	current atomic.Pointer[pipeline]
	version uint64 // version of the newest state; guarded by writes
	journal *journal

	turns   sync.Mutex // serializes arbitrations until all streams were notified
	guard   sync.Mutex // guards the arbiter and the outboxes
	arbiter *arbiter
	boxes   map[connection]*outbox
	last    connection
}

// New returns an agent. The agent has no pipeline unless the journal contains one, in which case New writes the
// journal's tables to the device. If the journal is damaged, does not fit the device or belongs to another agent, New
// returns an error that matches ErrJournal and does not change the journal.
func New(o Options) (*Agent, error) {
	if o.Backend == nil || o.Profile.Name == "" {
		return nil, errors.New("agent: a backend and a table profile are required")
	}
	o.DeviceID = cmp.Or(o.DeviceID, p4.DeviceID)
	o.MaxStreams = cmp.Or(o.MaxStreams, 64)
	a := &Agent{device: o.DeviceID, options: o, arbiter: newArbiter(o.DeviceID, o.MaxStreams,
		slices.Collect(maps.Keys(o.Roles))...), boxes: make(map[connection]*outbox)}
	a.arbiter.silence = func(c connection) time.Duration { return a.boxes[c].silence() } // of a live stream; guard is locked
	if o.Journal == "" {
		return a, nil
	}
	var err error
	if a.journal, err = openJournal(o.files(), o.Journal, o.Warn); err != nil {
		return nil, err
	}
	if err := a.resume(); err != nil {
		return nil, errors.Join(err, a.journal.close())
	}
	return a, nil
}

// resume writes the tables in the journal to the device.
func (a *Agent) resume() error {
	c, err := a.journal.read()
	if err != nil {
		return err
	}
	if c.config == nil {
		return a.journal.settle(nil)
	}
	p, err := replay(a.options.Backend, a.options, c)
	if err != nil {
		return fmt.Errorf("%s: %w", a.journal.path, err)
	}
	a.version++
	if err := p.commit(a.options.Backend, a.version, nil); err != nil {
		return err
	}
	a.current.Store(p)
	return a.journal.settle(p)
}

// Close releases the journal. The agent must not be used for writes afterwards.
func (a *Agent) Close() error {
	a.writes.Lock()
	defer a.writes.Unlock()
	return a.journal.close()
}

// Capabilities returns the P4Runtime version. If the request contains a device ID, it also checks the ID.
func (a *Agent) Capabilities(_ context.Context, req *v1.CapabilitiesRequest) (*v1.CapabilitiesResponse, error) {
	if id := req.GetDeviceId(); id != 0 && id != a.device {
		return nil, unknownDeviceError(id, a.device)
	}
	return &v1.CapabilitiesResponse{P4RuntimeApiVersion: apiVersion}, nil
}

// Write applies a batch of updates.
func (a *Agent) Write(_ context.Context, req *v1.WriteRequest) (*v1.WriteResponse, error) {
	if req.GetDeviceId() != a.device {
		return nil, unknownDeviceError(req.GetDeviceId(), a.device)
	}
	a.writes.Lock()
	defer a.writes.Unlock()
	role, err := a.mayWrite(req.GetRole(), req.GetElectionId())
	if err != nil {
		return nil, err
	}
	p := a.current.Load()
	if p == nil {
		return nil, noPipelineError()
	}
	if err := a.checkDevice(); err != nil {
		return nil, err
	}
	state, changes, faults, err := p.writeBatch(a.options.Backend, role, req)
	if err != nil {
		return nil, err
	}
	if err := a.checkDevice(); err != nil { // before anything is reported as written
		return nil, err
	}
	if len(changes) > 0 {
		if err := a.publish(p, state, changes); err != nil {
			return nil, err
		}
	}
	if err := batchStatus("updates", faults); err != nil {
		return nil, err
	}
	return &v1.WriteResponse{}, nil
}

// checkDevice returns a status error if the device is no longer the one to which the tables were written.
func (a *Agent) checkDevice() error {
	if a.options.Check == nil {
		return nil
	}
	if err := a.options.Check(); err != nil {
		return status.Error(codes.DataLoss, err.Error())
	}
	return nil
}

// publish makes a batch durable and visible to reads and, if the pipeline is on the device, to the data path. If the
// batch cannot be made durable, publish undoes it.
func (a *Agent) publish(p *pipeline, state *State, changes []Change) error {
	next := *p
	state.version = a.version + 1
	next.state = state
	if next.committed {
		if err := a.journal.add(&next, changes); err != nil {
			if again := a.options.Backend.Commit(p.state); again != nil {
				return status.Errorf(codes.DataLoss, "%v, and the rollback failed (%v): the contents of the device's "+
					"tables are unknown", err, again)
			}
			return status.Errorf(codes.Internal, "nothing was written: %v", adviseOnFull(err))
		}
		a.options.Backend.Publish(state)
	}
	a.version++
	a.current.Store(&next)
	return nil
}

// adviseOnFull adds a remedy to the error for a full disk, because the next write repairs the file.
func adviseOnFull(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w; free some space on the agent's disk and write again", err)
	}
	return err
}

// mayWrite returns the role with the given name, and an error if a request with this role and election ID may not
// write.
func (a *Agent) mayWrite(role string, id *v1.Uint128) (*Role, error) {
	a.guard.Lock()
	err := a.arbiter.allow(role, id)
	a.guard.Unlock()
	return a.roleOf(role), err
}

func (a *Agent) roleOf(name string) *Role {
	if name == "" {
		return nil
	}
	r := a.options.Roles[name]
	return &r
}

func noPipelineError() error {
	return status.Error(codes.FailedPrecondition,
		"no pipeline config yet: push one with SetForwardingPipelineConfig first")
}

// chunk is the maximum number of entities in one message of a Read response.
const chunk = 512

// Read streams the requested entities. All of them come from the same snapshot.
func (a *Agent) Read(req *v1.ReadRequest, stream v1.P4Runtime_ReadServer) error {
	if req.GetDeviceId() != a.device {
		return unknownDeviceError(req.GetDeviceId(), a.device)
	}
	if _, known := a.options.Roles[req.GetRole()]; !known && req.GetRole() != "" {
		return status.Errorf(codes.NotFound, "role %q is not configured", req.GetRole())
	}
	p := a.current.Load()
	if p == nil {
		return noPipelineError()
	}
	if err := a.checkDevice(); err != nil {
		return err
	}
	role := a.roleOf(req.GetRole())
	answer := new(v1.ReadResponse)
	var broken error // error returned by the stream itself
	flush := func() error {
		if len(answer.Entities) > 0 {
			broken = stream.Send(answer)
			answer = new(v1.ReadResponse)
		}
		return broken
	}
	emit := func(e *v1.Entity) error {
		answer.Entities = append(answer.Entities, e)
		if len(answer.Entities) < chunk {
			return nil
		}
		return flush()
	}
	faults := make([]error, len(req.Entities))
	for i, e := range req.Entities {
		faults[i] = p.readEntity(role, e, emit)
		if broken != nil {
			return broken
		}
	}
	if err := flush(); err != nil {
		return err
	}
	return batchStatus("entities", faults)
}

// SetForwardingPipelineConfig verifies, saves or commits a pipeline.
func (a *Agent) SetForwardingPipelineConfig(_ context.Context, req *v1.SetForwardingPipelineConfigRequest) (
	*v1.SetForwardingPipelineConfigResponse, error) {
	if req.GetDeviceId() != a.device {
		return nil, unknownDeviceError(req.GetDeviceId(), a.device)
	}
	a.writes.Lock()
	defer a.writes.Unlock()
	role, err := a.mayWrite(req.GetRole(), req.GetElectionId())
	if err != nil {
		return nil, err
	}
	if !role.allowsPipeline() {
		return nil, status.Errorf(codes.PermissionDenied, "role %q may not push a pipeline", req.GetRole())
	}
	err = a.checkDevice()
	if err == nil {
		err = a.setPipeline(req)
	}
	if lost := a.checkDevice(); lost != nil {
		err = lost
	}
	if err != nil {
		if _, said := status.FromError(err); !said {
			err = status.Error(codes.Internal, err.Error())
		}
		return nil, err
	}
	return &v1.SetForwardingPipelineConfigResponse{}, nil
}

// Install commits a pipeline if the journal has none. It must be called before the first controller connects. It uses
// no election ID, so that controllers with any ID can become primary. The error matches ErrJournal if the journal could
// not be started.
func (a *Agent) Install(config *v1.ForwardingPipelineConfig) error {
	a.writes.Lock()
	defer a.writes.Unlock()
	if a.current.Load() != nil {
		return nil
	}
	err := a.setPipeline(&v1.SetForwardingPipelineConfigRequest{
		DeviceId: a.device, Action: v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, Config: config,
	})
	if said, ok := status.FromError(err); ok && err != nil {
		return errors.New(said.Message()) // without the gRPC status, since the caller is not a gRPC client
	}
	return err
}

// setPipeline performs one action. The caller must hold the lock writes. The error is a gRPC status or comes from the
// journal.
func (a *Agent) setPipeline(req *v1.SetForwardingPipelineConfigRequest) error {
	next, err := setPipeline(a.options.Backend, a.options.build(), a.current.Load(), a.version+1, req)
	if err != nil || next == nil {
		return err
	}
	a.version++
	a.current.Store(next)
	if next.committed {
		if err := a.journal.commit(next); err != nil {
			return fmt.Errorf("the pipeline is committed, but not durable: %w", adviseOnFull(err))
		}
	}
	return nil
}

// GetForwardingPipelineConfig returns the pushed configuration, or an empty response before the first push.
func (a *Agent) GetForwardingPipelineConfig(_ context.Context, req *v1.GetForwardingPipelineConfigRequest) (
	*v1.GetForwardingPipelineConfigResponse, error) {
	if req.GetDeviceId() != a.device {
		return nil, unknownDeviceError(req.GetDeviceId(), a.device)
	}
	p := a.current.Load()
	if p == nil {
		return &v1.GetForwardingPipelineConfigResponse{}, nil
	}
	config, err := p.viewOf(req.GetResponseType())
	if err != nil {
		return nil, err
	}
	return &v1.GetForwardingPipelineConfigResponse{Config: config}, nil
}
