package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/test/golden"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// teller is an agent that records all of its answers.
type teller struct {
	*testing.T
	agent *Agent
	card  *card
	text  bytes.Buffer
}

func tell(t *testing.T, o Options) *teller {
	t.Helper()
	w := &teller{T: t, card: newCard()}
	o.Backend, o.Profile = w.card, p4.Lab()
	var err error
	if w.agent, err = New(o); err != nil {
		t.Fatal(err)
	}
	w.primary("", 1)
	return w
}

// primary announces a stream for a role.
func (w *teller) primary(role string, id uint64) {
	w.Helper()
	c, _ := w.agent.joinStream(w.Context())
	m := &v1.MasterArbitrationUpdate{DeviceId: 1, ElectionId: &v1.Uint128{Low: id}}
	if role != "" {
		m.Role = &v1.Role{Name: role}
	}
	if err := w.agent.announce(c, m); err != nil {
		w.Fatal(err)
	}
}

func (w *teller) say(format string, args ...any) { fmt.Fprintf(&w.text, format, args...) }

// shown formats a message on one line.
func shown(m proto.Message) string {
	return strings.Join(strings.Fields(prototext.MarshalOptions{}.Format(m)), " ")
}

// fault formats an error with the details of a batch.
func fault(err error) string {
	if err == nil {
		return "OK"
	}
	st := status.Convert(err)
	out := st.Code().String() + ": " + st.Message()
	for i, d := range st.Details() {
		e := d.(*v1.Error)
		out += fmt.Sprintf("\n    %d %v %s %s", i, codes.Code(e.CanonicalCode), e.Space, e.Message)
	}
	return out
}

func (w *teller) write(fields string) {
	w.Helper()
	_, err := w.agent.Write(w.Context(), text(w, new(v1.WriteRequest), "device_id: 1 election_id { low: 1 } "+fields))
	w.say("write %s\n  %s\n", strings.Join(strings.Fields(fields), " "), fault(err))
}

// sink is the stream of a Read without a network, with room for a fixed number of messages.
type sink struct {
	grpc.ServerStream
	answers []*v1.ReadResponse
	room    int
}

func (s *sink) Send(m *v1.ReadResponse) error {
	if s.room--; s.room < 0 {
		return errors.New("gone")
	}
	s.answers = append(s.answers, m)
	return nil
}
func (*sink) Context() context.Context { return context.Background() }

func (w *teller) read(fields string) {
	w.Helper()
	out := &sink{room: 1000}
	err := w.agent.Read(text(w, new(v1.ReadRequest), "device_id: 1 "+fields), out)
	w.say("read %s\n  %s\n", strings.Join(strings.Fields(fields), " "), fault(err))
	for _, a := range out.answers {
		w.say("  %d entities\n", len(a.Entities))
		for i, e := range a.Entities {
			if i < 12 {
				w.say("    %s\n", shown(e))
			}
		}
	}
}

func (w *teller) set(action v1.SetForwardingPipelineConfigRequest_Action, config *v1.ForwardingPipelineConfig) error {
	_, err := w.agent.SetForwardingPipelineConfig(w.Context(), &v1.SetForwardingPipelineConfigRequest{
		DeviceId: 1, ElectionId: &v1.Uint128{Low: 1}, Action: action, Config: config,
	})
	return err
}

// tables prints everything that was written and the data path's view of it.
func (w *teller) tables() {
	p := w.agent.current.Load()
	if p == nil {
		w.say("no pipeline\n")
		return
	}
	workers, servers, clusters, groups := p.state.Count()
	w.say("%d workers, %d servers, %d clusters, %d groups; version %d, committed %t; the device holds %d\n", workers,
		servers, clusters, groups, p.state.Version(), p.committed, w.card.size())
}

