package conformance

import (
	"errors"
	"io"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// next returns an election ID above all others in this run and in earlier runs.
func (s *session) next() *v1.Uint128 {
	s.low++
	return &v1.Uint128{High: s.high, Low: s.low}
}

// lower returns an election ID below those returned by next. No other clause uses it, because a server may notice the
// end of a clause's streams only during the next clause.
func (s *session) lower() *v1.Uint128 {
	s.low++
	return &v1.Uint128{High: s.high - 1, Low: s.low}
}

// open opens a stream and sends an arbitration message with the given election ID, or without an ID if id is nil.
func (p *probe) open(id *v1.Uint128) (v1.P4Runtime_StreamChannelClient, error) {
	stream, err := p.client.StreamChannel(p.ctx)
	if err != nil {
		return nil, err
	}
	return stream, p.sendArbitration(stream, p.DeviceID, id)
}

func (p *probe) sendArbitration(stream v1.P4Runtime_StreamChannelClient, device uint64, id *v1.Uint128) error {
	return stream.Send(&v1.StreamMessageRequest{Update: &v1.StreamMessageRequest_Arbitration{
		Arbitration: &v1.MasterArbitrationUpdate{DeviceId: device, ElectionId: id}}})
}

// announce opens a stream, sends an arbitration message and waits for the answer.
func (p *probe) announce(id *v1.Uint128) (v1.P4Runtime_StreamChannelClient, *v1.MasterArbitrationUpdate, error) {
	stream, err := p.open(id)
	if err != nil && !errors.Is(err, io.EOF) { // on io.EOF, the answer has the reason why the stream has ended
		return nil, nil, err
	}
	answer, err := awaitArbitration(stream)
	return stream, answer, err
}

// awaitArbitration waits for the next arbitration message on a stream. It skips other messages.
func awaitArbitration(stream v1.P4Runtime_StreamChannelClient) (*v1.MasterArbitrationUpdate, error) {
	for {
		m, err := stream.Recv()
		if err != nil {
			return nil, err
		}
		if a := m.GetArbitration(); a != nil {
			return a, nil
		}
	}
}

// streamEnd returns the error that ended a stream, or nil if messages keep arriving.
func streamEnd(stream v1.P4Runtime_StreamChannelClient) error {
	for range 8 {
		if _, err := stream.Recv(); err != nil {
			return err
		}
	}
	return nil
}

// expectNotice records the next arbitration message to a controller and compares its status with the expected code.
func (p *probe) expectNotice(who string, stream v1.P4Runtime_StreamChannelClient,
	want codes.Code) *v1.MasterArbitrationUpdate {
	if stream == nil {
		p.fail("%s has no stream", who)
		return nil
	}
	a, err := awaitArbitration(stream)
	if err != nil {
		p.expectStatus(who, err, codes.OK)
		return nil
	}
	p.expectCode(who+" hears", codes.Code(a.GetStatus().GetCode()), []codes.Code{want})
	return a
}

// lead makes the probe the primary controller with a new ID. It records only failures.
func (p *probe) lead() {
	p.id = p.next()
	stream, answer, err := p.announce(p.id)
	if err != nil || codes.Code(answer.GetStatus().GetCode()) != codes.OK {
		p.fail("did not become primary with an id above all others: %v %v", answer.GetStatus(), err)
		return
	}
	p.stream = stream
}

// leadEmpty makes the probe the primary controller and empties the tables.
func (p *probe) leadEmpty() {
	if p.lead(); p.isOver() {
		return
	}
	if err := p.setPipeline(v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, p.Config); err != nil {
		p.fail("the pipeline is refused: %v", err)
	}
}

func (p *probe) setPipeline(action v1.SetForwardingPipelineConfigRequest_Action,
	config *v1.ForwardingPipelineConfig) error {
	_, err := p.client.SetForwardingPipelineConfig(p.ctx, &v1.SetForwardingPipelineConfigRequest{
		DeviceId: p.DeviceID, ElectionId: p.id, Action: action, Config: config}, large)
	return err
}

func (p *probe) getPipeline(kind v1.GetForwardingPipelineConfigRequest_ResponseType) (
	*v1.ForwardingPipelineConfig, error) {
	got, err := p.client.GetForwardingPipelineConfig(p.ctx,
		&v1.GetForwardingPipelineConfigRequest{DeviceId: p.DeviceID, ResponseType: kind}, large)
	return got.GetConfig(), err
}

// large is the call option that allows a server to answer with a complete program.
var large = grpc.MaxCallRecvMsgSize(256 << 20)

func (p *probe) write(updates ...*v1.Update) error {
	return p.writeAs(v1.WriteRequest_CONTINUE_ON_ERROR, updates...)
}

func (p *probe) writeAs(a v1.WriteRequest_Atomicity, updates ...*v1.Update) error {
	_, err := p.client.Write(p.ctx, &v1.WriteRequest{DeviceId: p.DeviceID, ElectionId: p.id, Atomicity: a,
		Updates: updates})
	return err
}

func (p *probe) read(entities ...*v1.Entity) ([]*v1.Entity, error) {
	return p.readOf(p.DeviceID, entities...)
}

func (p *probe) readOf(device uint64, entities ...*v1.Entity) (all []*v1.Entity, err error) {
	stream, err := p.client.Read(p.ctx, &v1.ReadRequest{DeviceId: device, Entities: entities})
	if err != nil {
		return nil, err
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, m.Entities...)
	}
}

// table reads the entries in the table to which the clauses write.
func (p *probe) table() []*v1.Entity {
	all, err := p.read(tableEntity(&v1.TableEntry{TableId: p.shape.table.Preamble.Id}))
	if err != nil {
		p.fail("read of the table: %v", err)
	}
	return all
}

// expectEntries records the number of entries in the table and compares it with the expected number.
func (p *probe) expectEntries(want int) {
	if got := len(p.table()); !p.isOver() {
		p.expect(countNoun(want, "entry", "entries"), got == want, countNoun(got, "entry", "entries")+" instead of "+
			countNoun(want, "entry", "entries"))
	}
}

// expectRead records the result of a read and compares it with the expected entities.
func (p *probe) expectRead(what string, want []*v1.Entity, entities ...*v1.Entity) {
	got, err := p.read(entities...)
	if err != nil {
		p.expectStatus(what, err, codes.OK)
		return
	}
	p.expect(what+": "+countNoun(len(want), "entity", "entities"), sameEntries(got, want), what+
		": another answer: "+formatEntities(got))
}

// formatEntities formats a list of entities as a line of limited length.
func formatEntities(list []*v1.Entity) string {
	text := ""
	for _, e := range list {
		text += " " + formatLine(e)
	}
	if len(text) > 200 {
		text = text[:200] + "…"
	}
	if text == "" {
		return "none"
	}
	return text[1:]
}

// changedConfig returns a copy of the pushed config to which change was applied.
func (p *probe) changedConfig(change func(*v1.ForwardingPipelineConfig)) *v1.ForwardingPipelineConfig {
	c := proto.CloneOf(p.Config)
	change(c)
	return c
}
