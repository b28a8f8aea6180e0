package engine

import "github.com/olafctl/olaf"

// provenance records the contributors of updates. Each slot has a chain of nodes in an arena that grows as needed and
// is reused. Node 0 ends every chain.
type provenance struct {
	nodes []node
	free  int32
}

type node struct {
	contributor olaf.Contributor
	next        int32
}

// add appends the contributors of u to the chain of p. If inside is empty, u itself is the contributor.
func (l *provenance) add(p *place, u *olaf.Update, inside []olaf.Contributor) {
	if inside == nil {
		l.push(p, olaf.Contributor{GenNS: u.GenNS, Seq: u.Seq, Worker: u.Worker})
		return
	}
	for _, who := range inside {
		l.push(p, who)
	}
}

func (l *provenance) push(p *place, contributor olaf.Contributor) {
	i := l.free
	if i != 0 {
		l.free = l.nodes[i].next
	} else {
		i = int32(len(l.nodes))
		l.nodes = append(l.nodes, node{})
	}
	l.nodes[i] = node{contributor: contributor}
	if p.last == 0 {
		p.first = i
	} else {
		l.nodes[p.last].next = i
	}
	p.last = i
}

// drop frees all contributors of p by freeing the whole chain at once.
func (l *provenance) drop(p *place) {
	if p.last == 0 {
		return
	}
	l.nodes[p.last].next = l.free
	l.free = p.first
	p.first, p.last = 0, 0
}

// list appends p's contributors to buf, oldest first.
func (l *provenance) list(p *place, buf []olaf.Contributor) []olaf.Contributor {
	for i := p.first; i != 0; i = l.nodes[i].next {
		buf = append(buf, l.nodes[i].contributor)
	}
	return buf
}

// reset frees all nodes. The caller must reset the chains of all slots.
func (l *provenance) reset() {
	l.nodes = l.nodes[:1]
	l.free = 0
}
