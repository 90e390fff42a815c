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
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/service/eventing"
)

func offerOperations(node *eventing.Node, _ Config) error {
	return ops.Offer(node, ops.Own{Tell: func(ctx context.Context, id string) (adminapi.Story, error) {
		return readStory(ctx, node.Pool, id)
	}})
}

func checks(Config) []eventing.Check {
	return []eventing.Check{eventing.CheckProjection("profiles", "profile", "user_id", profileConsumer)}
}

// readStory finds a user by their id. A mail address leads to its user. The story of an unknown id is empty.
func readStory(ctx context.Context, pool *pgxpool.Pool, id string) (story adminapi.Story, err error) {
	if email, notOne := domain.ParseEmail(id); notOne == nil {
		story, err = readAddressee(ctx, pool, email)
	} else if user, notOne := uuid.Parse(id); notOne == nil {
		story, err = readUserStory(ctx, pool, user)
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return adminapi.Story{}, nil
	case err != nil:
		return story, fmt.Errorf("read user: %w", err)
	}
	return story, nil
}

const selectAddressee = `select id::text from users where email_key = $1`

func readAddressee(ctx context.Context, pool *pgxpool.Pool, email domain.Email) (adminapi.Story, error) {
	var user string
	err := pool.QueryRow(ctx, selectAddressee, email.Key()).Scan(&user)
	return adminapi.Story{Kind: adminapi.StoryKindUser, Related: []string{user}}, err
}

const selectStory = `
select u.registered_at, k.version, p.updated_at, coalesce(p.version, 0), coalesce(m.mail_id, '')
from users u
join outbox_key k on k.topic = $2 and k.key = u.id::text
left join profile p on p.user_id = u.id
left join verification_mail m on m.user_id = u.id
where u.id = $1`

func readUserStory(ctx context.Context, pool *pgxpool.Pool, user uuid.UUID) (story adminapi.Story, err error) {
	var signedUp time.Time
	var version, profileVersion int64
	var profileAt *time.Time
	var mail string
	err = pool.QueryRow(ctx, selectStory, user, contract.TopicUsers).
		Scan(&signedUp, &version, &profileAt, &profileVersion, &mail)
	if err != nil {
		return story, err
	}
	story.Kind = adminapi.StoryKindUser
	story.Steps = []adminapi.StoryStep{{
		At: signedUp, Station: adminapi.StoryStepStationRequest, Outcome: "signed_up", Key: user.String(), Version: 1,
	}}
	if profileAt != nil {
		story.Steps = append(story.Steps, adminapi.StoryStep{
			At: *profileAt, Station: adminapi.StoryStepStationInbox, Consumer: profileConsumer, Outcome: "applied",
			Key: user.String(), Version: profileVersion,
			Detail: fmt.Sprintf("the profile is at version %d of %d", profileVersion, version),
		})
	}
	if mail != "" {
		story.Related = []string{mail}
	}
	return story, nil
}
