package agent

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/olafctl/olaf/p4ctl/p4"
)

// bench is an agent on a real socket and one controller that writes text-proto.
type bench struct {
	*testing.T
	ctx     context.Context
	backend *card
	client  v1.P4RuntimeClient
	stream  v1.P4Runtime_StreamChannelClient
}

// newBench starts an agent with a primary of id (0, 1), and with a committed pipeline unless bare is set.
func newBench(t *testing.T, bare bool) *bench {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(stop)
	b := &bench{T: t, ctx: ctx, backend: newCard()}
	a, err := New(Options{Backend: b.backend, Profile: p4.Lab(), MaxStreams: 3,
		Roles: map[string]Role{"reader": {Tables: []uint32{p4.TableWorkers}}}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := Listen("unix:"+filepath.Join(t.TempDir(), "s"), false)
	if err != nil {
		t.Fatal(err)
	}
	running := a.Serve(l, nil)
	conn, err := grpc.NewClient(running.Target(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); running.Close() })
	b.client = v1.NewP4RuntimeClient(conn)
	b.stream = b.elect("device_id: 1 election_id { low: 1 }")
	if !bare {
		b.code(codes.OK, b.set("VERIFY_AND_COMMIT", labConfig()))
	}
	return b
}

// Context returns the context that bounds all waits.
func (b *bench) Context() context.Context { return b.ctx }

func labConfig() *v1.ForwardingPipelineConfig {
	return &v1.ForwardingPipelineConfig{P4Info: p4.Lab().Info(), P4DeviceConfig: []byte("build"),
		Cookie: &v1.ForwardingPipelineConfig_Cookie{Cookie: 7}}
}

// text parses text-proto into m.
func text[M proto.Message](t testing.TB, m M, s string) M {
	t.Helper()
	if err := prototext.Unmarshal([]byte(s), m); err != nil {
		t.Fatalf("%v in %s", err, s)
	}
	return m
}

// elect opens a stream and waits for the answer.
func (b *bench) elect(arbitration string) v1.P4Runtime_StreamChannelClient {
	b.Helper()
	stream, err := b.client.StreamChannel(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.announce(stream, arbitration)
	if _, err := stream.Recv(); err != nil {
		b.Fatal(err)
	}
	return stream
}

func (b *bench) announce(stream v1.P4Runtime_StreamChannelClient, arbitration string) {
	b.Helper()
	if err := stream.Send(text(b, new(v1.StreamMessageRequest), "arbitration { "+arbitration+" }")); err != nil {
		b.Fatal(err)
	}
}

// set pushes a pipeline as the primary.
func (b *bench) set(action string, config *v1.ForwardingPipelineConfig) error {
	b.Helper()
	req := text(b, new(v1.SetForwardingPipelineConfigRequest), "device_id: 1 election_id { low: 1 } action: "+action)
	req.Config = config
	_, err := b.client.SetForwardingPipelineConfig(b.Context(), req)
	return err
}

// write sends a WriteRequest from the primary with these additional fields.
func (b *bench) write(fields string) error {
	b.Helper()
	_, err := b.client.Write(b.Context(), text(b, new(v1.WriteRequest), "device_id: 1 election_id { low: 1 } "+fields))
	return err
}

// read returns the entities for a ReadRequest with these fields.
func (b *bench) read(fields string) ([]*v1.Entity, error) {
	b.Helper()
	stream, err := b.client.Read(b.Context(), text(b, new(v1.ReadRequest), "device_id: 1 "+fields))
	if err != nil {
		b.Fatal(err)
	}
	var all []*v1.Entity
	for {
		m, err := stream.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return all, err
		}
		all = append(all, m.Entities...)
	}
}

func (b *bench) code(want codes.Code, err error) {
	b.Helper()
	if status.Code(err) != want {
		b.Errorf("got %v, want %v", err, want)
	}
}

// updateCodes checks that a batch failed with UNKNOWN and these codes, one per update.
func (b *bench) updateCodes(err error, want ...codes.Code) {
	b.Helper()
	st := status.Convert(err)
	if st.Code() != codes.Unknown {
		b.Errorf("top level is %v, want Unknown: %v", st.Code(), err)
	}
	var got []codes.Code
	for _, d := range st.Details() {
		e := d.(*v1.Error)
		got = append(got, codes.Code(e.CanonicalCode))
		if e.CanonicalCode == 0 && (e.Message != "" || e.Space != "") {
			b.Errorf("a success carries %v", e)
		}
		if e.CanonicalCode != 0 && e.Message == "" {
			b.Errorf("a failure says nothing: %v", e)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("per update: %s", diff)
	}
}

// workerEntry returns the text of an entry in the table of workers. key is a byte string in text-proto, such as
// \000\000\001.
func workerEntry(key string, cluster, worker int) string {
	return fmt.Sprintf(`table_entry { table_id: 0x02000002 match { field_id: 1 exact { value: "%s" } }
		action { action { action_id: 0x01000001 params { param_id: 1 value: "\%03o" } params { param_id: 2 value: "\%03o" } } } }`, key, cluster, worker)
}

func update(op, entity string) string {
	return "updates { type: " + op + " entity { " + entity + " } } "
}

func groupEntry(fields string) string {
	return "packet_replication_engine_entry { multicast_group_entry { " + fields + " } }"
}

const key1, key2, key3 = `\n\000\000\001`, `\n\000\000\002`, `\n\000\000\003`

// workers returns the number of entries in the table of workers.
func (b *bench) workers() int {
	b.Helper()
	all, err := b.read("entities { table_entry { table_id: 0x02000002 } }")
	if err != nil {
		b.Fatal(err)
	}
	return len(all)
}

// TestTransport checks part A of the checklist.
func TestTransport(t *testing.T) {
	t.Run("A4 A6 reads need no stream and no election", func(t *testing.T) {
		b := newBench(t, false)
		if err := b.stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if _, err := b.read("entities { table_entry {} }"); err != nil {
			t.Error(err)
		}
		_, err := b.client.GetForwardingPipelineConfig(b.Context(), &v1.GetForwardingPipelineConfigRequest{DeviceId: 1})
		b.code(codes.OK, err)
	})
	t.Run("A5 messages above 4 MiB are received", func(t *testing.T) {
		b := newBench(t, true)
		config := labConfig()
		config.P4DeviceConfig = make([]byte, 9<<20)
		b.code(codes.OK, b.set("VERIFY", config))
	})
	t.Run("only loopback without TLS", func(t *testing.T) {
		for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0"} {
			if l, err := Listen(address, false); !errors.Is(err, ErrInsecure) {
				t.Errorf("%s: %v, %v", address, l, err)
			}
		}
		l, err := Listen("0.0.0.0:0", true)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	})
	t.Run("a socket that a dead process left is replaced, a live one is not", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s")
		dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		dead.SetUnlinkOnClose(false)
		dead.Close()
		live, err := Listen("unix:"+path, false)
		if err != nil {
			t.Fatal(err)
		}
		defer live.Close()
		if _, err := Listen("unix:"+path, false); err == nil || !strings.Contains(err.Error(), "in use") {
			t.Errorf("a second agent: %v", err)
		}
	})
}

