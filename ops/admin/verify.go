package admin

import (
	"context"
	"net/http"

	"example.com/twinbox/engine/verify"
	"example.com/twinbox/frame/eventing"
	"example.com/twinbox/frame/web"
	"example.com/twinbox/ops/admin/adminapi"
)

// Verifier verifies the service's events; see [eventing.Verifier].
type Verifier interface {
	Run(ctx context.Context, asked eventing.Verification) (*verify.Verdict, error)
}

type verifyHandlers struct{ Config }

// Verify answers POST /admin/v1/verify.
func (h verifyHandlers) Verify(w http.ResponseWriter, r *http.Request) {
	request, err := web.Decode[adminapi.VerifyRequest](w, r)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	l := newLines(w, r)
	stop := l.keepAlive()
	defer stop()
	verdict, err := h.Verifier.Run(r.Context(), eventing.Verification{
		Since: request.Since, Progress: l.progress, Suspected: l.suspects,
	})
	stop()
	if err != nil {
		l.fail(err)
		return
	}
	l.write(adminapi.VerifyLine{Verdict: verdict})
}

// suspects says that something is to be looked at again, which takes a while.
func (l *lines) suspects(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.write(adminapi.VerifyLine{Suspects: &n})
}
