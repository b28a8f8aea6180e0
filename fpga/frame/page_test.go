package frame

import (
	"fmt"
	"strings"
)

// pageHead is the text at the start of docs/reference/wire.md, before the tables.
const pageHead = `# Wire formats

Generated from the tables of fpga/frame by ` + "`go test ./fpga/frame -run TestPage -update`" + `; do not edit.

    olafctl system program dissector -w inagg.lua
    tshark -X lua_script:inagg.lua -r run.pcapng -Y 'isw.seg == 3'

Codec, this page and Wireshark's dissector come from one table of fields for each message. Bytes count from the end of Ethernet,
IPv4 and UDP, bits within a byte from the highest; numbers are big-endian unless a field says otherwise. Frames have no check
sequence and are padded to 60 bytes. The IPv4 checksum is computed and checked; the UDP checksum is 0, and checked where it is not.

| question | answer |
|---|---|
| who sent it, and of which job | iSwitch and baselines have no job on the wire: a switch knows it by the source address |
| when a gradient was made, whose are inside | only OLAF and XAgg carry this, for the newest contributor. In captures of bench it is a comment of the packet |
| OLAF or XAgg | both use one port; the first byte, the magic, tells them apart |
| isw-1 or isw-x | nothing on the wire tells: use tshark -d udp.port==20301,iswx |
| congestion | both ECN bits of IPv4 are set, in all formats; ATP also sets its own bit |
| ATP's lanes as floats | in the byte order of the host, as in the released code |
| what P4INC's paper leaves open | widths, order, port, and the two bits that tell a gradient, a sum and a mark apart are ours; a mark has no lanes |
| SwitchML's exponents | behind the lanes; the size code is 1 for 256 bytes and 3 for 1,024 |
| ATP in Wireshark | is called inaatp, because atp is AppleTalk's |

`

// renderPage returns the text of the page docs/reference/wire.md.
func renderPage() string {
	var b strings.Builder
	b.WriteString(pageHead)
	for _, f := range allTables() {
		f.page(&b)
	}
	return b.String()
}

func (f *Format) page(b *strings.Builder) {
	fmt.Fprintf(b, "## %s\n\n`%s`, dissector `%s`. Source: %s.\n\n%s\n", f.Title, f.Name, f.Proto, f.Source,
		f.Carrier.describe())
	written := map[string]string{}
	for i := range f.Messages {
		m := &f.Messages[i]
		rows := m.rows()
		fmt.Fprintf(b, "\n**%s**%s", m.Name, m.describe(f))
		if like := written[rows]; like != "" {
			fmt.Fprintf(b, " Fields as of %s.\n", like)
			continue
		}
		written[rows] = m.Name
		fmt.Fprintf(b, "\n\n| byte | bits | field | |\n|---|---|---|---|\n%s", rows)
	}
	b.WriteString("\n")
}

// describe returns text that explains how frames with these headers are recognized.
func (c *Carrier) describe() string {
	switch {
	case c.Port != 0 && c.mask() != 0xffff:
		return fmt.Sprintf("Ethernet 14 bytes, IPv4 20, UDP 8 with the switch's ports %d to %d.", c.Port, c.lastPort())
	case c.Port != 0:
		return fmt.Sprintf("Ethernet 14 bytes, IPv4 20, UDP 8 with the port %d.", c.Port)
	case c.FixedLength != 0:
		return fmt.Sprintf("Ethernet 14 bytes with EtherType 0x%04x, and 20 that look like IPv4 and always say "+
			"length %d and protocol %d.", c.EtherType, c.FixedLength, c.Protocol)
	}
	return fmt.Sprintf("Ethernet 14 bytes, IPv4 20 with protocol %d.", c.Protocol)
}

// describe returns text that explains how the message is recognized and how long its frame is.
func (m *Message) describe(f *Format) string {
	var parts []string
	if m.ToS != 0 || m.Past {
		parts = append(parts, fmt.Sprintf("ToS 0x%02x", m.ToS))
	}
	if m.Reply {
		parts = append(parts, "from the format's port")
	}
	most := max(int(Least), f.Carrier.payload()+m.length(m.Lanes.Most))
	if m.Lanes.Most > 0 && !m.Lanes.Fixed {
		parts = append(parts, fmt.Sprintf("frame of at most %d bytes", most))
	} else {
		parts = append(parts, fmt.Sprintf("frame of %d bytes", most))
	}
	return ": " + strings.Join(parts, ", ") + "."
}

// rows returns the rows for a message's fields in the page's table, without the carrier's headers.
func (m *Message) rows() string {
	var b strings.Builder
	for i := range m.Head {
		m.Head[i].row(&b, fmt.Sprint(m.Head[i].at/8))
	}
	if m.Lanes.Most > 0 {
		upTo := "up to "
		if m.Lanes.Fixed {
			upTo = ""
		}
		fmt.Fprintf(&b, "| %d | %s%d × 32 | lanes | %s |\n", m.head, upTo, m.Lanes.Most, m.Lanes.Type)
	}
	for i := range m.Tail {
		m.Tail[i].row(&b, fmt.Sprint(m.length(m.Lanes.Most)-m.tail+m.Tail[i].at/8))
	}
	return b.String()
}

func (x *Field) row(b *strings.Builder, at string) {
	about := x.Doc
	if x.Fixed {
		value := fmt.Sprint(x.Value)
		if int(x.Value) < len(x.Names) {
			value += " " + x.Names[x.Value]
		}
		about = strings.TrimPrefix(about+"; always "+value, "; ")
	}
	fmt.Fprintf(b, "| %s | %d | %s | %s |\n", at, x.Bits, x.Name, about)
}
