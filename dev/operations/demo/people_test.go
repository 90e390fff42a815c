package demo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
)

func TestPoisonIsWhatTheContractRefuses(t *testing.T) {
	t.Parallel()
	event := newPoison()
	checker, err := contract.Load()
	require.NoError(t, err)
	require.Error(t, checker.Validate(event))
	require.NotEqual(t, contract.SourceCustomer, event.Source, "Customer's verification does not count it")
}
