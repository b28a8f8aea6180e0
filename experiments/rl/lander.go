package rl

// This file implements LunarLander-v3 (Gymnasium) with discrete actions and no wind, on the Box2D port of ByteArena.
// Constants, the order of random draws and the reward match version 3 of the original, so that the observation after
// Reset(42) equals the published one. The port computes in float64 and the original in float32, so long trajectories
// agree in their statistics but not bit for bit. Wind, which is off by default in the original, is left out.

import (
	"math"

	"github.com/ByteArena/box2d"
)

// observationSize is the number of values in an Observation, Actions the number of actions.
const (
	observationSize = 8
	Actions         = 4
	// maxSteps is the number of steps after which an episode is truncated.
	maxSteps = 1000
)

// Observation is x, y, vx, vy, angle, angular velocity and the two leg contacts, scaled to about 1.
type Observation [observationSize]float32

// Action is the pilot's action for one fiftieth of a second.
type Action uint8

const (
	Coast Action = iota
	FireLeft
	FireMain
	FireRight
)

// The original's constants. Lengths in px are divided by scale to get metres.
const (
	fps           = 50
	scale         = 30.0
	viewportW     = 600.0
	viewportH     = 400.0
	worldW        = viewportW / scale
	worldH        = viewportH / scale
	mainPower     = 13.0
	sidePower     = 0.6
	initialPush   = 1000.0
	legAway       = 20.0
	legDown       = 18.0
	legHalfW      = 2.0
	legHalfH      = 8.0
	legTorque     = 40.0
	mainEngineY   = 4.0
	sideAway      = 12.0
	sideHeight    = 14.0
	sideLever     = 17.0 // the original uses 17 px here and 14 px for the height: part of its physics
	terrainPoints = 12   // number of heights drawn, one more than chunks
	chunks        = terrainPoints - 1

	velocityIterations = 6 * 30
	positionIterations = 2 * 30

	categoryGround = 0x0001
	categoryHull   = 0x0010
	categoryLeg    = 0x0020

	mainCost = 0.30
	sideCost = 0.03
)

var hullOutline = [...][2]float64{{-14, 17}, {-17, 0}, {-17, -10}, {17, -10}, {17, 0}, {14, 17}}

// World is one lander over one terrain. The zero value needs a Reset before use. Worlds are independent of each
// other (but see shared.go); a World is not safe for concurrent use.
type World struct {
	random  *random
	box     box2d.B2World
	hull    *box2d.B2Body
	legs    [2]*box2d.B2Body
	contact [2]bool
	crashed bool
	terrain [chunks][2]float64 // metres
	shaping float64
	started bool
	steps   int
	last    Action
}

// Seed restarts the random numbers like Gymnasium's reset(seed=…).
func (w *World) Seed(seed uint64) { w.random = newRandom(seed) }

// Reset starts a new episode and returns its first observation. If Seed was not called before, it uses the seed 0.
func (w *World) Reset() Observation {
	if w.random == nil {
		w.Seed(0)
	}
	fillContactTable()
	w.box = box2d.MakeB2World(box2d.MakeB2Vec2(0, -10))
	w.box.SetContactListener(touch{w})
	w.contact, w.crashed, w.started, w.steps, w.last = [2]bool{}, false, false, 0, Coast
	w.buildTerrain()
	w.buildHull()
	for i, side := range [2]float64{-1, +1} {
		w.buildLeg(i, side)
	}
	observation, _, _, _ := w.Step(Coast)
	w.steps = 0
	return observation
}

func (w *World) buildTerrain() {
	var height [terrainPoints]float64
	for i := range height {
		height[i] = w.random.Uniform(0, worldH/2)
	}
	for i := chunks/2 - 2; i <= chunks/2+2; i++ {
		height[i] = padY
	}
	for i := range w.terrain {
		before := height[(i+terrainPoints-1)%terrainPoints]
		w.terrain[i] = [2]float64{worldW / (chunks - 1) * float64(i), 0.33 * (before + height[i] + height[i+1])}
	}
	def := box2d.MakeB2BodyDef()
	ground := w.box.CreateBody(&def)
	addEdge(ground, [2]float64{0, 0}, [2]float64{worldW, 0}, 0.2)
	for i := 0; i < chunks-1; i++ {
		addEdge(ground, w.terrain[i], w.terrain[i+1], 0.1)
	}
}

const padY = worldH / 4

func addEdge(body *box2d.B2Body, from, to [2]float64, friction float64) {
	edge := box2d.MakeB2EdgeShape()
	edge.Set(box2d.MakeB2Vec2(from[0], from[1]), box2d.MakeB2Vec2(to[0], to[1]))
	addFixture(body, &edge, 0, friction, categoryGround, 0xffff)
}

func addFixture(body *box2d.B2Body, shape box2d.B2ShapeInterface, density, friction float64, category, mask uint16) {
	def := box2d.MakeB2FixtureDef()
	def.Shape, def.Density, def.Friction = shape, density, friction
	def.Filter = box2d.MakeB2Filter()
	def.Filter.CategoryBits, def.Filter.MaskBits = category, mask
	body.CreateFixtureFromDef(&def)
}

func (w *World) buildHull() {
	def := box2d.MakeB2BodyDef()
	def.Type = box2d.B2BodyType.B2_dynamicBody
	def.Position.Set(worldW/2, worldH)
	w.hull = w.box.CreateBody(&def)
	outline := make([]box2d.B2Vec2, len(hullOutline))
	for i, p := range hullOutline {
		outline[i].Set(p[0]/scale, p[1]/scale)
	}
	shape := box2d.MakeB2PolygonShape()
	shape.Set(outline, len(outline))
	addFixture(w.hull, &shape, 5, 0.1, categoryHull, categoryGround)
	fx := w.random.Uniform(-initialPush, initialPush)
	fy := w.random.Uniform(-initialPush, initialPush)
	w.hull.ApplyForceToCenter(box2d.MakeB2Vec2(fx, fy), true)
}

