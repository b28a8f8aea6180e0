package experiments

import "github.com/olafctl/olaf/results/result"

// NewResult returns an empty result for an experiment that runs with the given options.
func NewResult(experiment, artefact string, o *Options, config any) *result.Result {
	r := result.New(experiment, artefact, config)
	r.Quick = o.Quick
	return r
}
