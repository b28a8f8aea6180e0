package attach

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/reference/attach.md")

// pageHead and pageTail are the texts before and after the generated tables.
const pageHead = `# The attach protocol

Generated from pktgen/attach/message.go; change it there and run ` + "`go test ./pktgen/attach -run TestPage -update`" + `.

A worker or server with ` + "`--attach unix:PATH`" + ` lets a program compute. [Your own training](../guide/own-training.md) shows how to
use it from Python; this page is for clients in other languages. ` + "`clients/python/tests/test_client.py`" + ` is what a client must
pass.

The socket belongs to the daemon's user (mode 0600) and takes one client at a time. Numbers are little-endian. A message is a
head of 8 bytes (u32 length of what follows the head, u8 kind, three zeros), a structure, and float32 values or text. The client
sends a request and waits for its answer; any number of ` + "`waits`" + ` may arrive before it.
`

const pageTail = `
## Rules

* A vector may have another length each round, up to ` + "`Largest`" + `. A server's client answers each update before it takes the next.
* Version 0 of a model: the server has not answered yet, and there are no values.
* After ` + "`bye`" + ` the daemon ends. A connection that closes without it leaves the daemon waiting for the next client, whose greeting
  has the round that is due.
* Error codes: 1 protocol, 2 version, 3 another client is attached, 4 this vector cannot be sent (the connection goes on), 5 the
  daemon ended.
* A recorder sends to ` + "`trace record --attach`" + ` what olaf.Recorder writes into files: in its first message the header, then a
  record with its values in each. Several recorders attach at once. The recording ends with the last one's ` + "`bye`" + `.

## Numbers

Through olaf, fifo and xagg the values are int32 in frames: value × ` + "`--scale`" + `, rounded to the nearest even, and cut to
±(2³¹ − 1). Sums saturate in the kernel.

| value or sum | at scale 1e8 | counted as |
|---|---|---|
| beyond ±21.47 | ±21.4748 | clipped |
| a sum beyond that | ±21.4748 | saturated |
| not 0 and below 5e-9 | 0 | vanished |
| NaN, infinity | refused with its index | |

Other systems, and xagg in virtual time, have their own rules:

| system | lanes | counted | frames for a vector |
|---|---|---|---|
| xagg | int32 at 1e8 | clipped, vanished, saturated | those it needs |
| atp | int32 at 1e6; float32 in packets with a value beyond ±213, and where a sum reaches the end of int32 | vanished | those it needs |
| switchml | int32, scaled by the largest value of any worker's packet | vanished | those it needs, and at most a pool of frames with exponents |
| iswitch, ps, ring | float32; NaN and infinity pass | | those it needs |
| ps; ` + "`--mode async`" + ` | float32; NaN and infinity pass | | those it needs, and those that the answer needs |
| iswitch; ` + "`--mode async`" + ` | float32; NaN and infinity pass | | those of the longest: the switch counts the vectors of each segment, and a worker's k-th result of every segment belongs to the k-th sum |

While a worker waits, ` + "`waits`" + ` lists the workers whose vectors are missing, if they are known. They are known if the
network runs in one process, and to daemons of xagg, ps, switchml, atp, and iswitch with isw-x: the switch or the server
reports after a second whose vectors its incomplete sums lack. Workers of ring do not know it, because each hears only from the
one before.

Around ` + "`testbed switch`" + `, a host that ends sends a *left* frame ([Baseline](wire.md#baseline)) to the others. Those that need
its vector or answer then end. A killed host sends none.

Workers must agree on the length of each vector. In one of 8192 rounds, all frames are sent. Real frames of
atp number at most 65,535 packets per worker; a job that needs more ends with an error.

After lost or late frames a sum of iswitch may miss or repeat a vector, as published; ` + "`--program-profile isw-x`" + ` prevents it.

With real frames through olaf, fifo and xagg, the first lanes of a frame carry a code of the scale, so that programs which
disagree are refused. For systems that wait, the first frame also has the round, the vector's length and its reward; through a
queue, every frame has the version of the model. Around ` + "`testbed switch`" + `, vectors begin with a one, the length, the round and
the reward as digits of 7 bits in float32. With ` + "`--mode async`" + ` an update begins with six lanes: the bytes OLAF, the model's
version, the update's number, its reward as float32, and its time in two halves. Its answer begins with the bytes OLAF and the
version.

A program attaches to the server of olaf, fifo, and ps with ` + "`--mode async`" + `. Through ps it gets whole updates, and its answer may
have another length. The server of atp sums packet by packet and never has a whole vector. Asynchronous iswitch has no server;
only in virtual time does one program apply its sums for all workers.
`