// TestAnswersToUpdates checks the answers to updates of every kind, valid and invalid, each as insertion, modification
// and deletion.
func TestAnswersToUpdates(t *testing.T) {
	w := tell(t, Options{})
	w.write(update("INSERT", workerEntry(key1, 1, 1)))
	if err := w.set(v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, labConfig()); err != nil {
		t.Fatal(err)
	}
	match := `match { field_id: 1 exact { value: "\n\000\000\001" } }`
	action := `action { action { action_id: 0x01000001 params { param_id: 1 value: "\001" } params { param_id: 2 value: "\002" } } }`
	worker := func(fields string) string { return "table_entry { table_id: 0x02000002 " + fields + " }" }
	for _, entity := range []string{
		"", "table_entry {}", worker(""), worker(match), worker(match + action),
		worker(match + " match { field_id: 1 exact { value: '\\001' } }" + action),
		worker("match { field_id: 2 exact { value: '\\001' } }" + action),
		worker("match { field_id: 1 lpm { value: '\\001' prefix_len: 3 } }" + action),
		worker("match { field_id: 1 exact { value: '' } }" + action),
		worker("match { field_id: 1 exact { value: '\\000\\000\\000\\000\\000\\001' } }" + action),
		worker("match { field_id: 1 exact { value: '\\001\\000\\000\\000\\000' } }" + action),
		worker("match { field_id: 1 exact { value: '0123456789abcdefghij' } }" + action),
		worker(match + "action { action { action_id: 0x01000001 params { param_id: 1 value: '\\001' } } }"),
		worker(match + "action { action { action_id: 0x01000001 params { param_id: 3 value: '\\001' } } }"),
		worker(match + "action { action { action_id: 0x01000001 params { param_id: 1 value: '\\001' } params { " +
			"param_id: 1 value: '\\001' } } }"),
		worker(match + "action { action { action_id: 0x01000001 params { param_id: 1 value: '\\001\\000\\000' } params { " +
			"param_id: 2 value: '\\002' } } }"),
		worker(match + "action { action { action_id: 0x01000001 params { param_id: 1 value: '\\377\\377' } params { " +
			"param_id: 2 value: '\\002' } } }"),
		worker(match + "action { action { action_id: 0x0100ffff } }"),
		worker(match + "action { action { action_id: 0x01000002 } }"),
		worker(match + "action { action { action_id: 0x01000003 } }"),
		worker(match + "action { action_profile_member_id: 3 }"),
		worker(match + "is_const: true"), worker(match + "is_default_action: true"), worker("is_default_action: true"),
		worker("is_default_action: true priority: 1"), worker(match + "priority: 1 " + action),
		worker(match + "idle_timeout_ns: 1 " + action), worker(match + "time_since_last_hit {}" + action),
		worker(match + "meter_config {}" + action), worker(match + "meter_counter_data {}" + action),
		worker(match + "counter_data {}" + action),
		worker(match + "metadata: 'mine' controller_metadata: 5 " + action), "table_entry { table_id: 0x0200ffff }",
		"packet_replication_engine_entry {}", "packet_replication_engine_entry { clone_session_entry {} }",
		groupEntry(""), groupEntry("multicast_group_id: 1"),
		groupEntry("multicast_group_id: 2 metadata: 'g' replicas { port: '\\003' instance: 4 } replicas { " +
			"egress_port: 5 instance: 65535 }"),
		groupEntry("multicast_group_id: 3 replicas { port: '\\003' instance: 65536 }"),
		groupEntry("multicast_group_id: 3 replicas { instance: 1 }"),
		groupEntry("multicast_group_id: 3 replicas { port: '\\003' instance: 1 } replicas { egress_port: 3 instance: 1 }"),
		groupEntry("multicast_group_id: 3 replicas { port: '' instance: 1 }"),
		groupEntry("multicast_group_id: 3 replicas { port: '\\003' backup_replicas { port: '\\001' } }"),
		"extern_entry {}", "action_profile_member {}", "action_profile_group {}", "meter_entry {}",
		"direct_meter_entry {}", "counter_entry {}", "direct_counter_entry {}", "value_set_entry {}",
		"register_entry {}", "digest_entry {}",
	} {
		for _, op := range []string{"INSERT", "INSERT", "MODIFY", "DELETE", "DELETE", "UNSPECIFIED"} {
			fields := "updates { type: " + op + " entity { " + entity + " } } "
			if entity == "" {
				fields = "updates { type: " + op + " } "
			}
			w.write(fields)
		}
		w.tables()
	}
	cluster := func(id, group int) string {
		return fmt.Sprintf(`table_entry { table_id: 0x%08x match { field_id: 1 exact { value: "\%03o" } } action { action { action_id: 0x%08x params { param_id: 1 value: "\%03o" } } } }`, p4.TableClusterGroups, id, p4.ActionSetGroup, group)
	}
	w.write(update("INSERT", cluster(1, 1)) +
		update("INSERT", groupEntry("multicast_group_id: 1 replicas { port: '\\001' instance: 1 }")) +
		update("INSERT", cluster(1, 1)) + update("INSERT", cluster(2, 1)))
	w.write(update("DELETE", groupEntry("multicast_group_id: 1")))
	w.write(update("INSERT", groupEntry("multicast_group_id: 2")) + update("MODIFY", cluster(2, 2)) +
		update("DELETE", cluster(1, 1)) + update("DELETE", groupEntry("multicast_group_id: 1")) +
		update("MODIFY", cluster(2, 9)))
	w.tables()
	w.write("atomicity: ROLLBACK_ON_ERROR " + update("INSERT", workerEntry(key1, 1, 1)) +
		update("MODIFY", groupEntry("multicast_group_id: 2 replicas { port: '\\001' }")) +
		update("DELETE", cluster(2, 2)) + update("INSERT", cluster(3, 9)) + update("INSERT", workerEntry(key2, 1, 1)))
	w.tables()
	golden.Equal(t, "updates.txt", w.text.Bytes())
}

