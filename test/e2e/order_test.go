package e2e

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract/contracttest"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/test/testkit"
)

func life(t *testing.T, id domain.UserID) map[int64]*message.Message {
	t.Helper()
	at := time.Now().UTC()
	events := map[int64]event.Ruled{
		1: domain.UserRegistered{UserID: id, Email: domain.Email(id + "@example.org"), Name: "Ada", RegisteredAt: at},
		2: domain.UserRenamed{UserID: id, Name: "Countess", RenamedAt: at},
		3: domain.EmailVerified{UserID: id, Email: domain.Email(id + "@example.org"), VerifiedAt: at},
		4: domain.UserRenamed{UserID: id, Name: "Lovelace", RenamedAt: at},

		math.MaxInt64: domain.UserRenamed{UserID: id, Name: "Giant", RenamedAt: at},
	}
	life := make(map[int64]*message.Message, len(events))
	for version, event := range events {
		life[version] = contracttest.Event(t, event, version).Message()
	}
	return life
}

// Both services reach the same end, or store a dead letter that names the missing version.
func TestEventsOutOfOrderThroughBothServices(t *testing.T) {
	inProcess(t)
	h := newStack(t)
	orders := map[string]struct {
		come    []int64
		profile string
		letters int // that wait
	}{
		"in order":       {[]int64{1, 2, 3, 4}, "Lovelace verified 4", 0},
		"a late change":  {[]int64{1, 3, 2}, "Countess verified 3", 0},
		"the start late": {[]int64{3, 1, 2, 4}, "Lovelace verified 4", 0},
		"backwards":      {[]int64{4, 3, 2, 1}, "Lovelace verified 4", 0},
		"never":          {[]int64{1, 3, 4}, "Ada pending_verification 1", 2},
		"a giant":        {[]int64{1, math.MaxInt64, 2, 3}, "Countess verified 3", 1},
	}
	ids, waiting := make(map[domain.UserID]string), 0
	publish := func(together bool) {
		for name, order := range orders {
			id := domain.UserID(uuid.Must(uuid.NewV7()).String())
			ids[id], waiting = name, waiting+order.letters
			all, messages := life(t, id), make([]*message.Message, len(order.come))
			for i, version := range order.come {
				messages[i] = all[version]
			}
			calls := [][]*message.Message{messages}
			if !together {
				calls = slices.Collect(slices.Chunk(messages, 1))
			}
			for _, call := range calls {
				h.publish(t, call...)
			}
		}
	}
	publish(true) // and all of it before the services run: they read it in batches
	h.start(t, customerService)
	h.start(t, notificationService)
	publish(false)
	for id, name := range ids {
		want := orders[name].profile
		for db, sql := range map[*pgxpool.Pool]string{
			h.customerDB: `select count(*) from profile where user_id = '%s'
				and name || ' ' || status || ' ' || version = '%s'`,
			h.notificationDB: `select count(*) from contact where user_id = '%s' and name || ' '
				|| case when verified then 'verified' else 'pending_verification' end
				|| ' ' || version = '%s'`,
		} {
			sql = fmt.Sprintf(sql, id, want)
			testkit.Until(t, func() bool { return count(t, db, sql) == 1 }, "%s: %s", name, want)
		}
	}
	for _, db := range []*pgxpool.Pool{h.customerDB, h.notificationDB} {
		const parked = `select count(*) from dead_letter where state = 'waiting' and class = 'parked'`
		testkit.Until(t, func() bool { return count(t, db, parked) == waiting })
		require.Equal(t, waiting, count(t, db, `select count(*) from dead_letter where state = 'waiting'`))
		require.Equal(t, 4, count(t, db, parked+` and code = 'version_gap'`))
	}
}