// TestStream checks the rules in parts B and J that are visible only on a stream.
func TestStream(t *testing.T) {
	t.Run("idle streams shut nobody out", func(t *testing.T) {
		b := newBench(t, false)
		open := func(announcement string) (v1.P4Runtime_StreamChannelClient, *v1.StreamMessageResponse, error) {
			stream, err := b.client.StreamChannel(b.Context())
			if err != nil {
				t.Fatal(err)
			}
			b.announce(stream, announcement)
			m, err := stream.Recv()
			return stream, m, err
		}
		var idle []v1.P4Runtime_StreamChannelClient
		for range 2 { // two more clients besides the primary; three are allowed
			stream, _, err := open("device_id: 1")
			b.code(codes.OK, err)
			idle = append(idle, stream)
		}
		_, _, err := open("device_id: 1")
		b.code(codes.ResourceExhausted, err)
		if !strings.Contains(err.Error(), "announce an election id to make room") {
			t.Errorf("what to do is not said: %v", err)
		}
		_, m, err := open("device_id: 1 election_id { low: 2 }")
		if b.code(codes.OK, err); codes.Code(m.GetArbitration().GetStatus().GetCode()) != codes.OK {
			t.Errorf("not primary: %v", m)
		}
		for err = nil; err == nil; {
			_, err = idle[0].Recv() // possibly a notice of another primary, then the error
		}
		b.code(codes.ResourceExhausted, err)
		if !strings.Contains(err.Error(), "was closed in favour of one that did") {
			t.Errorf("why it ended is not said: %v", err)
		}
		m, err = idle[1].Recv()
		if b.code(codes.OK, err); codes.Code(m.GetArbitration().GetStatus().GetCode()) != codes.AlreadyExists {
			t.Errorf("the next one hears %v", m)
		}
	})
	t.Run("B15 the new primary's OK means that the old one's writes are done", func(t *testing.T) {
		b := newBench(t, false)
		b.backend.hold = make(chan struct{})
		b.backend.reached = make(chan struct{})
		written := make(chan error, 1)
		go func() { written <- b.write(update("INSERT", workerEntry(key1, 1, 1))) }()
		select {
		case <-b.backend.reached:
		case err := <-written:
			t.Fatalf("the write never reached the device: %v", err)
		}
		next, err := b.client.StreamChannel(b.Context())
		if err != nil {
			t.Fatal(err)
		}
		b.announce(next, "device_id: 1 election_id { low: 2 }")
		old, err := b.stream.Recv() // the old primary is notified while its write is still in flight
		if err != nil || codes.Code(old.GetArbitration().Status.Code) != codes.AlreadyExists {
			t.Fatalf("the old primary hears %v, %v", old, err)
		}
		answered := make(chan struct{})
		go func() { next.Recv(); close(answered) }()
		for range 20 { // round trips on the same connection: an early answer would be here by then
			_, err := b.client.Capabilities(b.Context(), new(v1.CapabilitiesRequest))
			b.code(codes.OK, err)
		}
		select {
		case <-answered:
			t.Fatal("the new primary was told while a write was in flight")
		default:
		}
		close(b.backend.hold)
		b.code(codes.OK, <-written)
		<-answered
		b.code(codes.PermissionDenied, b.write(update("INSERT", workerEntry(key2, 1, 1))))
	})
	t.Run("B18 B20 codes reach the streams, and a fault ends one", func(t *testing.T) {
		b := newBench(t, true)
		backup := b.elect("device_id: 1")
		b.announce(backup, "device_id: 3")
		_, err := backup.Recv()
		b.code(codes.FailedPrecondition, err)
		unknown, err := b.client.StreamChannel(b.Context())
		if err != nil {
			t.Fatal(err)
		}
		b.announce(unknown, "device_id: 3")
		_, err = unknown.Recv()
		b.code(codes.NotFound, err)
	})
	t.Run("B11 backups hear that the primary is gone", func(t *testing.T) {
		b := newBench(t, true)
		backup := b.elect("device_id: 1")
		if err := b.stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		m, err := backup.Recv()
		if err != nil {
			t.Fatal(err)
		}
		want := text(t, new(v1.MasterArbitrationUpdate),
			`device_id: 1 election_id { low: 1 } status { code: 5 message: "there is no primary; announce at least (0, 1)" }`)
		if diff := cmp.Diff(want, m.GetArbitration(), protocmp.Transform()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("J1 messages without use are answered with a StreamError, and the stream goes on", func(t *testing.T) {
		b := newBench(t, true)
		for message, arm := range map[string]string{"packet { payload: 'x' }": "packet_out",
			"digest_ack { digest_id: 1 }": "digest_list_ack", "other {}": "other", "": "other"} {
			if err := b.stream.Send(text(t, new(v1.StreamMessageRequest), message)); err != nil {
				t.Fatal(err)
			}
			m, err := b.stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			e := m.GetError().ProtoReflect()
			if got := e.WhichOneof(e.Descriptor().Oneofs().ByName("details")); got == nil || string(got.Name()) != arm ||
				m.GetError().CanonicalCode != int32(codes.InvalidArgument) {
				t.Errorf("%s is answered with %v", message, m)
			}
		}
		b.announce(b.stream, "device_id: 1 election_id { low: 1 }")
		if m, err := b.stream.Recv(); err != nil || m.GetArbitration() == nil {
			t.Errorf("after errors the stream gives %v, %v", m, err)
		}
	})
	t.Run("J2 capabilities", func(t *testing.T) {
		b := newBench(t, true)
		got, err := b.client.Capabilities(b.Context(), &v1.CapabilitiesRequest{})
		if err != nil || got.P4RuntimeApiVersion != "1.5.0" {
			t.Errorf("%v, %v", got, err)
		}
		_, err = b.client.Capabilities(b.Context(), &v1.CapabilitiesRequest{DeviceId: 4})
		b.code(codes.NotFound, err)
	})
	t.Run("a controller that does not read loses its stream only", func(t *testing.T) {
		box := newOutbox(t.Context())
		for range outboxSize + 2 {
			box.put(new(v1.StreamMessageResponse))
		}
		<-box.overflow
	})
}

// TestPipelineConfig checks part C of the checklist.
func TestPipelineConfig(t *testing.T) {
	get := func(b *bench, kind v1.GetForwardingPipelineConfigRequest_ResponseType) *v1.ForwardingPipelineConfig {
		b.Helper()
		got, err := b.client.GetForwardingPipelineConfig(b.Context(),
			&v1.GetForwardingPipelineConfigRequest{DeviceId: 1, ResponseType: kind})
		if err != nil {
			b.Fatal(err)
		}
		return got.Config
	}
	t.Run("C1 order of checks", func(t *testing.T) {
		b := newBench(t, true)
		_, err := b.client.SetForwardingPipelineConfig(b.Context(), &v1.SetForwardingPipelineConfigRequest{DeviceId: 9})
		b.code(codes.NotFound, err)
		_, err = b.client.SetForwardingPipelineConfig(b.Context(), &v1.SetForwardingPipelineConfigRequest{DeviceId: 1,
			Role: "x"})
		b.code(codes.NotFound, err)
		_, err = b.client.SetForwardingPipelineConfig(b.Context(), &v1.SetForwardingPipelineConfigRequest{DeviceId: 1})
		b.code(codes.PermissionDenied, err)
	})
	t.Run("C2 VERIFY leaves no trace, and refuses what can't be", func(t *testing.T) {
		b := newBench(t, true)
		b.code(codes.OK, b.set("VERIFY", labConfig()))
		if got := get(b, v1.GetForwardingPipelineConfigRequest_ALL); got != nil || b.backend.commits != 0 {
			t.Errorf("VERIFY left %v and %d commits", got, b.backend.commits)
		}
		b.code(codes.InvalidArgument, b.set("VERIFY", nil))
		b.code(codes.InvalidArgument, b.set("VERIFY", &v1.ForwardingPipelineConfig{}))
		b.backend.refusePipeline = errors.New("wrong build")
		b.code(codes.InvalidArgument, b.set("VERIFY", labConfig()))
	})
	t.Run("C2 a P4Info of another shape", func(t *testing.T) {
		b := newBench(t, true)
		for name, spoil := range map[string]func(*v1.ForwardingPipelineConfig){
			"missing table": func(c *v1.ForwardingPipelineConfig) { c.P4Info.Tables = c.P4Info.Tables[1:] },
			"nil table":     func(c *v1.ForwardingPipelineConfig) { c.P4Info.Tables[0] = nil },
			"extra action": func(c *v1.ForwardingPipelineConfig) {
				a := proto.CloneOf(c.P4Info.Actions[0])
				a.Preamble.Id++
				c.P4Info.Actions = append(c.P4Info.Actions, a)
			},
			"id twice": func(c *v1.ForwardingPipelineConfig) {
				c.P4Info.Tables = append(c.P4Info.Tables,
					c.P4Info.Tables[0])
			},
			"key width":        func(c *v1.ForwardingPipelineConfig) { c.P4Info.Tables[0].MatchFields[0].Bitwidth = 64 },
			"parameter width":  func(c *v1.ForwardingPipelineConfig) { c.P4Info.Actions[0].Params[0].Bitwidth = 8 },
			"beyond the build": func(c *v1.ForwardingPipelineConfig) { c.P4Info.Tables[1].Size = 1025 },
			"groups": func(c *v1.ForwardingPipelineConfig) {
				c.P4Info.PkgInfo.PlatformProperties.MulticastGroupTableSize = 9999
			},
			"twin on a lab": func(c *v1.ForwardingPipelineConfig) { c.P4Info = p4.Twin().Info() },
		} {
			t.Run(name, func(t *testing.T) {
				config := labConfig()
				spoil(config)
				b.code(codes.InvalidArgument, b.set("VERIFY_AND_COMMIT", config))
			})
		}
		smaller := labConfig()
		smaller.P4Info.Tables[1].Size = 2
		smaller.P4Info.Tables[1].Preamble.Doc = nil
		smaller.P4Info.PkgInfo = nil
		b.code(codes.OK, b.set("VERIFY_AND_COMMIT", smaller))
	})
	t.Run("C3 C4 save, write, commit", func(t *testing.T) {
		b := newBench(t, false)
		b.code(codes.OK, b.write(update("INSERT", workerEntry(key1, 1, 1))))
		b.code(codes.OK, b.set("VERIFY_AND_SAVE", labConfig()))
		if b.workers() != 0 {
			t.Error("the saved pipeline starts with entries")
		}
		if b.backend.size() != 1 {
			t.Error("saving touched the device")
		}
		b.code(codes.OK, b.write(update("INSERT", workerEntry(key2, 2, 2))+update("INSERT", workerEntry(key3, 3, 3))))
		if b.backend.size() != 1 {
			t.Error("a write to the saved pipeline reached the device")
		}
		b.code(codes.InvalidArgument, b.set("COMMIT", labConfig()))
		b.code(codes.OK, b.set("COMMIT", nil))
		if b.backend.size() != 2 || b.workers() != 2 {
			t.Errorf("after COMMIT the device holds %d entries, reads show %d; want 2", b.backend.size(), b.workers())
		}
		b.code(codes.NotFound, b.set("COMMIT", nil))
	})
	t.Run("C4 nothing saved", func(t *testing.T) {
		b := newBench(t, true)
		b.code(codes.NotFound, b.set("COMMIT", nil))
	})
	t.Run("C5 VERIFY_AND_COMMIT clears", func(t *testing.T) {
		b := newBench(t, false)
		b.code(codes.OK, b.write(update("INSERT", workerEntry(key1, 1, 1))))
		b.code(codes.OK, b.set("VERIFY_AND_COMMIT", labConfig()))
		if b.workers() != 0 || b.backend.size() != 0 {
			t.Error("entries survived")
		}
	})
	t.Run("C5 a commit that fails leaves what was there", func(t *testing.T) {
		b := newBench(t, false)
		b.code(codes.OK, b.write(update("INSERT", workerEntry(key1, 1, 1))))
		b.backend.failCommits = 1
		b.code(codes.Internal, b.set("VERIFY_AND_COMMIT", labConfig()))
		if b.workers() != 1 || b.backend.size() != 1 {
			t.Errorf("reads show %d entries, the device holds %d", b.workers(), b.backend.size())
		}
		b.code(codes.OK, b.set("VERIFY_AND_SAVE", labConfig()))
		b.code(codes.OK, b.set("VERIFY_AND_SAVE", labConfig()))
		b.backend.failCommits = 1
		b.code(codes.Internal, b.set("COMMIT", nil))
		if b.backend.size() != 1 {
			t.Errorf("after a failed COMMIT the device holds %d entries", b.backend.size())
		}
		b.backend.failCommits = 2
		b.code(codes.DataLoss, b.set("VERIFY_AND_COMMIT", labConfig()))
	})
	t.Run("C6 RECONCILE_AND_COMMIT keeps", func(t *testing.T) {
		b := newBench(t, false)
		b.code(codes.OK, b.write(update("INSERT", workerEntry(key1, 1, 1))+update("INSERT", workerEntry(key2, 1, 2))))
		b.code(codes.InvalidArgument, b.set("RECONCILE_AND_COMMIT", nil))
		b.code(codes.OK, b.set("RECONCILE_AND_COMMIT", labConfig()))
		if b.workers() != 2 {
			t.Error("entries are gone")
		}
		small := labConfig()
		small.P4Info.Tables[1].Size = 1
		b.code(codes.InvalidArgument, b.set("RECONCILE_AND_COMMIT", small))
		if b.workers() != 2 {
			t.Error("a refused reconcile lost entries")
		}
	})
	t.Run("C7 no action", func(t *testing.T) {
		b := newBench(t, true)
		b.code(codes.InvalidArgument, b.set("UNSPECIFIED", labConfig()))
		b.code(codes.InvalidArgument, b.set("17", labConfig()))
	})
	t.Run("C9 C10 C11 get", func(t *testing.T) {
		b := newBench(t, true)
		_, err := b.client.GetForwardingPipelineConfig(b.Context(), &v1.GetForwardingPipelineConfigRequest{DeviceId: 2})
		b.code(codes.NotFound, err)
		if got := get(b, v1.GetForwardingPipelineConfigRequest_ALL); got != nil {
			t.Errorf("before a config: %v", got)
		}
		full := labConfig()
		b.code(codes.OK, b.set("VERIFY_AND_COMMIT", full))
		for kind, want := range map[v1.GetForwardingPipelineConfigRequest_ResponseType]*v1.ForwardingPipelineConfig{
			v1.GetForwardingPipelineConfigRequest_ALL:               full,
			v1.GetForwardingPipelineConfigRequest_COOKIE_ONLY:       {Cookie: full.Cookie},
			v1.GetForwardingPipelineConfigRequest_P4INFO_AND_COOKIE: {P4Info: full.P4Info, Cookie: full.Cookie},
			v1.GetForwardingPipelineConfigRequest_DEVICE_CONFIG_AND_COOKIE: {P4DeviceConfig: full.P4DeviceConfig,
				Cookie: full.Cookie},
		} {
			if diff := cmp.Diff(want, get(b, kind), protocmp.Transform()); diff != "" {
				t.Errorf("%v: %s", kind, diff)
			}
		}
		full.Cookie = nil
		b.code(codes.OK, b.set("VERIFY_AND_COMMIT", full))
		if got := get(b, v1.GetForwardingPipelineConfigRequest_COOKIE_ONLY); got.Cookie != nil {
			t.Errorf("an unset cookie comes back as %v", got.Cookie)
		}
	})
	t.Run("B23 a role without the pipeline", func(t *testing.T) {
		b := newBench(t, true)
		b.elect(`device_id: 1 election_id { low: 1 } role { name: "reader" }`)
		_, err := b.client.SetForwardingPipelineConfig(b.Context(), &v1.SetForwardingPipelineConfigRequest{DeviceId: 1,
			Role: "reader", ElectionId: &v1.Uint128{Low: 1},
			Action: v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, Config: labConfig()})
		b.code(codes.PermissionDenied, err)
	})
}

// TestWrite checks part D of the checklist.
func TestWrite(t *testing.T) {
	t.Run("D1 order of checks", func(t *testing.T) {
		b := newBench(t, true)
		one := update("INSERT", workerEntry(key1, 1, 1))
		send := func(fields string) error {
			_, err := b.client.Write(b.Context(), text(t, new(v1.WriteRequest), fields+one))
			return err
		}
		b.code(codes.NotFound, send("device_id: 5 election_id { low: 1 } "))
		b.code(codes.NotFound, send("device_id: 1 role: 'x' election_id { low: 1 } "))
		b.code(codes.PermissionDenied, send("device_id: 1 election_id { low: 2 } "))
		b.code(codes.PermissionDenied, send("device_id: 1 "))
		err := send("device_id: 1 election_id { low: 1 } ")
		b.code(codes.FailedPrecondition, err)
		if n := len(status.Convert(err).Details()); n != 0 {
			t.Errorf("%d details for an RPC-wide error", n)
		}
	})
	t.Run("D2 D3 a batch", func(t *testing.T) {
		b := newBench(t, false)
		b.code(codes.OK, b.write(""))
		b.code(codes.OK, b.write(update("INSERT", workerEntry(key1, 1, 1))))
		b.updateCodes(b.write(update("INSERT", workerEntry(key1, 1, 1))), codes.AlreadyExists)
		b.updateCodes(b.write(update("INSERT", workerEntry(key1, 1, 1))+update("INSERT", workerEntry(key2, 1, 2))+
			update("DELETE", workerEntry(key3, 0, 0))),
			codes.AlreadyExists, codes.OK, codes.NotFound)
		if b.workers() != 2 {
			t.Error("D5 the good update of a mixed batch was not done")
		}
	})
	t.Run("D5 unknown atomicity", func(t *testing.T) {
		b := newBench(t, false)
		b.code(codes.Unimplemented, b.write("atomicity: 9 "+update("INSERT", workerEntry(key1, 1, 1))))
		b.code(codes.Unimplemented, b.write("atomicity: DATAPLANE_ATOMIC "+update("INSERT", workerEntry(key1, 1, 1))))
		if b.workers() != 0 {
			t.Error("something was applied")
		}
		b.backend.atomic = true
		b.code(codes.OK, b.write("atomicity: DATAPLANE_ATOMIC "+update("INSERT", workerEntry(key1, 1, 1))))
	})
	t.Run("D6 rollback", func(t *testing.T) {
		b := newBench(t, false)
		b.code(codes.OK, b.write(update("INSERT", workerEntry(key1, 1, 1))+update("INSERT", workerEntry(key2, 2, 2))))
		before, _ := b.read("entities { table_entry {} } entities { " + groupEntry("") + " }")
		b.updateCodes(b.write("atomicity: ROLLBACK_ON_ERROR "+
			update("INSERT", workerEntry(key3, 3, 3))+update("MODIFY", workerEntry(key1, 9, 9))+
			update("DELETE", workerEntry(key2, 0, 0))+
			update("INSERT", groupEntry("multicast_group_id: 1"))+update("INSERT", workerEntry(key3, 3, 3))+
			update("INSERT", workerEntry(key2, 3, 3))),
			codes.Aborted, codes.Aborted, codes.Aborted, codes.Aborted, codes.AlreadyExists, codes.Aborted)
		after, _ := b.read("entities { table_entry {} } entities { " + groupEntry("") + " }")
		if diff := cmp.Diff(before, after, protocmp.Transform()); diff != "" {
			t.Error(diff)
		}
		if b.backend.size() != 2 {
			t.Errorf("the device holds %d entries", b.backend.size())
		}
	})
	t.Run("D9 D10 insert, modify, delete", func(t *testing.T) {
		b := newBench(t, false)
		b.updateCodes(b.write(update("MODIFY", workerEntry(key1, 1, 1))), codes.NotFound)
		b.code(codes.OK, b.write(update("INSERT", strings.Replace(workerEntry(key1, 1, 1), "table_id",
			`metadata: "m" table_id`, 1))))
		b.code(codes.OK, b.write(update("MODIFY", workerEntry(key1, 2, 3))))
		got, _ := b.read("entities { table_entry { table_id: 0x02000002 } }")
		want := text(t, new(v1.Entity), workerEntry(key1, 2, 3))
		if diff := cmp.Diff([]*v1.Entity{want}, got, protocmp.Transform()); diff != "" {
			t.Errorf("MODIFY is a full replacement: %s", diff)
		}
		b.code(codes.OK, b.write(update("DELETE", `table_entry { table_id: 0x02000002 match { field_id: 1 exact { value: "`+key1+`" } }
			action { action { action_id: 0x0100dead } } idle_timeout_ns: 5 meter_config {} }`)))
		if b.workers() != 0 {
			t.Error("DELETE left the entry")
		}
	})
	t.Run("D11 full", func(t *testing.T) {
		b := newBench(t, true)
		small := labConfig()
		small.P4Info.Tables[1].Size = 2
		small.P4Info.PkgInfo.PlatformProperties.MulticastGroupTableSize = 1
		small.P4Info.PkgInfo.PlatformProperties.MulticastGroupTableTotalReplicas = 2
		b.code(codes.OK, b.set("VERIFY_AND_COMMIT", small))
		b.updateCodes(b.write(update("INSERT", workerEntry(key1, 1, 1))+update("INSERT", workerEntry(key2, 1, 2))+
			update("INSERT", workerEntry(key3, 1, 3))),
			codes.OK, codes.OK, codes.ResourceExhausted)
		b.code(codes.OK, b.write(update("DELETE", workerEntry(key1, 1, 1))+update("INSERT", workerEntry(key3, 1, 3))))
		b.updateCodes(b.write(update("INSERT",
			groupEntry(`multicast_group_id: 1 replicas { port: "\001" } replicas { port: "\002" } replicas { port: "\003" }`))), codes.ResourceExhausted)
		b.updateCodes(b.write(update("INSERT", groupEntry(`multicast_group_id: 1`))+
			update("INSERT", groupEntry(`multicast_group_id: 2`))), codes.OK, codes.ResourceExhausted)
	})
	t.Run("D12 malformed updates", func(t *testing.T) {
		b := newBench(t, false)
		b.updateCodes(b.write("updates {} updates { type: INSERT } updates { type: INSERT entity {} } "+
			update("UNSPECIFIED", workerEntry(key1, 1, 1))+update("8", workerEntry(key1, 1, 1))+
			update("INSERT", "table_entry {}")),
			codes.InvalidArgument, codes.InvalidArgument, codes.InvalidArgument, codes.InvalidArgument,
			codes.InvalidArgument, codes.InvalidArgument)
	})
	t.Run("D13 the device's own words", func(t *testing.T) {
		b := newBench(t, false)
		b.backend.fail = func(Change) error { return errors.New("bad \xff key " + strings.Repeat("x", 400)) }
		err := b.write(update("INSERT", workerEntry(key1, 1, 1)))
		b.updateCodes(err, codes.Internal)
		m := status.Convert(err).Details()[0].(*v1.Error).Message
		if !strings.Contains(m, `\xff`) || len(m) > 200 {
			t.Errorf("message %q", m)
		}
	})
	t.Run("B23 outside the role", func(t *testing.T) {
		b := newBench(t, false)
		b.elect(`device_id: 1 election_id { low: 3 } role { name: "reader" }`)
		_, err := b.client.Write(b.Context(), text(t, new(v1.WriteRequest),
			`device_id: 1 role: "reader" election_id { low: 3 }`+
				update("INSERT", workerEntry(key1, 1, 1))+update("INSERT", groupEntry("multicast_group_id: 1"))+
				update("INSERT", `table_entry { table_id: 0x02000001 match { field_id: 1 exact { value: "\001" } } action { action { action_id: 0x01000003 } } }`)))
		b.updateCodes(err, codes.OK, codes.PermissionDenied, codes.PermissionDenied)
		all, err := b.read(`role: "reader" entities { table_entry {} } entities { ` + groupEntry("") + ` }`)
		if err != nil || len(all) != 1 {
			t.Errorf("the role reads %v, %v", all, err)
		}
		_, err = b.read(`role: "stranger" entities { table_entry {} }`)
		b.code(codes.NotFound, err)
	})
}

// TestTableEntry checks parts E and F of the checklist, each entry alone in an INSERT unless noted otherwise.
func TestTableEntry(t *testing.T) {
	const match = `match { field_id: 1 exact { value: "\n\000\000\001" } } `
	const action = `action { action { action_id: 0x01000001 params { param_id: 1 value: "\001" } params { param_id: 2 value: "\002" } } } `
	const worker = "table_id: 0x02000002 "
	b := newBench(t, false)
	for _, c := range []struct {
		name, op, entry string
		want            codes.Code
	}{
		{"E1 unknown table", "INSERT", "table_id: 0x02000099 " + match + action, codes.InvalidArgument},
		{"E1 unknown field", "INSERT", worker + strings.Replace(match, "field_id: 1", "field_id: 9", 1) + action,
			codes.InvalidArgument},
		{"E1 unknown action", "INSERT", worker + match + strings.Replace(action, "0x01000001", "0x01000099", 1),
			codes.InvalidArgument},
		{"E1 unknown parameter", "INSERT", worker + match + strings.Replace(action, "param_id: 2", "param_id: 9", 1),
			codes.InvalidArgument},
		{"E2 no action", "INSERT", worker + match, codes.InvalidArgument},
		{"E2 an action of another table", "INSERT", worker + match + "action { action { action_id: 0x01000003 } }",
			codes.InvalidArgument},
		{"E2 a default-only action", "INSERT", worker + match + "action { action { action_id: 0x01000002 } }",
			codes.PermissionDenied},
		{"E3 missing parameter", "INSERT", worker + match + strings.Replace(action,
			`params { param_id: 2 value: "\002" }`, "", 1), codes.InvalidArgument},
		{"E3 parameter twice", "INSERT", worker + match + strings.Replace(action, "param_id: 2", "param_id: 1", 1),
			codes.InvalidArgument},
		{"E3 empty parameter", "INSERT", worker + match + strings.Replace(action, `"\002"`, `""`, 1), codes.InvalidArgument},
		{"E3 F3 parameter too wide", "INSERT", worker + match + strings.Replace(action, `"\002"`, `"\001\000\000"`,
			1), codes.InvalidArgument},
		{"E4 is_const", "INSERT", worker + match + action + "is_const: true", codes.InvalidArgument},
		{"E5 priority", "INSERT", worker + match + action + "priority: 1", codes.InvalidArgument},
		{"E5 negative priority", "INSERT", worker + match + action + "priority: -1", codes.InvalidArgument},
		{"E6 no match", "INSERT", worker + action, codes.InvalidArgument},
		{"E6 ternary in an exact field", "INSERT", worker + `match { field_id: 1 ternary { value: "\n" mask: "\n" } }` +
			action, codes.InvalidArgument},
		{"E6 prefix in an exact field", "INSERT", worker + `match { field_id: 1 lpm { value: "\n" prefix_len: 32 } }` +
			action, codes.InvalidArgument},
		{"E8 field twice", "INSERT", worker + match + match + action, codes.InvalidArgument},
		{"E8 match unset", "INSERT", worker + "match { field_id: 1 }" + action, codes.InvalidArgument},
		{"E10 default with match", "MODIFY", worker + match + action + "is_default_action: true", codes.InvalidArgument},
		{"E10 default inserted", "INSERT", worker + action + "is_default_action: true", codes.InvalidArgument},
		{"E10 default deleted", "DELETE", worker + "is_default_action: true", codes.InvalidArgument},
		{"E10 default with priority", "MODIFY", worker + action + "is_default_action: true priority: 3",
			codes.InvalidArgument},
		{"E10 constant default", "MODIFY", worker + action + "is_default_action: true", codes.PermissionDenied},
		{"E14 idle timeout", "INSERT", worker + match + action + "idle_timeout_ns: 1", codes.InvalidArgument},
		{"E14 time since last hit", "INSERT", worker + match + action + "time_since_last_hit {}", codes.InvalidArgument},
		{"E15 member", "INSERT", worker + match + "action { action_profile_member_id: 1 }", codes.InvalidArgument},
		{"E15 one-shot", "INSERT", worker + match + "action { action_profile_action_set {} }", codes.InvalidArgument},
		{"E15 action oneof unset", "INSERT", worker + match + "action {}", codes.InvalidArgument},
		{"F2 empty key", "INSERT", worker + `match { field_id: 1 exact {} }` + action, codes.InvalidArgument},
		{"F3 key too wide", "INSERT", worker + `match { field_id: 1 exact { value: "\001\000\000\000\000" } }` +
			action, codes.InvalidArgument},
		{"F3 key enormous", "INSERT", worker + `match { field_id: 1 exact { value: "` + strings.Repeat("x", 3000) +
			`" } }` + action, codes.InvalidArgument},
		{"H5 direct counter", "INSERT", worker + match + action + "counter_data {}", codes.InvalidArgument},
		{"H5 direct meter", "INSERT", worker + match + action + "meter_config {}", codes.InvalidArgument},
		{"a cluster's group that is not there", "INSERT",
			`table_id: 0x02000011 match { field_id: 1 exact { value: "\000" } } action { action { action_id: 0x01000011 params { param_id: 1 value: "\007" } } }`, codes.NotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.updateCodes(b.write(update(c.op, "table_entry { "+c.entry+" }")), c.want)
		})
	}
	if b.workers() != 0 {
		t.Error("a refused entry is there")
	}
	t.Run("E2 MODIFY without an action keeps it", func(t *testing.T) {
		b.code(codes.OK, b.write(update("INSERT", "table_entry { "+worker+match+action+"}")))
		b.code(codes.OK, b.write(update("MODIFY", `table_entry { metadata: "new" `+worker+match+"}")))
		got, _ := b.read("entities { table_entry { " + worker + " } }")
		want := text(t, new(v1.Entity), `table_entry { metadata: "new" `+worker+match+action+"}")
		if diff := cmp.Diff([]*v1.Entity{want}, got, protocmp.Transform()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("E13 metadata comes back; F1 F2 byte strings come back canonical", func(t *testing.T) {
		b.code(codes.OK, b.write(update("INSERT", "table_entry { "+worker+`metadata: "\000\377" controller_metadata: 77
			match { field_id: 1 exact { value: "\000\000\000\000\000\002" } }
			action { action { action_id: 0x01000001 params { param_id: 2 value: "\000\000\000" } params { param_id: 1 value: "\000\001" } } } }`)))
		got, _ := b.read("entities { table_entry { " + worker + ` match { field_id: 1 exact { value: "\000\002" } } } }`)
		want := text(t, new(v1.Entity), "table_entry { "+worker+`metadata: "\000\377" controller_metadata: 77
			match { field_id: 1 exact { value: "\002" } }
			action { action { action_id: 0x01000001 params { param_id: 1 value: "\001" } params { param_id: 2 value: "\000" } } } }`)
		if diff := cmp.Diff([]*v1.Entity{want}, got, protocmp.Transform()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestRead checks part G of the checklist.
func TestRead(t *testing.T) {
	bare := newBench(t, true)
	t.Run("G1", func(t *testing.T) {
		_, err := bare.read("entities { table_entry {} }")
		bare.code(codes.FailedPrecondition, err)
		stream, err := bare.client.Read(t.Context(), &v1.ReadRequest{DeviceId: 2})
		if err == nil {
			_, err = stream.Recv()
		}
		bare.code(codes.NotFound, err)
	})
	b := newBench(t, false)
	b.code(codes.OK, b.write(update("INSERT", workerEntry(key2, 1, 2))+
		update("INSERT", strings.Replace(workerEntry(key1, 1, 1), "table_id", `metadata: "m" table_id`, 1))+
		update("INSERT", `table_entry { table_id: 0x02000001 match { field_id: 1 exact { value: "\001" } } action { action { action_id: 0x01000003 } } }`)+
		update("INSERT", groupEntry(
			`multicast_group_id: 5 metadata: "g" replicas { port: "\000\007" instance: 1 } replicas { egress_port: 9 instance: 2 }`))))
	const worker = "table_id: 0x02000002 "
	for _, c := range []struct {
		name, entities string
		want           int
		code           codes.Code
	}{
		{"G2 nothing asked", "", 0, codes.OK},
		{"G3 all tables", "entities { table_entry {} }", 3, codes.OK},
		{"G3 one table", "entities { table_entry { " + worker + "} }", 2, codes.OK},
		{"G3 exact key", "entities { table_entry { " + worker + `match { field_id: 1 exact { value: "` + key1 +
			`" } } } }`, 1, codes.OK},
		{"G6 absent key", "entities { table_entry { " + worker + `match { field_id: 1 exact { value: "` + key3 +
			`" } } } }`, 0, codes.OK},
		{"G3 by action", "entities { table_entry { " + worker + "action { action { action_id: 0x01000001 } } } }", 2,
			codes.OK},
		{"G3 by another action", "entities { table_entry { " + worker +
			"action { action { action_id: 0x01000003 } } } }", 0, codes.OK},
		{"G3 by metadata", "entities { table_entry { " + worker + `metadata: "m" } }`, 1, codes.OK},
		{"G3 by controller metadata", "entities { table_entry { " + worker + `controller_metadata: 3 } }`, 0, codes.OK},
		{"G3 by priority", "entities { table_entry { " + worker + `priority: 3 } }`, 0, codes.OK},
		{"G3 the default only", "entities { table_entry { " + worker + `is_default_action: true } }`, 1, codes.OK},
		{"G5 direct resources are not invented", "entities { table_entry { " + worker + `counter_data {} } }`, 2, codes.OK},
		{"G8 the same twice", "entities { table_entry { " + worker + "} } entities { table_entry { " + worker + "} }",
			4, codes.OK},
		{"H3 all of none", "entities { counter_entry {} } entities { meter_entry {} } entities { register_entry {} } " +
			"entities { direct_counter_entry {} }", 0, codes.OK},
		{"I1 all groups", "entities { " + groupEntry("") + " }", 1, codes.OK},
		{"I1 one group", "entities { " + groupEntry("multicast_group_id: 5") + " }", 1, codes.OK},
		{"I1 absent group", "entities { " + groupEntry("multicast_group_id: 6") + " }", 0, codes.OK},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := b.read(c.entities)
			if status.Code(err) != c.code || len(got) != c.want {
				t.Errorf("got %d entities and %v, want %d: %v", len(got), err, c.want, got)
			}
		})
	}
	t.Run("G2 G7 bad elements beside good ones", func(t *testing.T) {
		got, err := b.read("entities {} entities { table_entry { " + worker +
			"} } entities { table_entry { table_id: 9 } } entities { counter_entry { counter_id: 4 } } entities { " +
			"packet_replication_engine_entry {} } " +
			"entities { packet_replication_engine_entry { clone_session_entry {} } } entities { table_entry { match { " +
			"field_id: 1 } } }")
		b.updateCodes(err, codes.InvalidArgument, codes.OK, codes.InvalidArgument, codes.InvalidArgument,
			codes.InvalidArgument, codes.Unimplemented, codes.InvalidArgument)
		if len(got) != 2 {
			t.Errorf("%d good ones", len(got))
		}
	})
	t.Run("I4 G10 a group comes back in the fields it was written in", func(t *testing.T) {
		got, _ := b.read("entities { " + groupEntry("") + " }")
		want := text(t, new(v1.Entity),
			groupEntry(`multicast_group_id: 5 metadata: "g" replicas { port: "\007" instance: 1 } replicas { egress_port: 9 instance: 2 }`))
		if diff := cmp.Diff([]*v1.Entity{want}, got, protocmp.Transform()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestOtherEntities checks parts H and I of the checklist: the answers from a pipeline without counters, meters and
// registers, and the groups.
func TestOtherEntities(t *testing.T) {
	b := newBench(t, false)
	for name, c := range map[string]struct {
		op, entity string
		want       codes.Code
	}{
		"H counter":             {"MODIFY", "counter_entry { counter_id: 1 }", codes.InvalidArgument},
		"H direct counter":      {"MODIFY", "direct_counter_entry {}", codes.InvalidArgument},
		"H meter":               {"MODIFY", "meter_entry { meter_id: 1 }", codes.InvalidArgument},
		"H register":            {"MODIFY", "register_entry { register_id: 1 }", codes.InvalidArgument},
		"action profile member": {"INSERT", "action_profile_member { member_id: 1 }", codes.InvalidArgument},
		"digest":                {"INSERT", "digest_entry { digest_id: 1 }", codes.InvalidArgument},
		"value set":             {"MODIFY", "value_set_entry { value_set_id: 1 }", codes.InvalidArgument},
		"extern":                {"INSERT", "extern_entry { extern_id: 1 }", codes.InvalidArgument},
		"I1 group 0":            {"INSERT", groupEntry(""), codes.InvalidArgument},
		"I2 the same replica twice": {"INSERT",
			groupEntry(`multicast_group_id: 3 replicas { port: "\001" } replicas { port: "\000\001" }`), codes.InvalidArgument},
		"I2 instance beyond a worker": {"INSERT",
			groupEntry(`multicast_group_id: 3 replicas { port: "\001" instance: 65536 }`), codes.InvalidArgument},
		"I2 no port": {"INSERT", groupEntry(`multicast_group_id: 3 replicas { instance: 1 }`), codes.InvalidArgument},
		"I2 port too wide": {"INSERT",
			groupEntry(`multicast_group_id: 3 replicas { port: "\001\000\000\000\000" }`), codes.InvalidArgument},
		"I2 MODIFY of nothing": {"MODIFY", groupEntry(`multicast_group_id: 3`), codes.NotFound},
		"I2 DELETE of nothing": {"DELETE", groupEntry(`multicast_group_id: 3`), codes.NotFound},
		"I3 backup replicas": {"INSERT",
			groupEntry(`multicast_group_id: 3 replicas { port: "\001" backup_replicas { port: "\002" } }`), codes.Unimplemented},
		"clone session": {"INSERT",
			"packet_replication_engine_entry { clone_session_entry { session_id: 1 } }", codes.Unimplemented},
		"no replication entry": {"INSERT", "packet_replication_engine_entry {}", codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) { b.updateCodes(b.write(update(c.op, c.entity)), c.want) })
	}
	t.Run("a group in use stays", func(t *testing.T) {
		cluster := func(id, group string) string {
			return `table_entry { table_id: 0x02000011 match { field_id: 1 exact { value: "` + id +
				`" } } action { action { action_id: 0x01000011 params { param_id: 1 value: "` + group + `" } } } }`
		}
		b.code(codes.OK, b.write(update("INSERT", groupEntry(`multicast_group_id: 3 replicas { port: "\001" }`))+
			update("INSERT", groupEntry(`multicast_group_id: 4`))+
			update("INSERT", cluster(`\000`, `\003`))+update("INSERT", cluster(`\001`, `\003`))))
		b.updateCodes(b.write(update("DELETE", groupEntry("multicast_group_id: 3"))), codes.FailedPrecondition)
		b.code(codes.OK, b.write(update("MODIFY", cluster(`\000`, `\004`))))
		b.updateCodes(b.write(update("DELETE", groupEntry("multicast_group_id: 3"))), codes.FailedPrecondition)
		b.code(codes.OK, b.write(update("DELETE", cluster(`\001`, `\000`))+
			update("DELETE", groupEntry("multicast_group_id: 3"))))
	})
}

// card is a device that stores entries and can be made to fail.
type card struct {
	entries        map[[2]uint32]Entry
	groups         map[uint32][]Member
	commits        int
	failCommits    int
	atomic         bool
	refusePipeline error
	fail           func(Change) error
	hold, reached  chan struct{} // Do closes reached and waits for hold
}

func newCard() *card {
	return &card{entries: make(map[[2]uint32]Entry), groups: make(map[uint32][]Member)}
}

// TestErrorDetailsFit rejects batches of every size with the longest messages, and checks that the trailer stays within
// the clients' limits and every code arrives.
func TestErrorDetailsFit(t *testing.T) {
	for _, n := range []int{1, 2, 20, 60, 100, 129, 130, 200, 1000, 10000} {
		for _, text := range []string{"x", strings.Repeat("wide key ", 30)} {
			faults := make([]error, n)
			for i := range faults {
				faults[i] = status.Error(codes.NotFound, text)
			}
			st := status.Convert(batchStatus("updates", faults)).Proto()
			wire, err := proto.Marshal(st)
			if err != nil {
				t.Fatal(err)
			}
			trailer := base64.StdEncoding.EncodedLen(len(wire)) + len(st.Message)
			if limit := 8192 + 100*n; trailer > limit || n <= 100 && trailer > 8192 {
				t.Errorf("%d faults of %d bytes: %d bytes of trailer", n, len(text), trailer)
			}
			for i, d := range status.FromProto(st).Details() {
				if d.(*v1.Error).CanonicalCode != int32(codes.NotFound) {
					t.Fatalf("%d faults: element %d is %v", n, i, d)
				}
			}
			if len(st.Details) != n {
				t.Errorf("%d faults have %d details", n, len(st.Details))
			}
			if first := st.Details[0]; n <= 60 && len(text) > 1 && len(first.Value) < 20 {
				t.Errorf("%d faults: a text of %d bytes is left", n, len(first.Value))
			}
		}
	}
}

// TestErrorDetailsOfHugeBatches rejects batches near the request limit, and checks that the response arrives with as
// many codes as fit and that the connection survives.
func TestErrorDetailsOfHugeBatches(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	b := newBench(t, false)
	for _, n := range []int{150_000, 550_000} {
		_, err := b.client.Write(b.Context(), &v1.WriteRequest{DeviceId: 1, ElectionId: &v1.Uint128{Low: 1},
			Updates: make([]*v1.Update, n)})
		st := status.Convert(err)
		details := st.Proto().GetDetails()
		if st.Code() != codes.Unknown || len(details) != min(n, maxDetails) ||
			n > maxDetails != strings.Contains(st.Message(), "details cover the first") {
			t.Errorf("%d updates: %v: %s with %d details", n, st.Code(), st.Message(), len(details))
		}
		if len(details) > 0 {
			last := new(v1.Error)
			if err := details[len(details)-1].UnmarshalTo(last); err != nil ||
				codes.Code(last.CanonicalCode) != codes.InvalidArgument {
				t.Errorf("%d updates: the last detail is %v, %v", n, last, err)
			}
		}
	}
	_, err := b.client.Capabilities(b.Context(), new(v1.CapabilitiesRequest))
	b.code(codes.OK, err)
}

// TestUnconfiguredRolesLeaveRoom fills the arbiter with unconfigured roles. It checks that a configured role still
// finds room and that unconfigured roles are dropped when they have no streams.
func TestUnconfiguredRolesLeaveRoom(t *testing.T) {
	a := newArbiter(1, 64, "workers")
	announce := func(c int, role string) error {
		_, err := a.announce(connection(c), &v1.MasterArbitrationUpdate{DeviceId: 1, Role: &v1.Role{Name: role},
			ElectionId: &v1.Uint128{Low: uint64(c)}})
		return err
	}
	for i := range maxRoles {
		if err := announce(i+1, fmt.Sprintf("stranger %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := announce(1000, "one more"); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("got %v", err)
	}
	if err := announce(1001, "workers"); err != nil {
		t.Errorf("a configured role: %v", err)
	}
	a.leave(1)
	if err := announce(1002, "one more"); err != nil {
		t.Errorf("after a stranger left: %v", err)
	}
}

// TestSaveThenReconcile checks that the entries that the device uses are kept.
func TestSaveThenReconcile(t *testing.T) {
	o, err := newOwner(t, "", p4.Lab())
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []func() error{
		func() error {
			return o.push(v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, labConfig())
		},
		func() error { return o.send(workerUpdate(v1.Update_INSERT, 1), workerUpdate(v1.Update_INSERT, 2)) },
		func() error { return o.push(v1.SetForwardingPipelineConfigRequest_VERIFY_AND_SAVE, labConfig()) },
		func() error {
			return o.push(v1.SetForwardingPipelineConfigRequest_RECONCILE_AND_COMMIT, labConfig())
		},
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if n := o.card.size(); n != 2 {
		t.Errorf("%d entries are left of 2", n)
	}
	if workers, _, _, _ := o.current.Load().state.Count(); workers != 2 {
		t.Errorf("the controller reads %d entries of 2", workers)
	}
}

// TestInstalledPipelineLeavesNoID checks that the election is open after the device's owner has installed a pipeline.
func TestInstalledPipelineLeavesNoID(t *testing.T) {
	a, err := New(Options{Backend: newCard(), Profile: p4.Lab()})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Install(labConfig()); err != nil {
		t.Fatal(err)
	}
	c, _ := a.joinStream(t.Context())
	if err := a.announce(c, &v1.MasterArbitrationUpdate{DeviceId: 1, ElectionId: &v1.Uint128{Low: 1}}); err != nil {
		t.Fatal(err)
	}
	if !a.arbiter.isPrimary(c) {
		t.Error("the first controller with the lowest id is not primary")
	}
	if err := a.Install(nil); err != nil {
		t.Errorf("a pipeline that is there stays: %v", err)
	}
}
