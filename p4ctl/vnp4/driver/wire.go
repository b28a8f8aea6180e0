// Package driver implements the child process that loads AMD's vitisnetp4 driver libraries. The operator builds the
// libraries together with the bitstream. This package contains none of their code. A crash in such a library ends only
// this process.
//
// The child never accesses the card. When the library needs a register, the child asks the parent process, which owns
// the device and checks the address. Calls and answers strictly alternate, so they need neither IDs nor locks.
package driver

// Call is a request from the parent.
type Call struct {
	Op    Op
	Block int // index of the opened block
	// Library and Config are for Open: the shared library, and the data symbol in it that describes the instance.
	Library, Config string
	// Table and Action are control-plane names; Action is for insert and update.
	Table, Action string
	Key, Params   []byte
	// Value is the answer to a Read. A non-empty Fault rejects a Read or Write.
	Value uint32
	Fault string
}

// Op is the kind of a call.
type Op uint8

const (
	Open   Op = iota + 1 // load a library and start its target
	Reset                // empty a table
	Insert               // insert a new key
	Update               // change an existing key
	Delete
	Proceed // answer to Read and Write
)

// Answer is a message from the child. It is either a register access that the library requests or, at the end of a
// call, Done.
type Answer struct {
	Kind    Kind
	Block   int
	Address uint32 // relative to the block's base
	Value   uint32 // value to write
	// Fault is for Done: the name of the library's return code, because the numbers change between releases. It is
	// empty for success.
	Fault string
	// For Done after Open and Reset: widths in bits of the table's key and of its widest action's parameters.
	KeyBits, ParamBits uint32
}

// Kind is the kind of an answer.
type Kind uint8

const (
	Done Kind = iota + 1
	Read
	Write
)

// File descriptors for messages in the child process. Standard output is left to the library.
const (
	CallsFD   = 3
	AnswersFD = 4
)
