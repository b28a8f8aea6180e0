// Package pcivm tests olafctl in virtual machines whose PCI bus has a card on it that this package emulates.
//
// A real Linux kernel finds the card, maps its BAR and binds drivers to it, and olafctl runs in the guest as on a host. The
// card is a goroutine of the test: QEMU forwards every access to the card over a socket (its device x-pci-proxy-dev). The
// registers behind the bus are those of fpga/pcie/pcietest, with the twin or the Verilated RTL as the box.
//
//	wire_test.go    QEMU's messages to an emulated device
//	board_test.go   the PCI side of a card: configuration space, power, link, functions, and counts of accesses
//	card_test.go    what is behind BAR2: the shell, the box and its clock
//	qemu_test.go    a virtual machine: its process, hot plug by QMP, commands to the guest
//	machine_test.go a machine whose slot takes one card after the other, and what cases expect
//	kernel_test.go  Debian's kernel, the programs of the guest, and its initramfs
//	guest           the guest's first process, which runs commands that arrive over a serial port
//	*_case_test.go  the cases
//
// 'make pci' runs all cases; 'go test' without -matrix runs the core of them. They need qemu-system-x86 and Debian's kernel
// package, which is downloaded once by apt-get, and are skipped without them, except where CI=true. Guests have one virtual
// processor: with two at the card, QEMU 7.2 drops accesses. No case measures time: a guest may take three minutes for an answer.
//
// Not emulated: DMA, MSI-X, AER, link training.
package pcivm

// Command asks the guest's init for one thing.
type Command struct {
	ID   int      `json:"id"`
	Args []string `json:"args,omitempty"` // a tool of the init, or a program and its arguments
	User int      `json:"user,omitempty"` // user and group to run a program as
	Also int      `json:"also,omitempty"` // one more group of that user
	Kill int      `json:"kill,omitempty"` // the signal for the running command ID, in place of Args
}

// Event reports a line that a command printed, or its end.
type Event struct {
	ID     int    `json:"id"`
	Stderr bool   `json:"stderr,omitempty"` // the line's stream
	Line   string `json:"line"`
	Ended  bool   `json:"ended,omitempty"`
	Code   int    `json:"code,omitempty"` // exit code, or 128 and the signal that ended the program
}