// TestAnswersToReads checks reads with every filter, by every role, in messages with a bounded number of entities.
func TestAnswersToReads(t *testing.T) {
	w := tell(t, Options{Roles: map[string]Role{"workers": {Tables: []uint32{p4.TableWorkers}},
		"groups": {Groups: true}, "nothing": {}}})
	w.read("entities { table_entry {} }")
	if err := w.set(v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, labConfig()); err != nil {
		t.Fatal(err)
	}
	workers := func(fields string) string { return "entities { table_entry { table_id: 0x02000002 " + fields + " } }" }
	extra := strings.Replace(workerEntry(key3, 3, 3), "table_entry {",
		"table_entry { metadata: 'm' controller_metadata: 7", 1)
	w.write(update("INSERT", workerEntry(key2, 2, 2)) + update("INSERT", workerEntry(key1, 1, 1)) +
		update("INSERT", extra))
	w.write(update("INSERT", groupEntry("multicast_group_id: 2 replicas { egress_port: 3 instance: 4 }")) +
		update("INSERT", groupEntry("multicast_group_id: 1 metadata: 'g'")))
	for _, fields := range []string{
		"", "entities {}", "entities { table_entry {} }", "entities { table_entry { priority: 1 } }",
		"entities { table_entry { is_default_action: true } }", "entities { table_entry { metadata: 'm' } }",
		"entities { table_entry { controller_metadata: 7 } }", "entities { table_entry { action {} } }",
		"entities { table_entry { idle_timeout_ns: 1 counter_data {} } }", "entities { table_entry { table_id: 5 } }",
		workers(""), workers("priority: 1"),
		workers("is_default_action: true"), workers("metadata: 'm'"), workers("metadata: 'x'"),
		workers("controller_metadata: 7"), workers("controller_metadata: 8"),
		workers("action { action { action_id: 0x01000001 } }"),
		workers("action { action { action_id: 0x01000002 } }"),
		workers("match { field_id: 1 exact { value: '\\n\\000\\000\\003' } }"),
		workers("match { field_id: 1 exact { value: '\\n\\000\\000\\003' } } metadata: 'x'"),
		workers("match { field_id: 1 exact { value: '\\n\\000\\000\\004' } }"),
		workers("match { field_id: 2 exact { value: '\\n\\000\\000\\004' } }"),
		"entities { " + groupEntry("") + " }", "entities { " + groupEntry("multicast_group_id: 2") + " }", "entities { " +
			groupEntry("multicast_group_id: 9") + " }", "entities { packet_replication_engine_entry {} }",
		"entities { packet_replication_engine_entry { clone_session_entry {} } }",
		"entities { action_profile_member {} }", "entities { action_profile_member { action_profile_id: 1 } }",
		"entities { action_profile_group {} }", "entities { action_profile_group { action_profile_id: 1 } }",
		"entities { meter_entry {} }", "entities { meter_entry { meter_id: 1 } }",
		"entities { counter_entry {} }", "entities { counter_entry { counter_id: 1 } }",
		"entities { direct_meter_entry {} }", "entities { direct_meter_entry { table_entry { table_id: 1 } } }",
		"entities { direct_counter_entry {} }", "entities { direct_counter_entry { table_entry { table_id: 1 } } }",
		"entities { register_entry {} }", "entities { register_entry { register_id: 1 } }",
		"entities { digest_entry {} }", "entities { digest_entry { digest_id: 1 } }", "entities { value_set_entry {} }",
		"entities { value_set_entry { value_set_id: 1 } }",
		"entities { extern_entry {} }", "entities { extern_entry { extern_type_id: 1 } }", workers("") +
			"entities { table_entry { table_id: 5 } }" + "entities { " + groupEntry("") + " }",
		"role: 'workers' entities { table_entry {} } entities { " + groupEntry("") + " }",
		"role: 'groups' entities { table_entry {} } entities { " + groupEntry("") + " }", "role: 'nothing' " +
			workers(""), "role: 'strangers' " + workers(""),
	} {
		w.read(fields)
	}
	var batch strings.Builder
	for i := range chunk + 1 {
		batch.WriteString(update("INSERT", workerEntry(fmt.Sprintf(`\013\000\%03o\%03o`, i>>8, i&0xff), 1, 1)))
	}
	if _, err := w.agent.Write(t.Context(), text(t, new(v1.WriteRequest), "device_id: 1 election_id { low: 1 } "+
		batch.String())); err != nil {
		t.Fatal(err)
	}
	w.read(workers(""))
	for room := range 2 {
		if err := w.agent.Read(text(t, new(v1.ReadRequest), "device_id: 1 "+workers("")+workers("")),
			&sink{room: room}); err == nil {
			t.Errorf("a stream that breaks after %d messages", room)
		}
	}
	for _, device := range []uint64{0, 2} {
		err := w.agent.Read(&v1.ReadRequest{DeviceId: device}, &sink{})
		_, capabilities := w.agent.Capabilities(t.Context(), &v1.CapabilitiesRequest{DeviceId: device})
		_, config := w.agent.GetForwardingPipelineConfig(t.Context(),
			&v1.GetForwardingPipelineConfigRequest{DeviceId: device})
		_, write := w.agent.Write(t.Context(), &v1.WriteRequest{DeviceId: device})
		_, set := w.agent.SetForwardingPipelineConfig(t.Context(), &v1.SetForwardingPipelineConfigRequest{DeviceId: device})
		w.say("device %d: %s | %s | %s | %s | %s\n", device, fault(err), fault(capabilities), fault(config),
			fault(write), fault(set))
	}
	golden.Equal(t, "reads.txt", w.text.Bytes())
}

