package capture

// linkType is the type of the link on which a packet was captured, as pcap and pcapng files number it.
type linkType uint16

const linkEthernet linkType = 1

// linkNames contains the names of the link types that users are likely to capture by mistake.
var linkNames = map[linkType]string{
	0: "Null", linkEthernet: "Ethernet", 9: "PPP", 10: "FDDI", 12: "Raw", 101: "Raw", 105: "802.11", 108: "Loop",
	113: "Linux SLL", 117: "PFLog", 119: "Prism", 127: "RadioTap", 220: "USB", 276: "Linux SLL2",
}

// String returns the name of the link type.
func (l linkType) String() string {
	if name, ok := linkNames[l]; ok {
		return name
	}
	return "UnknownLinkType"
}
