package devstack

import (
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local"
)

// The ports are those of the README.
func TestCustomerAndNotificationHaveFlags(t *testing.T) {
	t.Parallel()
	code, stdout, _ := invoke(t, "run", "--help")
	require.Zero(t, code)
	require.Contains(t, stdout, "$TWINBOX_CUSTOMER_ADDR")
	for want, args := range map[local.Listen][]string{
		{API: "127.0.0.1:8080", Admin: "127.0.0.1:8081"}: {"run"},
		{API: "127.0.0.1:80", Admin: "127.0.0.1:8081"}:   {"run", "--customer-addr=127.0.0.1:80"},
		{API: "127.0.0.1:8080", Admin: "127.0.0.1:81"}:   {"run", "--customer-admin-addr=127.0.0.1:81"},
	} {
		commands := newCommands(nil)
		parser, err := kong.New(commands)
		require.NoError(t, err)
		parsed, err := parser.Parse(args)
		require.NoError(t, err)
		listen := readAddresses(parsed, nil)
		require.Equal(t, want, listen["customer"])
		require.Equal(t, local.Listen{Admin: "127.0.0.1:8082"}, listen["notification"])
	}
}
