package local

import (
	"crypto/rand"
	"encoding/hex"

	"example.com/twinbox/frame/config"
	"example.com/twinbox/ops/admin/client"
)

func newToken() config.Secret {
	token := make([]byte, secretBytes)
	_, _ = rand.Read(token) // never fails
	return config.Secret(hex.EncodeToString(token))
}

// writeOperators says how to operate this stack, for the operator's command.
func (h *stack) writeOperators() error {
	operators := client.Operators{Services: map[string]string{}, Token: h.at.AdminToken.Reveal()}
	for name, listen := range h.at.Services {
		operators.Services[name] = reachable(listen.Admin)
	}
	return operators.Write(h.folder.path)
}

func (h *stack) removeOperators() error { return client.RemoveOperators(h.folder.path) }