// TestAnswersToPipelineActions checks the effect of each pipeline action in each state, and the rejected P4Infos.
func TestAnswersToPipelineActions(t *testing.T) {
	w := tell(t, Options{Roles: map[string]Role{"pusher": {Pipeline: true}, "writer": {Groups: true}}})
	actions := []v1.SetForwardingPipelineConfigRequest_Action{
		v1.SetForwardingPipelineConfigRequest_UNSPECIFIED, v1.SetForwardingPipelineConfigRequest_COMMIT,
		v1.SetForwardingPipelineConfigRequest_VERIFY, v1.SetForwardingPipelineConfigRequest_VERIFY_AND_SAVE,
		v1.SetForwardingPipelineConfigRequest_COMMIT, v1.SetForwardingPipelineConfigRequest_COMMIT,
		v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, v1.SetForwardingPipelineConfigRequest_VERIFY_AND_SAVE,
		v1.SetForwardingPipelineConfigRequest_RECONCILE_AND_COMMIT,
		v1.SetForwardingPipelineConfigRequest_RECONCILE_AND_COMMIT, 9,
	}
	for i, action := range actions {
		config := labConfig()
		if action == v1.SetForwardingPipelineConfigRequest_COMMIT && i != 5 {
			config = nil
		}
		w.say("%v: %s\n", action, fault(w.set(action, config)))
		w.tables()
		w.write(update("INSERT", workerEntry(fmt.Sprintf(`\n\000\000\%03o`, i), 1, i)))
		w.tables()
	}
	w.say("no config: %s\n", fault(w.set(v1.SetForwardingPipelineConfigRequest_VERIFY, nil)))
	w.write(update("INSERT", groupEntry("multicast_group_id: 1 replicas { port: '\\001' }")) +
		update("INSERT", groupEntry("multicast_group_id: 2 replicas { port: '\\001' } replicas { port: '\\002' }")))
	limits := func(c *v1.ForwardingPipelineConfig) *configv1.PlatformProperties {
		return c.P4Info.PkgInfo.PlatformProperties
	}
	for _, c := range []struct {
		what   string
		change func(*v1.ForwardingPipelineConfig)
	}{
		{"as it is", func(*v1.ForwardingPipelineConfig) {}},
		{"without P4Info", func(c *v1.ForwardingPipelineConfig) { c.P4Info = nil }},
		{"a table less", func(c *v1.ForwardingPipelineConfig) { c.P4Info.Tables = c.P4Info.Tables[1:] }},
		{"a table twice", func(c *v1.ForwardingPipelineConfig) {
			c.P4Info.Tables = append(c.P4Info.Tables,
				c.P4Info.Tables[0])
		}},
		{"a table more", func(c *v1.ForwardingPipelineConfig) {
			c.P4Info.Tables = append(c.P4Info.Tables, &configv1.Table{Preamble: &configv1.Preamble{Id: 99}, Size: 1})
		}},
		{"an action less", func(c *v1.ForwardingPipelineConfig) { c.P4Info.Actions = c.P4Info.Actions[1:] }},
		{"an action twice", func(c *v1.ForwardingPipelineConfig) {
			c.P4Info.Actions = append(c.P4Info.Actions,
				c.P4Info.Actions[0])
		}},
		{"an action more", func(c *v1.ForwardingPipelineConfig) {
			c.P4Info.Actions = append(c.P4Info.Actions, &configv1.Action{Preamble: &configv1.Preamble{Id: 99}})
		}},
		{"no entries", func(c *v1.ForwardingPipelineConfig) { c.P4Info.Tables[0].Size = 0 }},
		{"an entry more", func(c *v1.ForwardingPipelineConfig) { c.P4Info.Tables[0].Size++ }},
		{"another key", func(c *v1.ForwardingPipelineConfig) { c.P4Info.Tables[0].MatchFields[0].Bitwidth = 31 }},
		{"another name", func(c *v1.ForwardingPipelineConfig) { c.P4Info.Tables[0].Preamble.Name = "x" }},
		{"other words", func(c *v1.ForwardingPipelineConfig) {
			c.P4Info.Tables[0].Preamble.Doc, c.P4Info.Tables[0].MatchFields[0].Doc = &configv1.Documentation{Brief: "x"},
				&configv1.Documentation{Brief: "x"}
			c.P4Info.Tables[0].MatchFields[0].Annotations, c.P4Info.Tables[0].ActionRefs[0].Annotations = []string{"@x"},
				[]string{"@y"}
			c.P4Info.Actions[0].Preamble.Alias = "alias"
			if params := c.P4Info.Actions[0].Params; len(params) > 0 {
				params[0].Annotations = []string{"@z"}
			}
		}},
		{"actions in another order", func(c *v1.ForwardingPipelineConfig) {
			refs := c.P4Info.Tables[0].ActionRefs
			refs[0], refs[len(refs)-1] = refs[len(refs)-1], refs[0]
		}},
		{"the default as the initial one", func(c *v1.ForwardingPipelineConfig) {
			c.P4Info.Tables[0].InitialDefaultAction = &configv1.TableActionCall{ActionId: c.P4Info.Tables[0].ConstDefaultActionId}
		}},
		{"another initial one", func(c *v1.ForwardingPipelineConfig) {
			c.P4Info.Tables[0].InitialDefaultAction = &configv1.TableActionCall{ActionId: 77}
		}},
		{"other parameters", func(c *v1.ForwardingPipelineConfig) {
			for _, a := range c.P4Info.Actions {
				if len(a.Params) > 0 {
					a.Params[0].Bitwidth++
				}
			}
		}},
		{"a counter", func(c *v1.ForwardingPipelineConfig) { c.P4Info.Counters = []*configv1.Counter{{}} }},
		{"a register and a digest", func(c *v1.ForwardingPipelineConfig) {
			c.P4Info.Registers, c.P4Info.Digests = []*configv1.Register{{}}, []*configv1.Digest{{}}
		}},
		{"too many groups", func(c *v1.ForwardingPipelineConfig) { limits(c).MulticastGroupTableSize++ }},
		{"fewer than no groups", func(c *v1.ForwardingPipelineConfig) { limits(c).MulticastGroupTableSize = -1 }},
		{"any number of groups", func(c *v1.ForwardingPipelineConfig) { limits(c).MulticastGroupTableSize = 0 }},
		{"too many replicas", func(c *v1.ForwardingPipelineConfig) { limits(c).MulticastGroupTableTotalReplicas++ }},
		{"room for one group", func(c *v1.ForwardingPipelineConfig) { limits(c).MulticastGroupTableSize = 1 }},
		{"room for two groups", func(c *v1.ForwardingPipelineConfig) { limits(c).MulticastGroupTableSize = 2 }},
		{"room for two replicas", func(c *v1.ForwardingPipelineConfig) { limits(c).MulticastGroupTableTotalReplicas = 2 }},
		{"room for three replicas", func(c *v1.ForwardingPipelineConfig) { limits(c).MulticastGroupTableTotalReplicas = 3 }},
		{"room for one worker", func(c *v1.ForwardingPipelineConfig) { sized(c, p4.TableWorkers, 1) }},
		{"room for three workers", func(c *v1.ForwardingPipelineConfig) { sized(c, p4.TableWorkers, 3) }},
	} {
		config := labConfig()
		c.change(config)
		w.say("%s: %s\n", c.what, fault(w.set(v1.SetForwardingPipelineConfigRequest_RECONCILE_AND_COMMIT, config)))
		w.tables()
	}
	w.write(update("INSERT", groupEntry("multicast_group_id: 3")) + update("INSERT", workerEntry(`\n\000\001\001`, 1,
		1)) + update("MODIFY", groupEntry(
		"multicast_group_id: 1 replicas { port: '\\001' } replicas { port: '\\002' } replicas { port: '\\003' }")))
	w.write(update("MODIFY", groupEntry(
		"multicast_group_id: 2 replicas { port: '\\001' } replicas { port: '\\377\\377\\377\\377' }")))
	w.tables()
	for _, kind := range []v1.GetForwardingPipelineConfigRequest_ResponseType{0, 1, 2, 3, 4} {
		answer, err := w.agent.GetForwardingPipelineConfig(t.Context(),
			&v1.GetForwardingPipelineConfigRequest{DeviceId: 1, ResponseType: kind})
		w.say("get %v: %s, %d tables, %q, cookie %v\n", kind, fault(err), len(answer.GetConfig().GetP4Info().GetTables()),
			answer.GetConfig().GetP4DeviceConfig(), answer.GetConfig().GetCookie().GetCookie())
	}
	for _, role := range []string{"pusher", "writer", "stranger"} {
		w.primary(role, 5)
		for _, id := range []uint64{4, 5} {
			_, err := w.agent.SetForwardingPipelineConfig(t.Context(), &v1.SetForwardingPipelineConfigRequest{DeviceId: 1,
				Role: role, ElectionId: &v1.Uint128{Low: id}, Action: v1.SetForwardingPipelineConfigRequest_VERIFY,
				Config: labConfig()})
			_, write := w.agent.Write(t.Context(), text(t, new(v1.WriteRequest),
				fmt.Sprintf("device_id: 1 role: '%s' election_id { low: %d } ", role, id)+
					update("INSERT", workerEntry(key3, 1, 1))+update("INSERT", groupEntry("multicast_group_id: 9"))))
			w.say("%s with %d: %s | %s\n", role, id, fault(err), fault(write))
		}
	}
	golden.Equal(t, "pipelines.txt", w.text.Bytes())
}

