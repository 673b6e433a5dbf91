package token

import (
	"cmp"
	"fmt"

	"rdzv/envmap"
	"rdzv/internal/hint"
)

// missingOnPlatform is the error of an agent that has no token: one that it creates would be that
// of its node alone.
func (o Owner) missingOnPlatform(missing error) error {
	how := cmp.Or(envmap.TokenOn(o.Platform),
		"set RDZV_TOKEN to the output of rdzv token, on all nodes")
	return hint.With(
		fmt.Errorf("%w: all %d nodes of the %s need the same token", missing, o.Agents, o.Platform), how,
	)
}
