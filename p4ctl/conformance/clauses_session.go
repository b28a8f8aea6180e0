package conformance

import (
	"fmt"
	"regexp"
	"strings"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
)

const (
	ofArbitration   = "Client Arbitration and Controller Replication"
	ofMessages      = "Rules for Handling MasterArbitrationUpdate Messages Received from Controllers"
	ofNotifications = "Client Arbitration Notifications"
	ofUnset         = "Unset Election ID"
	ofSet           = "SetForwardingPipelineConfig RPC"
	ofGet           = "GetForwardingPipelineConfig RPC"
)

// unknownDevice returns a device ID that is not in use.
func (p *probe) unknownDevice() uint64 { return p.DeviceID + 1<<40 }

func countNoun(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// formatLine formats a message with single spaces. The library varies the number of spaces on purpose.
func formatLine(m proto.Message) string {
	return strings.Join(strings.Fields(prototext.MarshalOptions{}.Format(m)), " ")
}

var transport = []Clause{
	{"A6", "Client Arbitration and Controller Replication",
		"Reads, the pipeline config and the capabilities are " +
			"given to anybody, without a stream and without an election", false, func(p *probe) {
			_, err := p.read(tableEntity(&v1.TableEntry{}))
			p.expectStatus("read", err, codes.OK, codes.FailedPrecondition)
			_, err = p.getPipeline(v1.GetForwardingPipelineConfigRequest_COOKIE_ONLY)
			p.expectStatus("config", err, codes.OK)
			_, err = p.client.Capabilities(p.ctx, &v1.CapabilitiesRequest{})
			p.expectStatus("capabilities", err, codes.OK, codes.Unimplemented)
		}},
}

var arbitration = []Clause{
	{"B1", ofMessages, "A first message for an unknown device ends the stream with NOT_FOUND", false, func(p *probe) {
		stream, err := p.client.StreamChannel(p.ctx)
		if err == nil {
			if err = p.sendArbitration(stream, p.unknownDevice(), nil); err == nil {
				err = streamEnd(stream)
			}
		}
		p.expectStatus("stream", err, codes.NotFound)
	}},
	asPrimary("B2", ofMessages, "The election id of another live controller ends the stream with INVALID_ARGUMENT",
		func(p *probe) {
			if other, err := p.open(p.id); err != nil {
				p.expectStatus("stream", err, codes.OK)
			} else {
				p.expectStatus("stream", streamEnd(other), codes.InvalidArgument)
			}
		}),
	{"B6", ofMessages, "A later message for another device ends the stream with FAILED_PRECONDITION", false,
		func(p *probe) {
			stream, _, err := p.announce(nil)
			if err == nil {
				if err = p.sendArbitration(stream, p.unknownDevice(), nil); err == nil {
					err = streamEnd(stream)
				}
			}
			p.expectStatus("stream", err, codes.FailedPrecondition)
		}},
	{"B6.role", ofMessages, "A later message with another role ends the stream with FAILED_PRECONDITION", false,
		func(p *probe) {
			stream, _, err := p.announce(nil)
			if err == nil {
				if err = stream.Send(&v1.StreamMessageRequest{Update: &v1.StreamMessageRequest_Arbitration{Arbitration: &v1.MasterArbitrationUpdate{
					DeviceId: p.DeviceID, Role: &v1.Role{Name: "conformance"}}}}); err == nil {
					err = streamEnd(stream)
				}
			}
			p.expectStatus("stream", err, codes.FailedPrecondition)
		}},
	asPrimary("B7", ofMessages,
		"A later message with the id of another live controller ends the stream with INVALID_ARGUMENT", func(p *probe) {
			backup, _, err := p.announce(p.lower())
			if err == nil {
				if err = p.sendArbitration(backup, p.DeviceID, p.id); err == nil {
					err = streamEnd(backup)
				}
			}
			p.expectStatus("stream", err, codes.InvalidArgument)
		}),
	asPrimary("B8", ofMessages,
		"A backup that raises its id above all others becomes primary, and the old one hears it", func(p *probe) {
			backup, _, err := p.announce(nil)
			if err != nil {
				p.expectStatus("backup", err, codes.OK)
				return
			}
			p.expectStatus("message", p.sendArbitration(backup, p.DeviceID, p.next()), codes.OK)
			p.expectNotice("the old primary", p.stream, codes.AlreadyExists)
			p.expectNotice("the new primary", backup, codes.OK)
		}),
	onEmpty("B9", ofArbitration, "Ids are compared as unsigned numbers of 128 bits", func(p *probe) {
		backup, _, err := p.announce(&v1.Uint128{High: p.id.High - 1, Low: 1<<64 - 1})
		p.expectStatus("a lower high half with the highest low half", err, codes.OK)
		if err == nil {
			p.expectStatus("write", p.write(), codes.OK)
			_ = backup.CloseSend()
		}
	}),
	asPrimary("B9.highest", ofArbitration,
		"Below the highest id that the server ever saw nobody becomes primary, though no primary is there", func(p *probe) {
			backup, _, err := p.announce(nil)
			if err != nil || p.stream.CloseSend() != nil {
				p.fail("no backup, or the primary could not leave: %v", err)
				return
			}
			p.expectNotice("the backup", backup, codes.NotFound)
			p.expectStatus("message", p.sendArbitration(backup, p.DeviceID, p.lower()), codes.OK)
			p.expectNotice("a lower id", backup, codes.NotFound)
		}),
	asPrimary("B10", ofArbitration, "A controller that comes back with the highest id is primary again", func(p *probe) {
		watcher, _, err := p.announce(nil)
		if err != nil || p.stream.CloseSend() != nil {
			p.fail("no watcher, or the primary could not leave: %v", err)
			return
		}
		p.expectNotice("who stays", watcher, codes.NotFound)
		_, again, err := p.announce(p.id)
		p.expectStatus("stream", err, codes.OK)
		p.expectCode("who comes back hears", codes.Code(again.GetStatus().GetCode()), []codes.Code{codes.OK})
	}),
	asPrimary("B11", ofArbitration,
		"When the primary leaves, the next highest controller is not promoted; all hear that nobody is primary",
		func(p *probe) {
			lower := p.id
			second, _, err := p.announce(p.next())
			if err != nil {
				p.expectStatus("second", err, codes.OK)
				return
			}
			p.expectNotice("the first", p.stream, codes.AlreadyExists)
			p.expectStatus("leave", second.CloseSend(), codes.OK)
			p.expectNotice("the first", p.stream, codes.NotFound)
			p.id = lower
			p.expectStatus("its write", p.write(), codes.PermissionDenied)
		}),
	asPrimary("B12", ofArbitration, "A primary that announces a lower id is primary no more, and nobody is",
		func(p *probe) {
			p.expectStatus("message", p.sendArbitration(p.stream, p.DeviceID, p.lower()), codes.OK)
			p.expectNotice("it", p.stream, codes.NotFound)
			p.expectStatus("its write", p.write(), codes.PermissionDenied)
		}),
	{"B13", ofUnset, "Without an election id a controller is never primary, and any number of them may be there",
		false, func(p *probe) {
			for _, who := range []string{"the first", "the second"} {
				_, answer, err := p.announce(nil)
				if err != nil {
					p.expectStatus(who, err, codes.OK)
					return
				}
				p.expectCode(who+" hears", codes.Code(answer.GetStatus().GetCode()), []codes.Code{codes.NotFound,
					codes.AlreadyExists})
			}
		}},
	asPrimary("B14", ofMessages, "A primary that announces the same again is answered as after an election",
		func(p *probe) {
			p.expectStatus("message", p.sendArbitration(p.stream, p.DeviceID, p.id), codes.OK)
			p.expectNotice("it", p.stream, codes.OK)
		}),
	asPrimary("B16", ofNotifications, "A new backup is told to itself only", func(p *probe) {
		_, _, err := p.announce(nil)
		p.expectStatus("backup", err, codes.OK)
		p.expectStatus("message", p.sendArbitration(p.stream, p.DeviceID, p.id), codes.OK)
		if a := p.expectNotice("the primary", p.stream, codes.OK); a != nil {
			p.expectStatus("message", p.sendArbitration(p.stream, p.DeviceID, p.lower()), codes.OK)
			p.expectNotice("and next", p.stream, codes.NotFound) // a notification to the backup would have arrived first
		}
	}),
	asPrimary("B17", ofNotifications, "Notifications name the highest id that the server has seen", func(p *probe) {
		_, answer, err := p.announce(nil)
		p.expectStatus("stream", err, codes.OK)
		p.expect("the primary's id", proto.Equal(answer.GetElectionId(), p.id), "another id: "+formatLine(answer))
	}),
	asPrimary("B18", ofNotifications,
		"The primary is told OK, a backup ALREADY_EXISTS, and NOT_FOUND where nobody is primary", func(p *probe) {
			p.seen = append(p.seen, "the primary hears: OK")
			backup, answer, err := p.announce(nil)
			p.expectStatus("stream", err, codes.OK)
			p.expectCode("a backup hears", codes.Code(answer.GetStatus().GetCode()), []codes.Code{codes.AlreadyExists})
			p.expectStatus("leave", p.stream.CloseSend(), codes.OK)
			p.expectNotice("afterwards it", backup, codes.NotFound)
		}),
	{"B22", ofMessages, "A pipeline for a role that nobody has is NOT_FOUND", false, func(p *probe) {
		_, err := p.client.SetForwardingPipelineConfig(p.ctx,
			&v1.SetForwardingPipelineConfigRequest{DeviceId: p.DeviceID, Role: "conformance",
				Action: v1.SetForwardingPipelineConfigRequest_VERIFY, Config: p.Config})
		p.expectStatus("pipeline", err, codes.NotFound)
	}},
}

const (
	verify    = v1.SetForwardingPipelineConfigRequest_VERIFY
	save      = v1.SetForwardingPipelineConfigRequest_VERIFY_AND_SAVE
	push      = v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT
	commit    = v1.SetForwardingPipelineConfigRequest_COMMIT
	reconcile = v1.SetForwardingPipelineConfigRequest_RECONCILE_AND_COMMIT
)

var pipeline = []Clause{
	{"C1", ofSet, "An unknown device is NOT_FOUND", false, func(p *probe) {
		_, err := p.client.SetForwardingPipelineConfig(p.ctx,
			&v1.SetForwardingPipelineConfigRequest{DeviceId: p.unknownDevice(), Action: verify, Config: p.Config})
		p.expectStatus("pipeline", err, codes.NotFound)
	}},
	{"C1.primary", ofSet, "A pipeline from a controller that is not primary is PERMISSION_DENIED", false, func(p *probe) {
		p.expectStatus("pipeline", p.setPipeline(verify, p.Config), codes.PermissionDenied)
	}},
	onEmpty("C2", ofSet, "VERIFY changes nothing", func(p *probe) {
		p.expectStatus("insert", p.write(insertEntry(p.shape.entry(1, 1))), codes.OK)
		other := p.changedConfig(
			func(c *v1.ForwardingPipelineConfig) { c.Cookie = &v1.ForwardingPipelineConfig_Cookie{Cookie: 4711} })
		p.expectStatus("verify", p.setPipeline(verify, other), codes.OK)
		got, err := p.getPipeline(v1.GetForwardingPipelineConfigRequest_COOKIE_ONLY)
		p.expectStatus("config", err, codes.OK)
		p.expect("the cookie is the old one", proto.Equal(got.GetCookie(), p.Config.GetCookie()), "the cookie is another one")
		p.expectEntries(1)
	}),
	onEmpty("C2.missing", ofSet,
		"Without a config VERIFY, VERIFY_AND_SAVE, VERIFY_AND_COMMIT and RECONCILE_AND_COMMIT are INVALID_ARGUMENT",
		func(p *probe) {
			p.expectStatus("verify", p.setPipeline(verify, nil), codes.InvalidArgument)
			p.expectStatus("save", p.setPipeline(save, nil), codes.InvalidArgument)
			p.expectStatus("push", p.setPipeline(push, nil), codes.InvalidArgument)
			p.expectStatus("reconcile", p.setPipeline(reconcile, nil), codes.InvalidArgument, codes.Unimplemented)
		}),
	onEmpty("C2.invalid", ofSet, "A P4Info that has one id twice is INVALID_ARGUMENT", func(p *probe) {
		twice := p.changedConfig(func(c *v1.ForwardingPipelineConfig) {
			c.P4Info.Tables = append(c.P4Info.Tables,
				c.P4Info.Tables[0])
		})
		p.expectStatus("verify", p.setPipeline(verify, twice), codes.InvalidArgument)
	}),
	onEmpty("C3", ofSet, "VERIFY_AND_SAVE lets later requests mean the saved pipeline, and COMMIT brings it and what "+
		"was written since", func(p *probe) {
		if err := p.setPipeline(save, p.Config); codeOf(err) == codes.Unimplemented {
			p.skip("save: UNIMPLEMENTED")
			return
		} else {
			p.expectStatus("save", err, codes.OK)
		}
		p.expectStatus("insert", p.write(insertEntry(p.shape.entry(1, 1)), insertEntry(p.shape.entry(2, 2))), codes.OK)
		p.expectStatus("commit", p.setPipeline(commit, nil), codes.OK)
		p.expectEntries(2)
	}),
	onEmpty("C4", ofSet, "COMMIT without a saved config is NOT_FOUND", func(p *probe) {
		p.expectStatus("commit", p.setPipeline(commit, nil), codes.NotFound, codes.Unimplemented)
	}),
	onEmpty("C4.config", ofSet, "COMMIT with a config in the request is INVALID_ARGUMENT", func(p *probe) {
		p.expectStatus("commit", p.setPipeline(commit, p.Config), codes.InvalidArgument, codes.Unimplemented)
	}),
	onEmpty("C5", ofSet, "VERIFY_AND_COMMIT clears the forwarding state", func(p *probe) {
		p.expectStatus("insert", p.write(insertEntry(p.shape.entry(1, 1))), codes.OK)
		p.expectStatus("push", p.setPipeline(push, p.Config), codes.OK)
		p.expectEntries(0)
	}),
	{"C6", ofSet, "RECONCILE_AND_COMMIT preserves the forwarding state", true,
		func(p *probe) { p.expectReconcile(false) }},
	{"C6.saved", ofSet, "RECONCILE_AND_COMMIT after VERIFY_AND_SAVE preserves the forwarding state of the device",
		true, func(p *probe) { p.expectReconcile(true) }},
	onEmpty("C7", ofSet, "A request without an action is refused", func(p *probe) {
		p.expectStatus("pipeline", p.setPipeline(v1.SetForwardingPipelineConfigRequest_UNSPECIFIED, p.Config),
			codes.InvalidArgument, codes.Unimplemented)
	}),
	{"C9", ofGet, "An unknown device is NOT_FOUND", false, func(p *probe) {
		_, err := p.client.GetForwardingPipelineConfig(p.ctx,
			&v1.GetForwardingPipelineConfigRequest{DeviceId: p.unknownDevice()})
		p.expectStatus("config", err, codes.NotFound)
	}},
	onEmpty("C10", ofGet, "Each response type fills exactly the parts that it names", func(p *probe) {
		for _, c := range []struct {
			kind         v1.GetForwardingPipelineConfigRequest_ResponseType
			info, device bool
		}{
			{v1.GetForwardingPipelineConfigRequest_ALL, true, true},
			{v1.GetForwardingPipelineConfigRequest_COOKIE_ONLY, false, false},
			{v1.GetForwardingPipelineConfigRequest_P4INFO_AND_COOKIE, true, false},
			{v1.GetForwardingPipelineConfigRequest_DEVICE_CONFIG_AND_COOKIE, false, true},
		} {
			got, err := p.getPipeline(c.kind)
			if err != nil {
				p.expectStatus(c.kind.String(), err, codes.OK)
				return
			}
			// A server may withhold the device config, but must not return it unasked.
			good := (got.GetP4Info() != nil) == c.info && (c.device || len(got.GetP4DeviceConfig()) == 0)
			p.expect(c.kind.String()+" as named", good, c.kind.String()+" fills other parts")
		}
	}),
	onEmpty("C11", ofGet, "Cookie and P4Info come back as they were pushed", func(p *probe) {
		marked := p.changedConfig(
			func(c *v1.ForwardingPipelineConfig) { c.Cookie = &v1.ForwardingPipelineConfig_Cookie{Cookie: 4711} })
		p.expectStatus("push", p.setPipeline(push, marked), codes.OK)
		got, err := p.getPipeline(v1.GetForwardingPipelineConfigRequest_ALL)
		p.expectStatus("config", err, codes.OK)
		p.expect("cookie", got.GetCookie().GetCookie() == 4711, "another cookie")
		p.expect("P4Info", proto.Equal(got.GetP4Info(), p.Config.P4Info), "another P4Info")
	}),
	onEmpty("C11.unset", ofGet, "A cookie that was not set stays unset", func(p *probe) {
		p.expectStatus("push", p.setPipeline(push,
			p.changedConfig(func(c *v1.ForwardingPipelineConfig) { c.Cookie = nil })), codes.OK)
		got, err := p.getPipeline(v1.GetForwardingPipelineConfigRequest_COOKIE_ONLY)
		p.expectStatus("config", err, codes.OK)
		p.expect("no cookie", got.GetCookie() == nil, "a cookie that nobody set")
	}),
}

// expectReconcile checks that a reconciliation keeps two entries. saved selects whether the config was saved before.
func (p *probe) expectReconcile(saved bool) {
	if p.leadEmpty(); p.isOver() {
		return
	}
	p.expectStatus("insert", p.write(insertEntry(p.shape.entry(1, 1)), insertEntry(p.shape.entry(2, 2))), codes.OK)
	if saved {
		if err := p.setPipeline(save, p.Config); codeOf(err) == codes.Unimplemented {
			p.skip("save: UNIMPLEMENTED")
			return
		} else {
			p.expectStatus("save", err, codes.OK)
		}
	}
	if err := p.setPipeline(reconcile, p.Config); codeOf(err) == codes.Unimplemented {
		p.skip("reconcile: UNIMPLEMENTED")
		return
	} else {
		p.expectStatus("reconcile", err, codes.OK)
	}
	p.expectEntries(2)
}

const ofStream = "Packet I/O"

var semantic = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

var streams = []Clause{
	asPrimary("J1", ofStream,
		"A packet that can't be sent is dropped, with or without a StreamError, and the stream goes on", func(p *probe) {
			p.sendPacket(p.stream, p.id, codes.InvalidArgument, codes.Unimplemented)
		}),
	{"J1.backup", ofStream, "A packet of a controller that is not primary is dropped, with or without " +
		"PERMISSION_DENIED, and the stream goes on", false, func(p *probe) {
		backup, _, err := p.announce(nil)
		if err != nil {
			p.expectStatus("backup", err, codes.OK)
			return
		}
		p.sendPacket(backup, nil, codes.PermissionDenied)
	}},
	{"J2", "Capabilities RPC", "The version of the interface is a semantic version", false, func(p *probe) {
		got, err := p.client.Capabilities(p.ctx, &v1.CapabilitiesRequest{})
		if codeOf(err) == codes.Unimplemented {
			p.skip("capabilities: UNIMPLEMENTED, which means 1.0")
			return
		}
		p.expectStatus("capabilities", err, codes.OK)
		p.expect(got.GetP4RuntimeApiVersion(), semantic.MatchString(got.GetP4RuntimeApiVersion()), "version "+
			got.GetP4RuntimeApiVersion())
	}},
	{"J2.device", "Capabilities RPC", "Since 1.5 the capabilities of an unknown device are NOT_FOUND", false,
		func(p *probe) {
			got, err := p.client.Capabilities(p.ctx, &v1.CapabilitiesRequest{})
			if v := got.GetP4RuntimeApiVersion(); err != nil || strings.HasPrefix(v, "1.4.") || strings.HasPrefix(v, "1.3.") {
				p.skip("version " + v)
				return
			}
			_, err = p.client.Capabilities(p.ctx, &v1.CapabilitiesRequest{DeviceId: p.unknownDevice()})
			p.expectStatus("capabilities", err, codes.NotFound)
		}},
}

// sendPacket sends a packet without metadata, followed by an arbitration message. The answer to the latter shows that
// the stream is open and that no answer to the packet is pending. The server need not answer the packet, but any answer
// must be a StreamError.
func (p *probe) sendPacket(stream v1.P4Runtime_StreamChannelClient, id *v1.Uint128, want ...codes.Code) {
	err := stream.Send(&v1.StreamMessageRequest{
		Update: &v1.StreamMessageRequest_Packet{Packet: &v1.PacketOut{Payload: []byte("conformance")}}})
	if err == nil {
		err = p.sendArbitration(stream, p.DeviceID, id)
	}
	for err == nil {
		var m *v1.StreamMessageResponse
		if m, err = stream.Recv(); err != nil {
			break
		}
		if m.GetArbitration() != nil {
			p.seen = append(p.seen, "the stream goes on")
			return
		}
		p.expect("a StreamError about a packet", m.GetError().GetPacketOut() != nil, "another message: "+formatLine(m))
		p.expectCode("packet", codes.Code(m.GetError().GetCanonicalCode()), want)
	}
	p.expectStatus("stream", err, codes.OK)
}

func codeOf(err error) codes.Code { return status.Code(err) }
