package pcie

import "github.com/olafctl/olaf/fpga/regmap"

// Registers of an OpenNIC shell outside our box, as byte offsets in BAR2 (open-nic-shell, src/system_config). The 250
// MHz user box is at 0x100000; in the shell's README the two boxes are swapped.
const (
	ShellBuildTime   = 0x000 // RO: MMDDhhmm, no year
	ShellSystemReset = 0x004 // WO: any write resets the card including the host's DMA; never written
	ShellCanary      = 0x008 // RO: bit 0 means system reset done; all others are wired to 0, so a live card never returns all ones
	ShellReset       = 0x00C // WO: write 1 per bit
	ShellStatus      = 0x010 // RO: all ones on a healthy card
	UserReset        = 0x014 // WO: write 1 per bit
	UserStatus       = 0x018 // RO: all ones on a healthy card

	shellBytes    = 0x1000
	cmacBase      = 0x8000 // CMAC of port 0
	adapterBase   = 0xB000 // packet adapter of port 0
	portStride    = 0x4000
	cmacBytes     = 0x2000
	adapterBytes  = 0x1000
	sysmonBase    = 0x10000
	sysmonBytes   = 0x2000
	boxBase       = 0x100000
	boxBytes      = 0x100000
	box322Base    = 0x200000
	flashBase     = 0x300000 // satellite controller, then configuration flash at 0x340000
	maxPorts      = 2
	allOnes       = ^uint32(0)
	canaryLive    = 1          // system reset done
	expectedCMAC  = 0x00000301 // core version by which the kernel driver counts ports
	placeholder   = regmap.Placeholder
	cmacVersion   = 0x0024
	secondMissing = 0xC1000000 // first bits of the answer if a second CMAC was not built
)

// placeholders lists the values that unused targets in a stock shell return. Each consists of a prefix and the low bits
// of the address.
var placeholders = []struct {
	mask, value uint32
	text        string
}{
	{0xFFFFFFFF, allOnes, "all ones: the link is down, memory decoding is off, or another image was loaded without a warm reboot"},
	{0xFFFFFFFF, placeholder, "0xDEADBEEF: there is no register at this address"},
	{0xFFFF0000, 0xB0000000, "the stock p2p plugin of OpenNIC is in the 250 MHz box; program the image with the OLAF box"},
	{0xFFFF0000, 0xB0010000, "the stock p2p plugin of the 322 MHz box answers; the address map is not OLAF's"},
	{0xFFFF0000, 0xD0000000, "a dummy range of a stock box answers; program the image with the OLAF box"},
	{0xFFFF0000, 0xC0280000, "the placeholder of a QSFP slot answers"},
	{0xFFFF0000, 0xC1280000, "the placeholder of a QSFP slot answers"},
	{0xFFFF0000, secondMissing, "the placeholder of a second CMAC answers; this image has no second CMAC"},
	{0xFFFFFFFF, 0, "zero: nothing answers at this address; program the image with the OLAF box"},
}

// explainPlaceholder returns an explanation of a value that is not the content of a register. ok is false for other
// values.
func explainPlaceholder(value uint32) (text string, ok bool) {
	for _, p := range placeholders {
		if value&p.mask == p.value {
			return p.text, true
		}
	}
	return "", false
}

// area is a range of addresses in BAR2 and the accesses that are allowed there.
type area struct {
	first, end  uint32 // end is exclusive
	read, write bool   // raw access allowed to users; registers of our map have their own rules
	reason      string // reason for a refusal
}

// areas is the list of all ranges that may be accessed. Accesses to other addresses are refused.
var areas = []area{
	{ShellBuildTime, ShellSystemReset, true, false, "the build time is read-only"},
	{ShellSystemReset, ShellCanary, false, false, "a system reset also clears the host's DMA contexts"},
	{ShellCanary, ShellReset, true, false, "it is read-only"},
	{ShellReset, ShellStatus, false, false, "it is write-only; use 'olafctl device reset'"},
	{ShellStatus, UserReset, true, false, "it is read-only"},
	{UserReset, UserStatus, false, false, "it is write-only; use 'olafctl device reset'"},
	{UserStatus, UserStatus + 4, true, false, "it is read-only"},
	{0x1000, 0x6000, false, false, "the QDMA belongs to the kernel driver, and rewriting its queues under traffic " +
		"blocks them permanently"},
	{cmacBase, cmacBase + cmacBytes, true, true, ""},
	{cmacBase + portStride, cmacBase + portStride + cmacBytes, true, true, ""},
	{adapterBase, adapterBase + adapterBytes, true, false, "the adapter's counters are read-only"},
	{adapterBase + portStride, adapterBase + portStride + adapterBytes, true, false,
		"the adapter's counters are read-only"},
	{sysmonBase, sysmonBase + sysmonBytes, true, false, "the system monitor is read-only"},
	{regmap.CommonBase, regmap.ModelBase + regmap.ModelBytes, true, true, ""},
	{TablesBase, TablesBase + TablesBytes, false, false,
		"the VitisNetP4 windows belong to the tables' driver; use 'olafctl tables'"},
	{box322Base, flashBase, false, false, "the 322 MHz box is not part of OLAF"},
	{flashBase, 0x340000, false, false, "the satellite controller runs the card's power and fans"},
	{0x340000, 0x341000, false, false, "it gives access to the configuration flash"},
}

// areaOf returns the area that contains an address, or nil if there is none.
func areaOf(addr uint32) *area {
	for i := range areas {
		if a := &areas[i]; addr >= a.first && addr < a.end {
			return a
		}
	}
	return nil
}
