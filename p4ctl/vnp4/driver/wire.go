// Package driver is the child process that loads AMD's vitisnetp4 driver libraries, which the operator built with the
// bitstream; nothing of them is here. A crash in such a library ends this process and nothing else.
//
// The child never touches the card: when the library wants a register, the child asks its parent, who owns the device
// and knows what may be accessed. The conversation is strictly by turns, so it needs no ids and no locks.
package driver

// Call is what the parent wants.
type Call struct {
	Op    Op
	Block int // index of the opened block
	// Open: the shared library and its data symbol that describes the instance.
	Library, Config string
	// Tables by their control-plane name; Action by name, for insert and update.
	Table, Action string
	Key, Params   []byte
	// Value answers a Read; Fault, when not empty, refuses a Read or Write.
	Value uint32
	Fault string
}

// Op is the kind of a call.
type Op uint8

const (
	Open   Op = iota + 1 // load a library and start its target
	Reset                // empty a table
	Insert               // of a key that is not there
	Update               // of a key that is
	Delete
	Proceed // the answer to Read and Write
)

// Answer is what the child says: a register access that the library wants, or Done, the end of the call.
type Answer struct {
	Kind    Kind
	Block   int
	Address uint32 // relative to the block
	Value   uint32 // to write
	// Of Done: what the library returned, by name, because the numbers change between releases; empty for success.
	Fault string
	// Of Done after Open and Reset: widths in bits of the table's key and of its widest action's parameters.
	KeyBits, ParamBits uint32
}

// Kind says what an answer is.
type Kind uint8

const (
	Done Kind = iota + 1
	Read
	Write
)

// The file descriptors of the conversation in the child; standard output belongs to the library.
const (
	CallsFD   = 3
	AnswersFD = 4
)
