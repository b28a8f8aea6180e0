package fpga

// Outcome is the result of a Check.
type Outcome string

const (
	Passed Outcome = "passed"
	Noted  Outcome = "noted" // works, but the user should know
	NotRun Outcome = "skipped"
	Failed Outcome = "failed"
)

// Check describes one check that was made before a card was used, and its result.
type Check struct {
	Name    string  `json:"name"`
	Outcome Outcome `json:"outcome"`
	Seen    string  `json:"seen"`
	Next    string  `json:"next,omitempty"` // advice
}
