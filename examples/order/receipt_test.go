package order

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/mail"
)

// That it is for an operator to say what became of a receipt is why the service waits.
func TestWhyReceiptsWait(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	require.Equal(t, inbox.Applied, s.consume(t, told(t, newPayment(s.place(t), price))))
	why := mail.Why(s.pool, handlerReceipt, nil)
	cause, err := why(t.Context())
	require.NoError(t, err)
	require.Empty(t, cause.Code, "a receipt that is owed waits for no operator")
	_, err = s.pool.Exec(t.Context(), `update lease set state = 'uncertain', attempts = 1, ended_at = clock_timestamp()`)
	require.NoError(t, err)
	cause, err = why(t.Context())
	require.NoError(t, err)
	require.Equal(t, "mail_uncertain", cause.Code)
	require.Regexp(t, `^Of 1 mail it is not known whether the mail server took it, of the first since `, cause.Sentence)
	require.Equal(t, "twinbox mail list --state uncertain", cause.Command)
}
