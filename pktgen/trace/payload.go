package trace

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Constants of FNV-1a with 64 bits.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// GradientDigest returns a digest that identifies gradients: the 64-bit FNV-1a hash over their little-endian float32
// bytes.
func GradientDigest(gradients []float32) uint64 {
	h := uint64(fnvOffset)
	for _, v := range gradients {
		b := uint64(math.Float32bits(v))
		h = (h ^ b&0xff) * fnvPrime
		h = (h ^ b>>8&0xff) * fnvPrime
		h = (h ^ b>>16&0xff) * fnvPrime
		h = (h ^ b>>24) * fnvPrime
	}
	return h
}

func writeGradients(out io.Writer, gradients []float32) error {
	var word [4]byte
	for _, v := range gradients {
		binary.LittleEndian.PutUint32(word[:], math.Float32bits(v))
		if _, err := out.Write(word[:]); err != nil {
			return err
		}
	}
	return nil
}

// Payload reads a payload file. The file contains the gradients of every update in its trace, in little-endian float32.
type Payload struct {
	in        io.Reader
	bytes     []byte
	gradients []float32
	rows      uint64
}

// NewPayload returns a reader for the payload of a trace with the header h.
func NewPayload(in io.Reader, h *Header) *Payload {
	return &Payload{in: in, bytes: make([]byte, 4*h.Lanes), gradients: make([]float32, h.Lanes)}
}

// Next returns the gradients of u, which must be the next update in the trace. The slice is overwritten by the next
// call. The error matches ErrPayload if the file is too short or does not match u.
func (p *Payload) Next(u *Update) ([]float32, error) {
	if _, err := io.ReadFull(p.in, p.bytes); err != nil {
		return nil, fmt.Errorf("%w: it ends after %d updates", ErrPayload, p.rows)
	}
	p.rows++
	for i := range p.gradients {
		p.gradients[i] = math.Float32frombits(binary.LittleEndian.Uint32(p.bytes[4*i:]))
	}
	if d := GradientDigest(p.gradients); d != u.Digest {
		return nil, fmt.Errorf("%w: update %d has digest %016x and its gradients %016x", ErrPayload, p.rows, u.Digest,
			d)
	}
	return p.gradients, nil
}

// End returns an error that matches ErrPayload if the file does not end after the last update.
func (p *Payload) End() error {
	if n, _ := p.in.Read(p.bytes[:1]); n > 0 {
		return fmt.Errorf("%w: it goes on after %d updates", ErrPayload, p.rows)
	}
	return nil
}
