package frame

import (
	"fmt"
	"strings"
)

// Page is the tables of all formats as docs/wire.md has them.
func Page() string {
	var b strings.Builder
	for _, f := range Tables() {
		f.page(&b)
	}
	return b.String()
}

func (f *Format) page(b *strings.Builder) {
	fmt.Fprintf(b, "## %s\n\n`%s`, dissector `%s`. Source: %s.\n\n%s\n", f.Title, f.Name, f.Proto, f.Source, f.Carrier.about())
	written := map[string]string{}
	for i := range f.Messages {
		m := &f.Messages[i]
		rows := m.rows()
		fmt.Fprintf(b, "\n**%s**%s", m.Name, m.about(f))
		if like := written[rows]; like != "" {
			fmt.Fprintf(b, " Fields as of %s.\n", like)
			continue
		}
		written[rows] = m.Name
		fmt.Fprintf(b, "\n\n| byte | bits | field | |\n|---|---|---|---|\n%s", rows)
	}
	b.WriteString("\n")
}

// about is what tells a carrier apart.
func (c *Carrier) about() string {
	switch {
	case c.Port != 0 && c.mask() != 0xffff:
		return fmt.Sprintf("Ethernet 14 bytes, IPv4 20, UDP 8 with the switch's ports %d to %d.", c.Port, c.lastPort())
	case c.Port != 0:
		return fmt.Sprintf("Ethernet 14 bytes, IPv4 20, UDP 8 with the port %d.", c.Port)
	case c.FixedLength != 0:
		return fmt.Sprintf("Ethernet 14 bytes with EtherType 0x%04x, and 20 that look like IPv4 and always say length %d and protocol %d.", c.EtherType, c.FixedLength, c.Protocol)
	}
	return fmt.Sprintf("Ethernet 14 bytes, IPv4 20 with protocol %d.", c.Protocol)
}

// about is what tells a message apart, and how long its frame is.
func (m *Message) about(f *Format) string {
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

// rows are a message's fields, from the end of the carrier.
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
