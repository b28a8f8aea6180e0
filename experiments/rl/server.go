package rl

// emaRate is the rate at which the running mean of a gate follows new rewards.
const emaRate = 0.1

// ServerStats contains the numbers of frames, updates and steps at a parameter server.
type ServerStats struct {
	Received uint64 `json:"received"` // frames, merged or not
	Inside   uint64 `json:"inside"`   // updates inside them
	Accepted uint64 `json:"accepted"` // frames that passed the gate
	Versions uint64 `json:"versions"` // steps of the weights
}

// server is the parameter server of one cluster, or of a part of its weights.
type server struct {
	config   *Config
	weights  []float32
	running  []float32 // g_a
	started  bool      // running is set
	bar      float64   // r_g
	hasBar   bool
	gathered int // updates in running, for Periodic and Sync
	quorum   int // updates per step in these modes
	stats    ServerStats
}

// newServer returns a server that owns the initial weights.
func newServer(c *Config, initial []float32, members int) *server {
	s := &server{config: c, weights: initial, running: make([]float32, len(initial)), quorum: c.Threshold}
	if c.Mode == Sync {
		s.quorum = members
	}
	return s
}

// receive processes a frame with the mean gradient and the mean reward of count updates. It returns true if all workers
// get the new weights, and false if only the contributors do.
func (s *server) receive(g []float32, reward float64, count int) (broadcast bool) {
	s.stats.Received++
	s.stats.Inside += uint64(count)
	if s.config.Mode == Async {
		s.apply(g, reward, count)
		return false
	}
	s.stats.Accepted++
	for i, v := range g {
		s.running[i] += v
	}
	s.gathered++
	if s.gathered < s.quorum {
		return false
	}
	s.step(s.running, s.config.StepSize/float32(s.gathered))
	clear(s.running)
	s.gathered = 0
	return true
}

func (s *server) apply(g []float32, reward float64, count int) {
	if !s.pass(reward) {
		return
	}
	s.stats.Accepted++
	if s.config.Average && s.started {
		for i, v := range g {
			s.running[i] = float32(0.5 * (s.running[i] + v))
		}
	} else {
		copy(s.running, g)
		s.started = true
	}
	size := s.config.StepSize
	if s.config.WeighByCount {
		size *= float32(count)
	}
	s.step(s.running, size)
}

// step moves the weights by size·g. The plus sign in the paper's w ← w + γ·g_a means that g is an ascent direction.
func (s *server) step(g []float32, size float32) {
	for i, v := range g {
		s.weights[i] += float32(size * v)
	}
	s.stats.Versions++
}

// pass reports whether the gate accepts an update with the given reward. It also updates the gate's state.
func (s *server) pass(reward float64) bool {
	first := !s.hasBar
	s.hasBar = true
	switch s.config.Gate {
	case MaxGate:
		if first || reward > s.bar {
			s.bar = reward
			return true
		}
		return false
	case EMAGate, BandGate:
		bar := s.bar
		if s.config.Gate == BandGate {
			bar -= s.config.Band
		}
		if first {
			s.bar = reward
			return true
		}
		s.bar += emaRate * (reward - s.bar)
		return reward > bar
	}
	return true
}
