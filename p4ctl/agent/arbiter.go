package agent

import (
	"fmt"
	"slices"
	"time"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/olafctl/olaf/internal/silence"
)

// electionID is a P4Runtime election ID, an unsigned 128-bit number.
type electionID struct{ high, low uint64 }

func (e electionID) less(f electionID) bool {
	return e.high < f.high || e.high == f.high && e.low < f.low
}

func (e electionID) String() string { return fmt.Sprintf("(%d, %d)", e.high, e.low) }

func toElectionID(u *v1.Uint128) (id electionID, set bool) {
	return electionID{u.GetHigh(), u.GetLow()}, u != nil
}

// connection identifies a controller's stream.
type connection uint64

// controller is the last announcement on a stream.
type controller struct {
	role string
	id   electionID
	set  bool // false means no election id, which is lower than all ids and never primary
}

// roleState is the state of the arbitration for one role.
type roleState struct {
	highest  electionID // highest id ever accepted; only a restart resets it
	seen     bool       // an id has been accepted
	primary  connection
	occupied bool // primary is the stream of a live controller
}

// notice is an arbitration message for one stream. Notices to the new primary are sent last, when writes in flight have
// finished.
type notice struct {
	to      connection
	message *v1.MasterArbitrationUpdate
}

// verdict is the result of an announcement or of a controller's departure. The agent refuses the old primary's writes
// (the arbiter already does), notifies the other controllers, waits for writes in flight, and then notifies the new
// primary. The arbiter has already removed the streams that ended.
type verdict struct {
	others, primary []notice
	ended           []connection
}

// maxRoles is the maximum number of unconfigured roles that can be in use at the same time.
const maxRoles = 256

// arbiter decides for each role on a device which controller is primary. It identifies streams by number and sends no
// messages, so that tests can call it directly. It is not safe for concurrent use.
type arbiter struct {
	device     uint64
	maxStreams int // limit per role
	streams    map[connection]*controller
	// roles contains the configured roles, including the default role, and unconfigured roles in use. An unconfigured
	// role covers no tables, so it is dropped with its last stream.
	roles      map[string]*roleState
	configured map[string]bool
	silence    func(connection) time.Duration // time since a stream's controller last sent anything; may be nil
}

func newArbiter(device uint64, maxStreams int, roles ...string) *arbiter {
	a := &arbiter{device: device, maxStreams: maxStreams, streams: make(map[connection]*controller),
		roles: make(map[string]*roleState), configured: map[string]bool{"": true}}
	for _, name := range roles {
		a.configured[name] = true
	}
	return a
}

// announce handles a MasterArbitrationUpdate message. An error means that the stream must end.
func (a *arbiter) announce(c connection, m *v1.MasterArbitrationUpdate) (verdict, error) {
	role := m.GetRole().GetName()
	id, set := toElectionID(m.GetElectionId())
	self, known := a.streams[c]
	if err := a.check(c, self, m); err != nil {
		return verdict{}, err
	}
	var ended []connection
	if !known {
		if a.countStreams(role) >= a.maxStreams {
			oldest, _ := a.oldestIdle(role) // exists, according to the check before
			ended = []connection{oldest}
			delete(a.streams, oldest)
		}
		self = &controller{role: role}
		a.streams[c] = self
	}
	v := a.elect(c, self, id, set)
	v.ended = ended
	return v, nil
}

// elect applies the election ID that a stream announced.
func (a *arbiter) elect(c connection, self *controller, id electionID, set bool) verdict {
	r := a.stateOf(self.role)
	wasPrimary := r.occupied && r.primary == c
	self.id, self.set = id, set

	switch {
	case set && (!r.seen || !id.less(r.highest)): // at least the highest id ever seen: becomes or stays primary
		r.highest, r.seen = id, true
		r.primary, r.occupied = c, true
		return a.notifyAll(self.role)
	case wasPrimary: // the controller demoted itself, and no other controller succeeds it
		r.occupied = false
		return a.notifyAll(self.role)
	default:
		return verdict{others: []notice{a.noticeFor(c)}}
	}
}

// check returns an error if an announcement must end its stream. It changes nothing.
func (a *arbiter) check(c connection, self *controller, m *v1.MasterArbitrationUpdate) error {
	role := m.GetRole().GetName()
	if self != nil && (m.GetDeviceId() != a.device || self.role != role) {
		return status.Errorf(codes.FailedPrecondition,
			"a stream keeps its device and role (device %d, role %q); open another stream", a.device, self.role)
	}
	if m.GetDeviceId() != a.device {
		return unknownDeviceError(m.GetDeviceId(), a.device)
	}
	if m.GetRole().GetConfig() != nil {
		return status.Error(codes.InvalidArgument, "role.config is not supported: roles are configured at the agent")
	}
	if id, set := toElectionID(m.GetElectionId()); set {
		for other, o := range a.streams {
			if other != c && o.role == role && o.set && o.id == id {
				return status.Errorf(codes.InvalidArgument,
					"election id %v is in use by another live controller; highest so far is %v%s",
					id, a.stateOf(role).highest, silence.Clause(a.silenceOf(other)))
			}
		}
	}
	if _, ok := a.roles[role]; !ok && !a.configured[role] && a.countStrangers() >= maxRoles {
		return status.Errorf(codes.ResourceExhausted, "%d unconfigured roles are in use, which is the limit", maxRoles)
	}
	if self == nil && a.countStreams(role) >= a.maxStreams {
		return a.checkRoom(role, m.GetElectionId() != nil)
	}
	return nil
}

