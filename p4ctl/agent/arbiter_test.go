package agent

import (
	"fmt"
	"strings"
	"testing"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
	"pgregory.net/rapid"
)

// script runs steps against an arbiter, one a line:
//
//	1 + 5          stream 1 announces (0, 5)
//	1 + 2:5        … (2, 5)
//	1 + -          … no id
//	1 + 5 role=r   … for role r
//	1 + 5 dev=9    … for device 9
//	1 + 5 config   … with a role.config
//	1 x            stream 1 ends
//	w 5            may a request with (0, 5) write?
//
// It returns one line per step: the notices as stream:code:highest, those to the primary after a bar; or the error's
// code.
func script(a *arbiter, steps string) (out []string) {
	for _, line := range strings.Split(strings.TrimSpace(steps), "\n") {
		words := strings.Fields(line)
		if words[0] == "w" {
			role := ""
			if len(words) > 2 {
				role = strings.TrimPrefix(words[2], "role=")
			}
			out = append(out, status.Code(a.allow(role, parseID(words[1]))).String())
			continue
		}
		var c connection
		fmt.Sscan(words[0], &c)
		if words[1] == "x" {
			out = append(out, verdictText(a.leave(c)))
			continue
		}
		m := &v1.MasterArbitrationUpdate{DeviceId: 1, ElectionId: parseID(words[2])}
		for _, w := range words[3:] {
			switch {
			case strings.HasPrefix(w, "role="):
				m.Role = &v1.Role{Name: w[5:]}
			case strings.HasPrefix(w, "dev="):
				fmt.Sscan(w[4:], &m.DeviceId)
			case w == "config":
				m.Role = &v1.Role{Config: new(anypb.Any)}
			}
		}
		v, err := a.announce(c, m)
		if err != nil {
			out = append(out, status.Code(err).String())
			continue
		}
		out = append(out, verdictText(v))
	}
	return out
}

func parseID(s string) *v1.Uint128 {
	if s == "-" {
		return nil
	}
	id := new(v1.Uint128)
	if high, low, ok := strings.Cut(s, ":"); ok {
		fmt.Sscan(high, &id.High)
		s = low
	}
	fmt.Sscan(s, &id.Low)
	return id
}

func verdictText(v verdict) string {
	text := noticesText(v.others) + "| " + noticesText(v.primary)
	for _, c := range v.ended {
		text += fmt.Sprintf("%d:out ", c)
	}
	return strings.TrimSpace(text)
}

func noticesText(all []notice) string {
	var b strings.Builder
	for _, n := range all {
		highest := "-"
		if id := n.message.ElectionId; id != nil {
			highest = fmt.Sprint(id.Low)
			if id.High != 0 {
				highest = fmt.Sprintf("%d:%d", id.High, id.Low)
			}
		}
		role := ""
		if n.message.Role != nil {
			role = "@" + n.message.Role.Name
		}
		code := map[codes.Code]string{codes.OK: "ok", codes.AlreadyExists: "backup",
			codes.NotFound: "nobody"}[codes.Code(n.message.Status.Code)]
		fmt.Fprintf(&b, "%d:%s:%s%s ", n.to, code, highest, role)
	}
	return b.String()
}