func sized(c *v1.ForwardingPipelineConfig, table uint32, size int64) {
	for _, t := range c.P4Info.Tables {
		if t.Preamble.Id == table {
			t.Size = size
		}
	}
}

// TestDeviceFailuresAreReported checks that every failure of a device is reported, and that the previous state is
// restored unless that fails too.
func TestDeviceFailuresAreReported(t *testing.T) {
	w := tell(t, Options{})
	no := errors.New("the device says no")
	w.card.refusePipeline = no
	w.say("verify: %s\n", fault(w.set(v1.SetForwardingPipelineConfigRequest_VERIFY, labConfig())))
	w.card.refusePipeline = nil
	if err := w.set(v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, labConfig()); err != nil {
		t.Fatal(err)
	}
	w.write(update("INSERT", workerEntry(key1, 1, 1)))
	state := w.agent.current.Load().state
	src := func(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, n}) }
	if c, id, ok := state.Worker(src(1)); c != 1 || id != 1 || !ok {
		t.Errorf("cluster %d, worker %d, %t", c, id, ok)
	}
	for _, a := range []netip.Addr{src(2), {}, netip.MustParseAddr("fe80::1")} {
		if c, id, ok := state.Worker(a); ok || c != 0 || id != 0 || state.Server(a) {
			t.Errorf("%v is cluster %d, worker %d", a, c, id)
		}
	}
	if c, _, ok := state.Worker(netip.MustParseAddr("::ffff:10.0.0.1")); !ok || c != 1 {
		t.Error("an IPv4 address in an IPv6 one")
	}
	if m, ok := state.Group(olaf.ClusterID(4)); ok || m != nil {
		t.Errorf("members %v", m)
	}
	var none *State
	if workers, servers, clusters, groups := none.Count(); workers+servers+clusters+groups != 0 || none.Version() != 0 {
		t.Error("nobody has entries")
	}
	none.Changes(func(Change) bool { t.Error("a change of nobody"); return true })
	golden.Equal(t, "refusals.txt", w.text.Bytes())
}

