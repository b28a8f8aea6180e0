// Package pcivm tests olafctl in virtual machines with an emulated card on their PCI bus.
//
// A real Linux kernel finds the card, maps its BAR and binds drivers to it, and olafctl runs in the guest as on a
// host. The card is a goroutine of the test: QEMU forwards every access over a socket (device x-pci-proxy-dev). The
// registers are those of fpga/pcie/pcietest, with the twin or the Verilated RTL as the box.
//
//	wire_test.go    QEMU's messages to an emulated device
//	board_test.go   the PCI side of a card: configuration space, power, link, functions, access counts
//	card_test.go    the shell, the box and its clock behind BAR2
//	qemu_test.go    a virtual machine: its process, hot plug by QMP, commands to the guest
//	machine_test.go a machine whose slot takes one card after the other, and what cases expect
//	kernel_test.go  Debian's kernel, the programs of the guest, and its initramfs
//	guest           the guest's first process, which runs commands from a serial port
//	*_case_test.go  the cases
//
// 'make pci' runs all cases; 'go test' without -matrix runs the core of them. They need qemu-system-x86 and Debian's
// kernel package, which apt-get downloads once. The cases with -matrix also need sshd. Cases whose programs are missing
// are skipped, except with CI=true. Guests have one virtual processor, because QEMU 7.2 drops accesses when two use the
// card. No case measures time: a guest may take three minutes for an answer.
//
// Not emulated: DMA, MSI-X, AER, link training.
package pcivm

// Command is a request to the first process in the guest, which runs or kills a program.
type Command struct {
	ID   int      `json:"id"`
	Args []string `json:"args,omitempty"` // a tool of the init, or a program with arguments
	User int      `json:"user,omitempty"` // user and group that run the program
	Also int      `json:"also,omitempty"` // additional group of the user
	Kill int      `json:"kill,omitempty"` // if not 0, send this signal to running command ID
}

// Event reports a line of a command's output, or the command's end.
type Event struct {
	ID     int    `json:"id"`
	Stderr bool   `json:"stderr,omitempty"` // the line was printed on standard error
	Line   string `json:"line"`
	Ended  bool   `json:"ended,omitempty"`
	Code   int    `json:"code,omitempty"` // exit code, or 128 plus the signal that ended the program
}
