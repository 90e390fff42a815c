package payments

import (
	"example.com/twinbox/internal/ops"
	"example.com/twinbox/internal/service/eventing"
)

func offerOperations(node *eventing.Node, _ Config) error {
	return ops.Offer(node, ops.Own{})
}