// TestArbitration checks part B of the checklist.
func TestArbitration(t *testing.T) {
	for _, c := range []struct{ name, steps, want string }{
		{"B1 unknown device", "1 + 5 dev=9", "NotFound"},
		{"B2 id of a live controller", "1 + 5\n2 + 5", "| 1:ok:5\nInvalidArgument"},
		{"B2 the id is free when its owner is gone", "1 + 5\n1 x\n2 + 5", "| 1:ok:5\n|\n| 2:ok:5"},
		{"B2 the id of another role is free", "1 + 5\n2 + 5 role=r", "| 1:ok:5\n| 2:ok:5@r"},
		{"B3 B7 role.config of no known scheme", "1 + 5 config\n2 + 5\n2 + 6 config",
			"InvalidArgument\n| 2:ok:5\nInvalidArgument"},
		{"B4 too many streams", "1 + 5\n2 + 4\n3 + 3\n4 + 2\n4 + 2 role=r",
			"| 1:ok:5\n2:backup:5 |\n3:backup:5 |\nResourceExhausted\n| 4:ok:2@r"},
		{"B6 another device or role on one stream", "1 + 5\n1 + 5 dev=9\n1 + 5 role=r",
			"| 1:ok:5\nFailedPrecondition\nFailedPrecondition"},
		{"B7 taking over a live controller's id", "1 + 5\n2 + 4\n2 + 5", "| 1:ok:5\n2:backup:5 |\nInvalidArgument"},
		{"B8 raising makes primary, and tells the old one first", "1 + 5\n2 + 4\n2 + 6",
			"| 1:ok:5\n2:backup:5 |\n1:backup:6 | 2:ok:6"},
		{"B9 compared as 128 bits", "1 + 2:0\n2 + 1:99\nw 1:99\nw 2:0", "| 1:ok:2:0\n2:backup:2:0 |\nPermissionDenied\nOK"},
		{"B9 below the highest ever is not primary", "1 + 5\n1 x\n2 + 4\nw 4", "| 1:ok:5\n|\n2:nobody:5 |\nPermissionDenied"},
		{"B10 the highest again after a reconnect", "1 + 5\n1 x\n2 + 5\nw 5", "| 1:ok:5\n|\n| 2:ok:5\nOK"},
		{"B11 nobody follows a primary that leaves", "1 + 5\n2 + 4\n1 x\nw 4\nw 5",
			"| 1:ok:5\n2:backup:5 |\n2:nobody:5 |\nPermissionDenied\nPermissionDenied"},
		{"B12 a primary that lowers its id demotes itself", "1 + 5\n2 + 4\n1 + 3\nw 3\nw 5",
			"| 1:ok:5\n2:backup:5 |\n1:nobody:5 2:nobody:5 |\nPermissionDenied\nPermissionDenied"},
		{"B13 no id is never primary, and any number may have none", "1 + -\n2 + -\nw -",
			"1:nobody:- |\n2:nobody:- |\nPermissionDenied"},
		{"B13 zero is an id", "1 + 0\nw 0\nw -", "| 1:ok:0\nOK\nPermissionDenied"},
		{"B13 a primary that takes its id back", "1 + 5\n1 + -\nw 5", "| 1:ok:5\n1:nobody:5 |\nPermissionDenied"},
		{"B14 saying it again is a new election", "1 + 5\n2 + 4\n1 + 5", "| 1:ok:5\n2:backup:5 |\n2:backup:5 | 1:ok:5"},
		{"B16 a new backup causes its own answer only", "1 + 5\n2 + 4\n3 + 3", "| 1:ok:5\n2:backup:5 |\n3:backup:5 |"},
		{"B16 a backup that leaves is nobody's business", "1 + 5\n2 + 4\n2 x", "| 1:ok:5\n2:backup:5 |\n|"},
		{"B17 no highest before the first primary", "1 + -", "1:nobody:- |"},
		{"B19 the role is echoed", "1 + 5 role=r", "| 1:ok:5@r"},
		{"B22 a role that nobody announced", "w 5 role=r\n1 + 5 role=r\nw 5 role=r", "NotFound\n| 1:ok:5@r\nOK"},
		{"D1 higher than the primary's is not the primary's", "1 + 5\nw 6", "| 1:ok:5\nPermissionDenied"},
		{"a stream that ended before it announced", "1 x", "|"},
		{"one without an id makes room, the oldest first", "3 + -\n1 + 4\n2 + -\n4 + 5\n2 x\n3 + 6",
			"3:nobody:- |\n3:backup:4 | 1:ok:4\n2:backup:4 |\n1:backup:5 3:backup:5 | 4:ok:5 2:out\n|\n1:backup:6 " +
				"4:backup:6 | 3:ok:6"},
		{"nobody makes room for one without an id", "1 + -\n2 + -\n3 + -\n4 + -",
			"1:nobody:- |\n2:nobody:- |\n3:nobody:- |\nResourceExhausted"},
		{"nobody with an id makes room", "1 + 1\n2 + 2\n3 + 3\n4 + 4\n4 + -",
			"| 1:ok:1\n1:backup:2 | 2:ok:2\n1:backup:3 2:backup:3 | 3:ok:3\nResourceExhausted\nResourceExhausted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.Join(script(newArbiter(1, 3), c.steps), "\n"); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestArbitrationInvariants checks for random elections that there is at most one primary, with the highest id ever,
// that a departure promotes no stream, and that allow agrees with the notices.
func TestArbitrationInvariants(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a := newArbiter(1, 8)
		told := make(map[connection]codes.Code)
		ids := make(map[connection]uint64)
		var highest uint64
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			c := connection(rapid.IntRange(1, 5).Draw(r, "stream"))
			var v verdict
			if rapid.IntRange(0, 3).Draw(r, "leave") == 0 {
				v = a.leave(c)
				delete(told, c)
				delete(ids, c)
			} else {
				id := rapid.Uint64Range(1, 6).Draw(r, "id")
				var err error
				if v, err = a.announce(c, &v1.MasterArbitrationUpdate{DeviceId: 1, ElectionId: &v1.Uint128{Low: id}}); err != nil {
					v = a.leave(c)
					delete(told, c)
					delete(ids, c)
				} else {
					ids[c] = id
					highest = max(highest, id)
				}
			}
			for _, n := range append(v.others, v.primary...) {
				told[n.to] = codes.Code(n.message.Status.Code)
			}
			primaries := 0
			for c, code := range told {
				if code == codes.OK {
					primaries++
					if ids[c] != highest {
						r.Fatalf("stream %d is primary with %d, highest ever is %d", c, ids[c], highest)
					}
				}
			}
			if primaries > 1 {
				r.Fatalf("%d primaries", primaries)
			}
			if ok := a.allow("", &v1.Uint128{Low: highest}) == nil; ok != (primaries == 1) {
				r.Fatalf("allowed %v with %d primaries", ok, primaries)
			}
		}
	})
}