// TestAnswersToManyUpdates checks many updates, alone and in batches of every atomicity, with all errors and the final
// state.
func TestAnswersToManyUpdates(t *testing.T) {
	w := tell(t, Options{})
	w.card.atomic = true
	config := labConfig()
	sized(config, p4.TableWorkers, 5)
	config.P4Info.PkgInfo.PlatformProperties.MulticastGroupTableSize,
		config.P4Info.PkgInfo.PlatformProperties.MulticastGroupTableTotalReplicas = 4, 6
	if err := w.set(v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, config); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(14, 2))
	for range 120 {
		req := &v1.WriteRequest{DeviceId: 1, ElectionId: &v1.Uint128{Low: 1}, Atomicity: v1.WriteRequest_Atomicity(r.IntN(3))}
		for range 1 + r.IntN(5) {
			u := &v1.Update{Type: v1.Update_Type(1 + r.IntN(3))}
			id, other := uint32(1+r.IntN(7)), uint32(1+r.IntN(5))
			switch r.IntN(4) {
			case 0:
				u.Entity = entryOf(p4.TableWorkers, id, p4.ActionSetWorker, other, id)
			case 1:
				u.Entity = entryOf(p4.TableClusterGroups, id, p4.ActionSetGroup, other)
			case 2:
				u.Entity = entryOf(p4.TableWorkers, id, p4.ActionSetWorker, other, id)
				u.Entity.GetTableEntry().Action = nil
			default:
				g := &Group{ID: other}
				for i := range r.IntN(4) {
					g.Members, g.legacy = append(g.Members, Member{Port: uint32(i), Instance: id}), append(g.legacy, i%2 == 0)
				}
				u.Entity = groupProto(g)
			}
			req.Updates = append(req.Updates, u)
		}
		_, err := w.agent.Write(t.Context(), req)
		w.say("%v of %d: %s\n", req.Atomicity, len(req.Updates), fault(err))
		w.tables()
	}
	w.read("entities { table_entry {} } entities { " + groupEntry("") + " }")
	n := 0
	w.agent.current.Load().state.Changes(func(c Change) bool {
		n++
		w.say("%v %+v %+v\n", c.Op, c.Entry, c.Group)
		return true
	})
	for stop := 1; stop <= n; stop++ {
		seen := 0
		w.agent.current.Load().state.Changes(func(Change) bool { seen++; return seen < stop })
		if seen != stop {
			t.Errorf("asked to stop after %d of %d changes, it went on to %d", stop, n, seen)
		}
	}
	golden.Equal(t, "crowd.txt", w.text.Bytes())
}