// checkRoom returns an error if a role has no room for a new stream. A stream with an election ID replaces one without
// an ID, if there is one, so that streams without IDs cannot lock out others.
func (a *arbiter) checkRoom(role string, set bool) error {
	switch _, idle := a.oldestIdle(role); {
	case !idle:
		return status.Errorf(codes.ResourceExhausted,
			"role %q already has %d streams, the limit, all with an election id; stop some of its controllers", role,
			a.maxStreams)
	case !set:
		return status.Errorf(codes.ResourceExhausted,
			"role %q already has %d streams, the limit; announce an election id to make room, or stop some of its "+
				"controllers", role, a.maxStreams)
	}
	return nil
}

// oldestIdle returns the oldest stream in a role that announced no election ID.
func (a *arbiter) oldestIdle(role string) (oldest connection, found bool) {
	for c, s := range a.streams {
		if s.role == role && !s.set && (!found || c < oldest) {
			oldest, found = c, true
		}
	}
	return oldest, found
}

// countStrangers returns the number of unconfigured roles that are in use.
func (a *arbiter) countStrangers() (n int) {
	for name := range a.roles {
		if !a.configured[name] {
			n++
		}
	}
	return n
}

func (a *arbiter) countStreams(role string) (n int) {
	for _, s := range a.streams {
		if s.role == role {
			n++
		}
	}
	return n
}

// leave removes a stream that ended and notifies the controllers in its role. If the primary leaves, no other
// controller becomes primary.
func (a *arbiter) leave(c connection) verdict {
	self, known := a.streams[c]
	if !known {
		return verdict{}
	}
	delete(a.streams, c)
	if !a.configured[self.role] && a.countStreams(self.role) == 0 {
		delete(a.roles, self.role)
		return verdict{}
	}
	if r := a.stateOf(self.role); r.occupied && r.primary == c {
		r.occupied = false
		return a.notifyAll(self.role)
	}
	return verdict{}
}

// isPrimary reports whether a stream is the primary of its role.
func (a *arbiter) isPrimary(c connection) bool {
	self, known := a.streams[c]
	if !known {
		return false
	}
	r := a.stateOf(self.role)
	return r.occupied && r.primary == c
}

// allow returns an error if a request with this role and election ID may not write now.
func (a *arbiter) allow(role string, id *v1.Uint128) error {
	r, known := a.roles[role]
	if !known {
		if role == "" {
			return status.Error(codes.PermissionDenied,
				"there is no primary: open a StreamChannel and announce an election id first")
		}
		return status.Errorf(codes.NotFound, "no controller has announced role %q", role)
	}
	e, set := toElectionID(id)
	switch {
	case !r.occupied:
		return status.Errorf(codes.PermissionDenied, "there is no primary (highest election id so far %v)", r.highest)
	case !set:
		return status.Errorf(codes.PermissionDenied, "the request has no election id; the primary has %v", r.highest)
	case e != r.highest:
		return status.Errorf(codes.PermissionDenied, "not primary: the election id is %v, the primary has %v", e,
			r.highest)
	}
	return nil
}

func (a *arbiter) stateOf(name string) *roleState {
	r, ok := a.roles[name]
	if !ok {
		r = new(roleState)
		a.roles[name] = r
	}
	return r
}

// notifyAll returns a notice for each stream in the role, in the order in which the streams were opened.
func (a *arbiter) notifyAll(role string) (v verdict) {
	r := a.stateOf(role)
	var all []connection
	for c, s := range a.streams {
		if s.role == role {
			all = append(all, c)
		}
	}
	slices.Sort(all)
	for _, c := range all {
		if r.occupied && c == r.primary {
			v.primary = append(v.primary, a.noticeFor(c))
		} else {
			v.others = append(v.others, a.noticeFor(c))
		}
	}
	return v
}

func (a *arbiter) noticeFor(c connection) notice {
	s := a.streams[c]
	r := a.stateOf(s.role)
	m := &v1.MasterArbitrationUpdate{DeviceId: a.device, Status: &statuspb.Status{}}
	if s.role != "" {
		m.Role = &v1.Role{Name: s.role}
	}
	if r.seen {
		m.ElectionId = &v1.Uint128{High: r.highest.high, Low: r.highest.low}
	}
	switch {
	case r.occupied && r.primary == c:
		m.Status.Code, m.Status.Message = int32(codes.OK), "you are the primary"
	case r.occupied:
		m.Status.Code, m.Status.Message = int32(codes.AlreadyExists), "you are a backup; the primary's election id is "+
			r.highest.String()
		addSilence(m.Status, a.silenceOf(r.primary))
	case r.seen:
		m.Status.Code, m.Status.Message = int32(codes.NotFound), "there is no primary; announce at least "+r.highest.String()
	default:
		m.Status.Code, m.Status.Message = int32(codes.NotFound), "there is no primary"
	}
	return notice{to: c, message: m}
}

// addSilence adds the time since the primary last sent anything to a status, as text and as a number for our own
// client.
func addSilence(s *statuspb.Status, d time.Duration) {
	detail, err := anypb.New(durationpb.New(d))
	if clause := silence.Clause(d); clause != "" && err == nil {
		s.Message += clause
		s.Details = append(s.Details, detail)
	}
}

func (a *arbiter) silenceOf(c connection) time.Duration {
	if a.silence == nil {
		return 0
	}
	return a.silence(c)
}

func unknownDeviceError(got, want uint64) error {
	return status.Errorf(codes.NotFound, "unknown device id %d: this agent serves device %d", got, want)
}
