package hello

import (
	"net/http"

	"example.com/twinbox/internal/ops"
	"example.com/twinbox/internal/service/eventing"
)

func offerOperations(node *eventing.Node, _ Config) (prefix string, handler http.Handler, err error) {
	return ops.Offer(node, ops.Own{})
}