// pageKinds are the messages in the page's order.
var pageKinds = []struct {
	kind                             Kind
	name, from, structure, tail, got string
}{
	{KindHello, "hello", "client", "Hello", "", "greeting"},
	{KindVector, "vector", "a worker's client", "Vector", "values", "sum, or pushed if the worker does not wait"},
	{KindPull, "pull", "a worker's client", "Pull", "", "model"},
	{KindTake, "take", "a server's client", "", "", "update"},
	{KindReply, "reply", "a server's client", "Reply", "values, or none for an ACK alone", "none"},
	{KindBye, "bye", "client", "", "", "none"},
	{KindRecord, "record", "a recorder", "", "bytes", "none"},
	{KindGreeting, "greeting", "daemon", "Greeting", "", ""}, {KindSum, "sum", "daemon", "Sum", "values", ""},
	{KindPushed, "pushed", "daemon", "Pushed", "", ""}, {KindModel, "model", "daemon", "Model", "values", ""},
	{KindUpdate, "update", "daemon", "Update", "values", ""}, {KindWaits, "waits", "daemon", "", "text", ""},
	{KindError, "error", "daemon", "Failure", "text", ""},
}

// page returns docs/reference/attach.md.
func page(t *testing.T) string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "message.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	structs := map[string]*ast.StructType{}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.TypeSpec); ok {
			if body, ok := s.Type.(*ast.StructType); ok {
				structs[s.Name.Name] = body
			}
		}
		return true
	})
	var b strings.Builder
	b.WriteString(pageHead + "\n| kind | message | from | structure | then | answer |\n|---|---|---|---|---|---|\n")
	for _, k := range pageKinds {
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %s | %s |\n", k.kind, k.name, k.from, k.structure, k.tail, k.got)
	}
	b.WriteString("\n## Structures\n\n| structure | field | type | meaning |\n|---|---|---|---|\n")
	shown := map[string]bool{}
	for _, k := range pageKinds {
		writeFields(&b, structs, k.structure, k.structure, shown)
	}
	return b.String() + pageTail
}

// writeFields writes a row for each field of a structure. The fields of nested structures follow in their place.
func writeFields(b *strings.Builder, structs map[string]*ast.StructType, title, name string, shown map[string]bool) {
	body := structs[name]
	if body == nil || title == name && shown[name] {
		return
	}
	shown[name] = true
	for _, f := range body.Fields.List {
		kind := fmt.Sprint(f.Type)
		if array, ok := f.Type.(*ast.ArrayType); ok {
			kind = fmt.Sprintf("%v bytes", array.Len.(*ast.BasicLit).Value)
		}
		if len(f.Names) == 0 { // embedded
			writeFields(b, structs, title, kind, shown)
			continue
		}
		field, doc := f.Names[0].Name, strings.TrimSpace(f.Comment.Text())
		if field == "_" {
			field, doc = "–", "0"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", title, field, kind, doc)
	}
}

// TestPage compares the reference page with the structures.
func TestPage(t *testing.T) {
	path := filepath.FromSlash("../../docs/reference/attach.md")
	want := page(t)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s differs from pktgen/attach/message.go (%v); run this test with -update", path, err)
	}
}
