package notification

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/domain"
)

var (
	testWriter = Writer{
		Links: testKey, PublicURL: "https://twinbox.example.org", LinksFor: 36 * time.Hour, Host: "example.org",
	}
	writtenAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

func testMail() Mail {
	return Mail{
		ID:     uuid.MustParse("0190a1b2-c3d4-7e5f-8a9b-000000000001"),
		UserID: someone, Recipient: "ada@example.org",
	}
}

func TestTheLetterSaysWhoWhereAndUntilWhen(t *testing.T) {
	t.Parallel()
	letter, err := testWriter.Write(testMail(), writtenAt)
	require.NoError(t, err)
	require.Equal(t, "0190a1b2-c3d4-7e5f-8a9b-000000000001@example.org", letter.MessageID)
	require.EqualValues(t, domain.Email("ada@example.org"), letter.To)
	require.Equal(t, writtenAt, letter.WrittenAt)
	require.True(t, strings.HasPrefix(letter.Text, "Hello,\n"), letter.Text)
	require.Contains(t, letter.Text, "3 January 2026, 15:04 UTC")

	pattern := regexp.MustCompile(`https://twinbox\.example\.org/v1/verifications\?token=(\S+)`)
	link := pattern.FindStringSubmatch(letter.Text)
	require.Len(t, link, 2)
	require.NotContains(t, link[0], "ada", "no address in a link")
	claim, err := domain.ParseToken(link[1])
	require.NoError(t, err)
	require.Equal(t, someone, claim.UserID)
	require.Equal(t, writtenAt.Add(36*time.Hour), claim.Expires)
	require.NoError(t, testKey.Verify(claim, "ada@example.org", writtenAt))

	again, err := testWriter.Write(testMail(), writtenAt.Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, letter.MessageID, again.MessageID)
	require.NotEqual(t, letter.Text, again.Text, "a link lives from when it is sent")
}

func TestAMailGoesToTheContactAsItIsBySending(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.register(t)
	_, err := b.pool.Exec(t.Context(), `update contact set email = 'countess@example.org'`)
	require.NoError(t, err)
	b.start(t)
	messages := b.awaitMail(t)
	require.Equal(t, []string{"countess@example.org"}, messages[0].To)
}

// A stranger's name may be a message to the mail's reader.
func TestAMailCarriesNoWordOfTheOneWhoSignedUp(t *testing.T) {
	t.Parallel()
	const lure = "Your parcel waits at https://evil.example/pay - call 0900 1234"
	b := setup(t)
	b.consume(t, domain.UserRegistered{
		UserID: someone, Email: "ada@example.org", Name: lure, RegisteredAt: time.Now().UTC(),
	}, 1)
	b.consume(t, domain.UserRenamed{UserID: someone, Name: lure + "!", RenamedAt: time.Now().UTC()}, 2)
	b.start(t)
	messages := b.awaitMail(t)
	for _, word := range []string{"parcel", "evil.example", "0900"} {
		require.NotContains(t, messages[0].Text+messages[0].Subject+messages[0].From, word)
	}
	require.Len(t, messages[0].Links, 1, "our own link and no other")
}

func TestAContactThatIsGoneGetsNoMail(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.register(t)
	_, err := b.pool.Exec(t.Context(), `delete from contact`)
	require.NoError(t, err)
	b.start(t)
	b.awaitState(t, "skipped")
	require.Empty(t, b.box.Messages())
	require.Equal(t, 1, b.count(t,
		`select count(*) from lease where error = 'the recipient is no longer a contact' and attempts = 1`))
	require.Zero(t, b.count(t, `select count(*) from outbox`), "no mail is announced")
}

func TestALeaseWithoutItsMailFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.register(t)
	_, err := b.pool.Exec(t.Context(), `delete from mail`)
	require.NoError(t, err)
	b.start(t)
	b.awaitState(t, "failed")
}