// TestTextsAreCutAtCharacters checks that texts are cut at character boundaries and to the length that fits.
func TestTextsAreCutAtCharacters(t *testing.T) {
	for _, c := range []struct {
		text    string
		longest int
		want    string
	}{
		{"short", 5, "short"}, {"longer", 5, "lo…"}, {"éé", 4, "éé"}, {"ééé", 5, "é…"}, {"ééé", 4, ""}, {"abcd", 3, ""},
		{"abcde", 4, "a…"}, {"a\xff", 9, `"a\xff"`}, {"", 0, ""}, {"x", 0, ""},
	} {
		if have := printable(c.text, c.longest); have != c.want {
			t.Errorf("%q in %d bytes is %q, want %q", c.text, c.longest, have, c.want)
		}
	}
	for _, c := range []struct {
		texts      []int
		room, want int
	}{{[]int{10, 20}, 30, maxMessage}, {[]int{10, 20}, 29, 19}, {[]int{10, 20}, 20, 10}, {[]int{10, 20}, 19, 9},
		{[]int{10, 20}, 1, 0}, {[]int{10, 20}, 0, 0}, {nil, 0, maxMessage}, {[]int{10}, -1, 0},
		{[]int{500}, 160, 160}, {[]int{500}, 159, 159}} {
		if have := fitLength(c.texts, c.room); have != c.want {
			t.Errorf("texts of %v in %d bytes: %d, want %d", c.texts, c.room, have, c.want)
		}
	}
	for _, c := range []struct{ n, length, want int }{{1, 500, 160}, {20, 160, 160}, {30, 160, 131}, {111, 160, 0},
		{112, 160, 0}, {113, 160, 74}, {300, 160, 44}, {2000, 160, 29}} {
		texts := make([]int, c.n)
		for i := range texts {
			texts[i] = c.length
		}
		if have := longestText(texts, c.n); have != c.want {
			t.Errorf("%d texts of %d: %d each, want %d", c.n, c.length, have, c.want)
		}
	}
}

