package lander

import (
	"sync"

	"github.com/ByteArena/box2d"
)

// The port of Box2D has two things that worlds share. Its table of contact constructors is filled when the first contact
// of the process appears, without a lock: a second world could see it half filled and lose a contact, so that it is
// filled here, once, before any world flies. And it counts its calls in global variables, which nothing reads; see
// solve_race.go.
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
