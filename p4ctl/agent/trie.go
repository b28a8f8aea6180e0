package agent

import "math/bits"

// trie is an immutable map with uint32 keys. A snapshot copies one struct, and a change copies one path of at most
// seven nodes. Changes with the same edit reuse the nodes that the edit has copied, so that the cost of a batch depends
// only on its own entries. A bijection scatters the keys, so two keys never collide.
type trie[V any] struct {
	root *node[V]
	size int
}

// edit owns the nodes that one batch has copied. It must not be used after a snapshot was returned to a caller. It must
// not be empty, because two empty structs may share an address.
type edit struct{ _ byte }

type node[V any] struct {
	present uint32 // bit i: digit i has a child
	owner   *edit
	kids    []child[V]
}

// child is a subtree or, if sub is nil, a leaf.
type child[V any] struct {
	sub   *node[V]
	key   uint32
	value V
}

const digitBits = 5

// scatterKey mixes the bits of a key, so that neighbouring addresses are spread over the trie. It is invertible.
func scatterKey(key uint32) uint32 {
	key ^= key >> 16
	key *= 0x7feb352d
	key ^= key >> 15
	key *= 0x846ca68b
	return key ^ key>>16
}

func (t trie[V]) get(key uint32) (value V, ok bool) {
	n := t.root
	for h := scatterKey(key); n != nil; h >>= digitBits {
		bit := uint32(1) << (h & 31)
		if n.present&bit == 0 {
			return value, false
		}
		c := &n.kids[bits.OnesCount32(n.present&(bit-1))]
		if c.sub == nil {
			if c.key != key {
				return value, false
			}
			return c.value, true
		}
		n = c.sub
	}
	return value, false
}

func (t *trie[V]) put(e *edit, key uint32, value V) {
	added := false
	t.root = t.root.put(e, scatterKey(key), 0, child[V]{key: key, value: value}, &added)
	if added {
		t.size++
	}
}

func (t *trie[V]) remove(e *edit, key uint32) {
	if _, ok := t.get(key); !ok {
		return
	}
	t.root = t.root.remove(e, scatterKey(key), key)
	t.size--
}

// all calls visit for every entry, in arbitrary order, until visit returns false.
func (t trie[V]) all(visit func(key uint32, value V) bool) { t.root.all(visit) }

func (n *node[V]) own(e *edit) *node[V] {
	if n == nil {
		return &node[V]{owner: e}
	}
	if n.owner == e {
		return n
	}
	return &node[V]{present: n.present, owner: e, kids: append(make([]child[V], 0, len(n.kids)+1), n.kids...)}
}

func (n *node[V]) put(e *edit, h uint32, depth int, leaf child[V], added *bool) *node[V] {
	n = n.own(e)
	bit := uint32(1) << (h & 31)
	at := bits.OnesCount32(n.present & (bit - 1))
	if n.present&bit == 0 {
		n.present |= bit
		n.kids = append(n.kids, child[V]{})
		copy(n.kids[at+1:], n.kids[at:])
		n.kids[at] = leaf
		*added = true
		return n
	}
	c := n.kids[at]
	switch {
	case c.sub != nil:
		n.kids[at].sub = c.sub.put(e, h>>digitBits, depth+1, leaf, added)
	case c.key == leaf.key:
		n.kids[at] = leaf
	default: // two keys have the same digits so far: move the older key down
		var ignore bool
		sub := (*node[V])(nil).put(e, scatterKey(c.key)>>((depth+1)*digitBits), depth+1, c, &ignore)
		n.kids[at] = child[V]{sub: sub.put(e, h>>digitBits, depth+1, leaf, added)}
	}
	return n
}

func (n *node[V]) remove(e *edit, h, key uint32) *node[V] {
	n = n.own(e)
	bit := uint32(1) << (h & 31)
	at := bits.OnesCount32(n.present & (bit - 1))
	if sub := n.kids[at].sub; sub != nil {
		if sub = sub.remove(e, h>>digitBits, key); sub != nil {
			n.kids[at].sub = sub
			return n
		}
	}
	n.present &^= bit
	n.kids = append(n.kids[:at], n.kids[at+1:]...)
	if len(n.kids) == 0 {
		return nil
	}
	return n
}

func (n *node[V]) all(visit func(uint32, V) bool) bool {
	if n == nil {
		return true
	}
	for i := range n.kids {
		c := &n.kids[i]
		if c.sub != nil && !c.sub.all(visit) || c.sub == nil && !visit(c.key, c.value) {
			return false
		}
	}
	return true
}
