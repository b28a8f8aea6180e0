package frame

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// script is the Lua code that uses the tables inserted by DissectorScript.
//
//go:embed dissector.lua
var script string

// DissectorScript returns a Lua script that decodes the frames of all formats in Wireshark and tshark.
func DissectorScript() string {
	var b strings.Builder
	b.WriteString("local formats = {\n")
	taken := map[string]bool{}
	for _, f := range allTables() {
		where, pattern := f.Carrier.dissectorTable()
		f.lua(&b, where, pattern, taken[where+pattern])
		taken[where+pattern] = true
	}
	b.WriteString("}\n")
	return strings.Replace(script, "--TABLES--\n", b.String(), 1)
}

// dissectorTable returns the name of the Wireshark dissector table for the format, and the pattern under which it is
// registered there.
func (c *Carrier) dissectorTable() (name, pattern string) {
	switch {
	case c.Port != 0 && c.mask() != 0xffff:
		return "udp.port", fmt.Sprintf("%q", fmt.Sprintf("%d-%d", c.Port, c.lastPort()))
	case c.Port != 0:
		return "udp.port", fmt.Sprint(c.Port)
	case c.EtherType != etherTypeIPv4:
		return "ethertype", fmt.Sprint(c.EtherType)
	}
	return "ip.proto", fmt.Sprint(c.Protocol)
}

func (c *Carrier) lastPort() uint16 { return c.Port | ^c.mask() }

// lua writes the Lua table for a format. byHand is true if another format is the default for the same pattern, so that
// this one must be selected by the user.
func (f *Format) lua(b *strings.Builder, where, pattern string, byHand bool) {
	fmt.Fprintf(b, "  { proto = Proto(%q, %q), title = %q, table = %q, pattern = %s, by_hand = %t,\n", f.Proto, f.Title,
		f.Title, where, pattern, byHand)
	if f.Carrier.Port != 0 {
		fmt.Fprintf(b, "    port = %d, last_port = %d,\n", f.Carrier.Port, f.Carrier.lastPort())
	}
	behind := 0
	if where == "ethertype" {
		behind = ipBytes
	}
	fmt.Fprintf(b, "    behind_ip = %d,\n    shown = {\n", behind)
	for _, x := range f.listFields() {
		fmt.Fprintf(b, "      %s = ProtoField.%s,\n", x.Name, x.protoField(f.Proto))
	}
	fmt.Fprintf(b, "      message = ProtoField.string(%q, \"message\"),\n", f.Proto+".message")
	lane := "int32"
	if f.Messages[0].Lanes.Type == "float32" {
		lane = "float"
	}
	fmt.Fprintf(b, "      lane = ProtoField.%s(%q, \"lane\"),\n    },\n    messages = {\n", lane, f.Proto+".lane")
	for i := range f.Messages {
		f.Messages[i].lua(b)
	}
	b.WriteString("    } },\n")
}

// listFields returns the fields of all messages. Among fields with the same name it returns only the widest.
func (f *Format) listFields() []*Field {
	var all []*Field
	for i := range f.Messages {
		for _, fields := range [][]Field{f.Messages[i].Head, f.Messages[i].Tail} {
			for j := range fields {
				x := &fields[j]
				switch at := slices.IndexFunc(all, func(y *Field) bool { return y.Name == x.Name }); {
				case at < 0:
					all = append(all, x)
				case all[at].Bits < x.Bits:
					all[at] = x
				}
			}
		}
	}
	return all
}

// protoField returns the Lua declaration of a field for Wireshark.
func (x *Field) protoField(proto string) string {
	id := fmt.Sprintf("%q, %q", proto+"."+x.Name, x.Name)
	doc := fmt.Sprintf("%q", x.Doc)
	if x.Doc == "" {
		doc = fmt.Sprintf("%q", x.Name)
	}
	if x.Form == Mark {
		return fmt.Sprintf("bool(%s, base.NONE, nil, nil, %s)", id, doc)
	}
	width, base := 64, "base.DEC"
	for _, w := range []int{32, 16, 8} {
		if x.Bits <= w {
			width = w
		}
	}
	kind := "uint"
	switch x.Form {
	case Signed:
		kind = "int"
	case Hex:
		base = "base.HEX"
	}
	return fmt.Sprintf("%s%d(%s, %s, %s, nil, %s)", kind, width, id, base, x.nameTable(), doc)
}

// nameTable returns a Lua table with the names of the field's values, or "nil" if they have no names.
func (x *Field) nameTable() string {
	var words []string
	for v, name := range x.Names {
		if name != "" {
			words = append(words, fmt.Sprintf("[%d] = %q", v, name))
		}
	}
	if words == nil {
		return "nil"
	}
	return "{ " + strings.Join(words, ", ") + " }"
}

func (m *Message) lua(b *strings.Builder) {
	fmt.Fprintf(b, "      { name = %q, tos = %d, reply = %t, head_bytes = %d, tail_bytes = %d, most = %d, full = %t, lane = %q,\n",
		m.Name, m.ToS, m.Reply, m.head, m.tail, m.Lanes.Most, m.Lanes.Fixed || m.Lanes.Most == 0, m.Lanes.Type)
	for _, part := range []struct {
		name   string
		fields []Field
	}{{"head", m.Head}, {"tail", m.Tail}} {
		fmt.Fprintf(b, "        %s = {", part.name)
		for i := range part.fields {
			part.fields[i].lua(b)
		}
		b.WriteString(" },\n")
	}
	b.WriteString("      },\n")
}

func (x *Field) lua(b *strings.Builder) {
	fmt.Fprintf(b, " { name = %q, at = %d, bits = %d", x.Name, x.at, x.Bits)
	for _, w := range []struct {
		word string
		is   bool
	}{{"little", x.Little}, {"mark", x.Form == Mark}, {"signed", x.Form == Signed}, {"selects", x.Selects},
		{"spare", x.spare()}} {
		if w.is {
			fmt.Fprintf(b, ", %s = true", w.word)
		}
	}
	if x.Fixed {
		fmt.Fprintf(b, ", value = %d", x.Value)
	}
	if words := x.nameTable(); words != "nil" {
		fmt.Fprintf(b, ", names = %s", words)
	}
	b.WriteString(" },")
}