func (w *World) buildLeg(index int, side float64) {
	def := box2d.MakeB2BodyDef()
	def.Type = box2d.B2BodyType.B2_dynamicBody
	def.Position.Set(worldW/2-side*legAway/scale, worldH)
	def.Angle = side * 0.05
	leg := w.box.CreateBody(&def)
	shape := box2d.MakeB2PolygonShape()
	shape.SetAsBox(legHalfW/scale, legHalfH/scale)
	addFixture(leg, &shape, 1, 0.2, categoryLeg, categoryGround)
	w.legs[index] = leg

	joint := box2d.MakeB2RevoluteJointDef()
	joint.BodyA, joint.BodyB = w.hull, leg
	joint.LocalAnchorB.Set(side*legAway/scale, legDown/scale)
	joint.EnableMotor, joint.MaxMotorTorque, joint.MotorSpeed = true, legTorque, 0.3*side
	joint.EnableLimit, joint.LowerAngle, joint.UpperAngle = true, 0.4, 0.9
	if side > 0 {
		joint.LowerAngle, joint.UpperAngle = -0.9, -0.4
	}
	w.box.CreateJoint(&joint)
}

// touch converts Box2D's contacts to contacts of the legs and to crashes.
type touch struct{ w *World }

func (t touch) BeginContact(c box2d.B2ContactInterface) {
	a, b := c.GetFixtureA().GetBody(), c.GetFixtureB().GetBody()
	if a == t.w.hull || b == t.w.hull {
		t.w.crashed = true
	}
	t.setLegs(a, b, true)
}

func (t touch) EndContact(c box2d.B2ContactInterface) {
	t.setLegs(c.GetFixtureA().GetBody(), c.GetFixtureB().GetBody(), false)
}

func (t touch) setLegs(a, b *box2d.B2Body, down bool) {
	for i, leg := range t.w.legs {
		if a == leg || b == leg {
			t.w.contact[i] = down
		}
	}
}

func (touch) PreSolve(box2d.B2ContactInterface, box2d.B2Manifold)         {}
func (touch) PostSolve(box2d.B2ContactInterface, *box2d.B2ContactImpulse) {}

// Step advances the world by one fiftieth of a second. terminated reports whether the lander crashed, left the world or
// came to rest. truncated reports whether maxSteps steps have passed; a learner then estimates the remaining reward
// from its value function.
func (w *World) Step(action Action) (observation Observation, reward float64, terminated, truncated bool) {
	w.last = action
	fuel := w.fire(action)
	w.solve()
	w.steps++

	state := w.state()
	shaping := shapingOf(&state)
	if w.started {
		reward = shaping - w.shaping
	}
	w.shaping, w.started = shaping, true
	reward -= fuel
	switch {
	case !w.hull.IsAwake():
		reward, terminated = 100, true
	case w.crashed || math.Abs(state[0]) >= 1:
		reward, terminated = -100, true
	}
	for i, v := range state {
		observation[i] = float32(v)
	}
	return observation, reward, terminated, w.steps >= maxSteps
}

// shapingOf returns the potential of a state, whose change is part of the reward. The potential is high near the pad,
// at low speed, upright, and with the legs down.
func shapingOf(s *[observationSize]float64) float64 {
	return -100*math.Sqrt(s[0]*s[0]+s[1]*s[1]) -
		100*math.Sqrt(s[2]*s[2]+s[3]*s[3]) -
		100*math.Abs(s[4]) + 10*s[6] + 10*s[7]
}

// fire applies the impulse of the engines and returns the fuel cost. It draws the two dispersion numbers for every
// action, like the original game.
func (w *World) fire(action Action) float64 {
	angle := w.hull.GetAngle()
	tipX, tipY := math.Sin(angle), math.Cos(angle)
	sideX, sideY := -tipY, tipX
	d0 := w.random.Uniform(-1, 1) / scale
	d1 := w.random.Uniform(-1, 1) / scale
	at := w.hull.GetPosition()
	switch action {
	case FireMain:
		ox := tipX*(mainEngineY/scale+2*d0) + sideX*d1
		oy := -tipY*(mainEngineY/scale+2*d0) - sideY*d1
		w.push(ox, oy, mainPower, at.X+ox, at.Y+oy)
		return mainCost
	case FireLeft, FireRight:
		direction := float64(action) - 2
		lateral := 3*d1 + direction*sideAway/scale
		ox := tipX*d0 + sideX*lateral
		oy := -tipY*d0 - sideY*lateral
		w.push(ox, oy, sidePower, at.X+ox-tipX*sideLever/scale, at.Y+oy+tipY*sideHeight/scale)
		return sideCost
	}
	return 0
}

func (w *World) push(ox, oy, power, atX, atY float64) {
	w.hull.ApplyLinearImpulse(box2d.MakeB2Vec2(-ox*power, -oy*power), box2d.MakeB2Vec2(atX, atY), true)
}

func (w *World) state() [observationSize]float64 {
	at, v := w.hull.GetPosition(), w.hull.GetLinearVelocity()
	return [observationSize]float64{
		(at.X - worldW/2) / (worldW / 2),
		(at.Y - (padY + legDown/scale)) / (worldH / 2),
		v.X * (worldW / 2) / fps,
		v.Y * (worldH / 2) / fps,
		w.hull.GetAngle(),
		20 * w.hull.GetAngularVelocity() / fps,
		toFloat(w.contact[0]),
		toFloat(w.contact[1]),
	}
}

func toFloat(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
