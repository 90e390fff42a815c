package customer

import (
	"fmt"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

func TestEveryDeclaredResponseIsGiven(t *testing.T) {
	t.Parallel()
	const signups, customer, verifications = "/v1/signups", "/v1/customers/{id}", "/v1/verifications"
	b := setup(t)
	ada := b.registered(t)
	grace := b.signUp(t, "k2", "grace@example.org", "Grace").JSON(t)["user_id"].(string)
	require.Equal(t, inbox.Applied, b.consume(t, ProfileEvents(),
		domain.UserRegistered{UserID: ada, Email: "ada@example.org", Name: "Ada", RegisteredAt: now()}, 1))
	token := b.token(t, ada, "ada@example.org", time.Now().Add(time.Hour))
	expired := b.token(t, ada, "ada@example.org", time.Now().Add(-time.Hour))
	signup := func(email, name string) string { return fmt.Sprintf(`{"email":%q,"name":%q}`, email, name) }
	rename := func(name string, version int) string {
		return fmt.Sprintf(`{"name":%q,"expected_version":%d}`, name, version)
	}
	verify := func(token string) string { return fmt.Sprintf(`{"token":%q}`, token) }
	adas, graces, nobodys := "/v1/customers/"+string(ada), "/v1/customers/"+grace, "/v1/customers/"+string(someone)
	form := []string{"Content-Type", formType, "Accept", browserAccept}

	asks := map[string]testkit.Ask{
		"POST " + signups + " 201": b.Ask(signups, signup("edith@example.org", "Edith")),
		"POST " + signups + " 400": b.Ask(signups, `{}`),
		"POST " + signups + " 409": b.Ask(signups, signup("ada@example.org", "Ada")),
		"POST " + signups + " 422": b.Ask(signups, signup("ada", "Ada")),

		"PATCH " + customer + " 200": b.Ask(graces, rename("Hopper", 1)),
		"PATCH " + customer + " 400": b.Ask(graces, rename("Hopper", 1), "Idempotency-Key", "k1"),
		"PATCH " + customer + " 404": b.Ask(nobodys, rename("Hopper", 1)),
		"PATCH " + customer + " 409": b.Ask(graces, rename("Hopper", 7)),
		"PATCH " + customer + " 412": b.Ask(graces, rename("Hopper", 1), "If-Match", `"7"`),
		"PATCH " + customer + " 422": b.Ask(graces, rename("", 1)),

		"POST " + verifications + " 200 application/json": b.Ask(verifications, verify(token)),
		"POST " + verifications + " 200 text/html":        b.Ask(verifications, "token="+token, form...),
		"POST " + verifications + " 400":                  b.Ask(verifications, `{}`),
		"POST " + verifications + " 410":                  b.Ask(verifications, verify(expired)),
		"POST " + verifications + " 422":                  b.Ask(verifications, verify("x")),
	}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		maps.Copy(asks, map[string]testkit.Ask{
			method + " " + customer + " 200": b.Ask(adas, ""),
			method + " " + customer + " 304": b.Ask(adas, "", "If-None-Match", `"1"`),
			method + " " + customer + " 400": b.Ask("/v1/customers/42", ""),
			method + " " + customer + " 404": b.Ask(nobodys, ""),

			method + " " + verifications + " 200": b.Ask(verifications+"?token="+token, ""),
			method + " " + verifications + " 400": b.Ask(verifications, ""),
			method + " " + verifications + " 410": b.Ask(verifications+"?token="+expired, ""),
			method + " " + verifications + " 422": b.Ask(verifications+"?token=x", ""),
		})
	}
	broken := setup(t)
	_, err := broken.pool.Exec(t.Context(), `drop table users, profile cascade`)
	require.NoError(t, err)
	testkit.FaultyAPI{
		Healthy: b.APIClient, Limited: setupWith(t, Config{RateLimit: 1}).APIClient, Broken: broken.APIClient,
		Away: setupOn(t, pgtest.Unreachable(t), Config{}).APIClient, Late: testkit.ServeAPILate(t, b.handler, b.Document),
	}.Add(t, asks, map[string]testkit.Ask{
		"POST " + signups:       {Path: signups, Body: signup("edith@example.org", "Edith")},
		"GET " + customer:       {Path: adas},
		"HEAD " + customer:      {Path: adas},
		"PATCH " + customer:     {Path: graces, Body: rename("Hopper", 1)},
		"POST " + verifications: {Path: verifications, Body: verify(token)},
		"GET " + verifications:  {Path: verifications + "?token=" + token},
		"HEAD " + verifications: {Path: verifications + "?token=" + token},
	})
	b.Document.RequireEach(t, asks)
}
