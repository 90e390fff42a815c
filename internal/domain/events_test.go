package domain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/event"
)

func TestEventsAreCheckedFieldByField(t *testing.T) {
	t.Parallel()
	const id = "01980a5c-52d4-7c3b-9a44-0d6f3f1f2a10"
	now := time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	for code, events := range map[domain.Code][]event.Ruled{
		"": {
			domain.UserRegistered{UserID: id, Email: "ada@example.org", Name: "Ada", RegisteredAt: now},
			domain.UserRenamed{UserID: id, Name: "Ada", RenamedAt: now},
			domain.EmailVerified{UserID: id, Email: "ada@example.org", VerifiedAt: now},
			domain.VerificationEmailSent{UserID: id, MailID: id, SentAt: now},
		},
		domain.CodeInvalidUserID: {
			domain.UserRegistered{UserID: "7", Email: "ada@example.org", Name: "Ada", RegisteredAt: now},
			domain.UserRenamed{Name: "Ada", RenamedAt: now},
			domain.EmailVerified{UserID: "7", Email: "ada@example.org", VerifiedAt: now},
			domain.VerificationEmailSent{UserID: "7", MailID: id, SentAt: now},
		},
		domain.CodeInvalidEmail: {
			domain.UserRegistered{UserID: id, Email: "a@localhost", Name: "Ada", RegisteredAt: now},
			domain.EmailVerified{UserID: id, Email: "ada@Example.org", VerifiedAt: now},
		},
		domain.CodeInvalidName: {
			domain.UserRegistered{UserID: id, Email: "ada@example.org", Name: " ", RegisteredAt: now},
			domain.UserRenamed{UserID: id, Name: "Ada\u202e", RenamedAt: now},
			domain.UserRenamed{UserID: id, Name: "Ada ", RenamedAt: now},
		},
		domain.CodeInvalidMailID: {domain.VerificationEmailSent{UserID: id, MailID: "7", SentAt: now}},
		domain.CodeInvalidTime: {
			domain.UserRegistered{UserID: id, Email: "ada@example.org", Name: "Ada"},
			domain.UserRenamed{UserID: id, Name: "Ada"},
			domain.EmailVerified{UserID: id, Email: "ada@example.org"},
			domain.VerificationEmailSent{UserID: id, MailID: id},
		},
	} {
		for _, e := range events {
			err := e.Check()
			if code == "" {
				require.NoError(t, err)
				user, at := e.About()
				require.Equal(t, id, user)
				require.Equal(t, now, at)
				continue
			}
			require.ErrorIs(t, err, &domain.Error{Code: code}, "%+v", e)
		}
	}
}
