//go:build linux && (amd64 || arm64)

package driver

import (
	"encoding/binary"
	"encoding/gob"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

// contextBytes is the number of bytes reserved for a target context and its environment. It is more than any release of
// the library needs.
const contextBytes = 64 << 10

// library contains the functions that we use from one shared object. Each returns 0 for success.
type library struct {
	name       func(code int32) string
	stub       func(env *byte) int32
	init       func(target, env *byte, config uintptr) int32
	table      func(target *byte, name string, table *uintptr) int32
	reset      func(table uintptr) int32
	insert     func(table uintptr, key *byte, mask uintptr, priority, action uint32, params *byte) int32
	update     func(table uintptr, key *byte, mask uintptr, action uint32, params *byte) int32
	remove     func(table uintptr, key *byte, mask uintptr) int32
	action     func(table uintptr, name string, id *uint32) int32
	keyBits    func(table uintptr, bits *uint32) int32
	paramsBits func(table uintptr, bits *uint32) int32
}

// symbols maps the names of exported symbols to the functions.
func (l *library) symbols() map[string]any {
	return map[string]any{
		"XilVitisNetP4ReturnTypeToString":           &l.name,
		"XilVitisNetP4StubEnvIf":                    &l.stub,
		"XilVitisNetP4TargetInit":                   &l.init,
		"XilVitisNetP4TargetGetTableByName":         &l.table,
		"XilVitisNetP4TableReset":                   &l.reset,
		"XilVitisNetP4TableInsert":                  &l.insert,
		"XilVitisNetP4TableUpdate":                  &l.update,
		"XilVitisNetP4TableDelete":                  &l.remove,
		"XilVitisNetP4TableGetActionId":             &l.action,
		"XilVitisNetP4TableGetKeySizeBits":          &l.keyBits,
		"XilVitisNetP4TableGetActionParamsSizeBits": &l.paramsBits,
	}
}

// block is an open instance of a block. Its memory is mapped outside Go's heap, because the library keeps pointers to
// it.
type block struct {
	library
	memory []byte
}

func (b *block) env() *byte    { return &b.memory[0] }
func (b *block) target() *byte { return &b.memory[4096] }

// child is the state of the driver process.
type child struct {
	calls   *gob.Decoder
	answers *gob.Encoder
	blocks  []*block
	current int // index of the block whose library is running

	write, read, log uintptr // callbacks, created once because they are never freed
}

// Main runs the child process. It serves calls until the parent process exits.
func Main() error {
	runtime.LockOSThread()
	return serve(os.NewFile(CallsFD, "calls"), os.NewFile(AnswersFD, "answers"))
}

func serve(calls io.Reader, answers io.Writer) error {
	c := &child{calls: gob.NewDecoder(calls), answers: gob.NewEncoder(answers)}
	c.write = purego.NewCallback(func(_, address uintptr, value uint32) uintptr {
		return c.accessRegister(Answer{Kind: Write, Address: uint32(address), Value: value}, nil)
	})
	c.read = purego.NewCallback(func(_, address uintptr, value *uint32) uintptr {
		return c.accessRegister(Answer{Kind: Read, Address: uint32(address)}, value)
	})
	c.log = purego.NewCallback(func(_, _ uintptr) uintptr { return 0 })
	for {
		var call Call
		if err := c.calls.Decode(&call); err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		answer := Answer{Kind: Done}
		if err := c.handleCall(call, &answer); err != nil {
			answer.Fault = err.Error()
		}
		if err := c.answers.Encode(answer); err != nil {
			return err
		}
	}
}

// accessRegister asks the parent to access a register. If the parent refuses, it returns 1 to the library, which is an
// error code in every release.
func (c *child) accessRegister(a Answer, value *uint32) uintptr {
	a.Block = c.current
	var reply Call
	if c.answers.Encode(a) != nil || c.calls.Decode(&reply) != nil {
		os.Exit(1) // the parent process has exited
	}
	if reply.Fault != "" {
		return 1
	}
	if value != nil {
		*value = reply.Value
	}
	return 0
}

func (c *child) handleCall(call Call, answer *Answer) error {
	if call.Op == Open {
		return c.openBlock(call)
	}
	if call.Block < 0 || call.Block >= len(c.blocks) {
		return fmt.Errorf("block %d is not open", call.Block)
	}
	c.current = call.Block
	b := c.blocks[call.Block]
	var table uintptr
	if err := b.codeError(b.table(b.target(), call.Table, &table)); err != nil {
		return fmt.Errorf("table %s: %w", call.Table, err)
	}
	if err := b.codeError(b.keyBits(table, &answer.KeyBits)); err != nil {
		return err
	}
	if err := b.codeError(b.paramsBits(table, &answer.ParamBits)); err != nil {
		return err
	}
	if call.Op == Reset {
		return b.codeError(b.reset(table))
	}
	return b.changeTable(call, table, answer)
}

// changeTable makes one change in a table. It passes NULL as the mask, as required for tables with exact keys.
func (b *block) changeTable(call Call, table uintptr, answer *Answer) error {
	key, err := padValue(call.Key, answer.KeyBits)
	if err != nil {
		return fmt.Errorf("key of %s: %w", call.Table, err)
	}
	if call.Op == Delete {
		return b.codeError(b.remove(table, &key[0], 0))
	}
	params, err := padValue(call.Params, answer.ParamBits)
	if err != nil {
		return fmt.Errorf("parameters of %s: %w", call.Action, err)
	}
	var action uint32
	if err := b.codeError(b.action(table, call.Action, &action)); err != nil {
		return fmt.Errorf("action %s: %w", call.Action, err)
	}
	switch call.Op {
	case Insert:
		return b.codeError(b.insert(table, &key[0], 0, 0, action, &params[0]))
	case Update:
		return b.codeError(b.update(table, &key[0], 0, action, &params[0]))
	}
	return fmt.Errorf("call %d is not known", call.Op)
}

// padValue returns a value, right-aligned, in the number of bytes that the library reads. The result has at least one
// byte, because the library needs a pointer even for an action without parameters.
func padValue(value []byte, bits uint32) ([]byte, error) {
	n := max(int(bits+7)/8, 1)
	if len(value) > n {
		return nil, fmt.Errorf("%d bytes do not fit into the %d bits of "+
			"the bitstream: P4 program and bitstream differ", len(value), bits)
	}
	out := make([]byte, n)
	copy(out[n-len(value):], value)
	return out, nil
}

func (c *child) openBlock(call Call) error {
	handle, err := purego.Dlopen(call.Library, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return err
	}
	b := new(block)
	for symbol, function := range b.symbols() {
		address, err := purego.Dlsym(handle, symbol)
		if err != nil {
			return fmt.Errorf("%s has no %s: it is no vitisnetp4 driver, or of an unknown release", call.Library, symbol)
		}
		purego.RegisterFunc(function, address)
	}
	config, err := purego.Dlsym(handle, call.Config)
	if err != nil {
		return fmt.Errorf("%s has no %s: which IP instance is it?", call.Library, call.Config)
	}
	if b.memory, err = unix.Mmap(-1, 0, contextBytes, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE); err != nil {
		return err
	}
	if err := b.codeError(b.stub(b.env())); err != nil {
		return err
	}
	// The environment has five pointers: user context, write, read, error log, information log.
	for i, pointer := range []uintptr{1, c.write, c.read, c.log, c.log} {
		binary.NativeEndian.PutUint64(b.memory[8*i:], uint64(pointer))
	}
	c.current = len(c.blocks)
	if err := b.codeError(b.init(b.target(), b.env(), config)); err != nil {
		return fmt.Errorf("start %s: %w", call.Config, err)
	}
	c.blocks = append(c.blocks, b)
	return nil
}

// codeError returns the error for a return code of the library.
func (b *block) codeError(code int32) error {
	if code == 0 {
		return nil
	}
	return fmt.Errorf("%s", b.name(code))
}
