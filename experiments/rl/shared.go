package rl

import (
	"sync"

	"github.com/ByteArena/box2d"
)

// fillContactTable fills the table of contact constructors in the port of Box2D before any world flies. Otherwise the
// first contact would fill the table without a lock, and a second world could see it half-filled and lose a contact.
// The port's only other shared state is a set of global call counters that are never read; see solve_race.go.
var fillContactTable = sync.OnceFunc(func() {
	world := box2d.MakeB2World(box2d.MakeB2Vec2(0, 0))
	def := box2d.MakeB2BodyDef()
	addEdge(world.CreateBody(&def), [2]float64{-1, 0}, [2]float64{1, 0}, 0)
	def.Type = box2d.B2BodyType.B2_dynamicBody
	shape := box2d.MakeB2PolygonShape()
	shape.SetAsBox(1, 1)
	addFixture(world.CreateBody(&def), &shape, 1, 0, categoryHull, categoryGround)
	world.Step(1.0/fps, 1, 1)
})