// TestRewriteAtItsLimit checks that a journal is rewritten when more than its limit was appended, not before, and that
// later records go to the new file.
func TestRewriteAtItsLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tables")
	o := filled(t, path)
	before := o.journal.size
	insert := func(key uint32) {
		t.Helper()
		if err := o.send(workerUpdate(v1.Update_INSERT, key)); err != nil {
			t.Fatal(err)
		}
	}
	insert(20)
	record := o.journal.size - before
	for key, c := range map[uint32]struct {
		more  int64
		epoch uint64
	}{21: {0, 0}, 22: {1, 1}} {
		epoch := o.journal.epoch
		o.journal.base = o.journal.size + record - rewriteAfter - c.more
		insert(key)
		if o.journal.epoch != epoch+c.epoch {
			t.Errorf("%d bytes over the limit: epoch %d after %d", c.more, o.journal.epoch, epoch)
		}
	}
	insert(23)
	if err := o.push(v1.SetForwardingPipelineConfigRequest_RECONCILE_AND_COMMIT, labConfig()); err != nil {
		t.Fatal(err)
	}
	insert(24)
	want := dump(t, o.current.Load())
	o.crash()
	again, err := newOwner(t, path, p4.Lab())
	if err != nil || dump(t, again.current.Load()) != want {
		t.Errorf("after the restart: %v", err)
	}
}

// TestRewriteWithoutRename checks that a journal that cannot be rewritten continues and reports this.
func TestRewriteWithoutRename(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tables")
	o := filled(t, path)
	var warned []string
	o.journal.fs, o.journal.warn = nameless{disk{}}, func(line string) { warned = append(warned, line) }
	o.journal.base = o.journal.size - rewriteAfter
	for key := uint32(20); key < 23; key++ {
		if err := o.send(workerUpdate(v1.Update_INSERT, key)); err != nil {
			t.Fatal(err)
		}
	}
	if len(warned) != 1 || !strings.Contains(warned[0], "could not be compacted") {
		t.Errorf("%q", warned)
	}
	want := dump(t, o.current.Load())
	o.crash()
	again, err := newOwner(t, path, p4.Lab())
	if err != nil || dump(t, again.current.Load()) != want {
		t.Errorf("after the restart: %v", err)
	}
}

// nameless is a file system without rename.
type nameless struct{ fileSystem }

func (nameless) Rename(string, string) error { return errFault }

// TestJournalOfAnotherDevice checks that the error for a journal whose pipeline the device rejects names the journal,
// which stays unchanged.
func TestJournalOfAnotherDevice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tables")
	o := filled(t, path)
	o.crash()
	before := read(t, path)
	c := newCard()
	c.refusePipeline = errors.New("another build")
	_, err := New(Options{Backend: c, Profile: p4.Lab(), Journal: path})
	if !errors.Is(err, ErrJournal) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(),
		"another build") {
		t.Errorf("%v", err)
	}
	if !bytes.Equal(read(t, path), before) {
		t.Error("the journal was changed")
	}
}

// TestInstallReportsDeviceErrors checks that a pipeline is installed once, if there is none, and that the device's
// errors are returned.
func TestInstallReportsDeviceErrors(t *testing.T) {
	c := newCard()
	a, err := New(Options{Backend: c, Profile: p4.Lab()})
	if err != nil {
		t.Fatal(err)
	}
	c.refusePipeline = errors.New("another build")
	if err := a.Install(labConfig()); err == nil || strings.Contains(err.Error(), "rpc error") || a.current.Load() != nil {
		t.Errorf("%v", err)
	}
	c.refusePipeline = nil
	if err := a.Install(labConfig()); err != nil || a.current.Load() == nil {
		t.Fatal(err)
	}
	installed := a.current.Load()
	if err := a.Install(&v1.ForwardingPipelineConfig{}); err != nil || a.current.Load() != installed {
		t.Errorf("a second one: %v", err)
	}
}

// TestSocketIsPrivate checks that a socket is private to its user.
func TestSocketIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen("unix:"+path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
