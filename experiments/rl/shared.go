package rl

import (
	"sync"

	"github.com/ByteArena/box2d"
)

// Worlds share two things in the port of Box2D. Its table of contact constructors is filled without a lock at the first
// contact: a second world could see it half-filled and lose a contact, so it is filled here once before any world
// flies. The port also counts its calls in global variables that are never read; see solve_race.go.
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
