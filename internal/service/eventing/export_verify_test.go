package eventing

import "context"

// LookAgainAfter sets what the verifier waits for before it looks at suspects again.
func (v *Verifier) LookAgainAfter(wait func(context.Context) error) { v.pause = wait }
