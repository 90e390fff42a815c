package customer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/ops"
	"example.com/twinbox/internal/ops/admin"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/service/eventing"
)

const selectStory = `
select u.registered_at, k.version, p.updated_at, coalesce(p.version, 0), coalesce(m.mail_id, '')
from users u
join outbox_key k on k.topic = $2 and k.key = u.id::text
left join profile p on p.user_id = u.id
left join verification_mail m on m.user_id = u.id
where u.id = $1`

func offerOperations(node *eventing.Node, _ Config) error {
	return ops.Offer(node, ops.Own{Tell: tellOf(node.Pool)})
}

const selectAddressee = `select id::text from users where email_key = $1`

// A mail address leads to its user.
func tellOf(pool *pgxpool.Pool) admin.Teller {
	return func(ctx context.Context, id string) (told adminapi.Story, err error) {
		if email, notOne := domain.ParseEmail(id); notOne == nil {
			var user string
			err := pool.QueryRow(ctx, selectAddressee, email.Key()).Scan(&user)
			if errors.Is(err, pgx.ErrNoRows) {
				return told, nil
			}
			return adminapi.Story{Kind: adminapi.StoryKindUser, Related: []string{user}}, err
		}
		user, err := uuid.Parse(id)
		if err != nil {
			return told, nil
		}
		var signedUp time.Time
		var version, profileVersion int64
		var profileAt *time.Time
		var mail string
		err = pool.QueryRow(ctx, selectStory, user, contract.TopicUsers).
			Scan(&signedUp, &version, &profileAt, &profileVersion, &mail)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return told, nil
		case err != nil:
			return told, fmt.Errorf("read user: %w", err)
		}
		told.Kind = adminapi.StoryKindUser
		told.Steps = []adminapi.StoryStep{{
			At: signedUp, Station: adminapi.StoryStepStationRequest, Outcome: "signed_up", Key: user.String(), Version: 1,
		}}
		if profileAt != nil {
			told.Steps = append(told.Steps, adminapi.StoryStep{
				At: *profileAt, Station: adminapi.StoryStepStationInbox, Consumer: profileConsumer, Outcome: "applied",
				Key: user.String(), Version: profileVersion,
				Detail: fmt.Sprintf("the profile is at version %d of %d", profileVersion, version),
			})
		}
		if mail != "" {
			told.Related = []string{mail}
		}
		return told, nil
	}
}

func checks(Config) []eventing.Check {
	return []eventing.Check{eventing.CheckProjection("profiles", "profile", "user_id", profileConsumer)}
}
