package local

import (
	"fmt"
	"io"
)

func writeSignUp(out io.Writer, at Addresses) {
	_, _ = fmt.Fprintf(out, `  Sign up:

    curl -XPOST %s/v1/signups -H 'content-type: application/json' -d '{"email":"ada@example.org","name":"Ada"}'

  The mail appears at http://%s within a moment.
  Its link shows a button, and the button verifies the address.
`, Reachable(at.API()), at.Mailbox)
}
