package eventing

import (
	"github.com/jackc/pgx/v5"
)

// servingRole is the user of DATABASE_URL, and whether another one owns the tables.
func (c Config) servingRole() (role string, other bool) {
	serving, owner, ok := c.bothRoles()
	if !ok {
		return "", false
	}
	return serving.User, serving.User != owner.User
}

// migratesItsOwn reports that the owner's URL leads to the service's own database.
func (c Config) migratesItsOwn() bool {
	serving, owner, both := c.bothRoles()
	return !both || serving.Database == owner.Database
}

// bothRoles are how the service and the owner of its tables connect. A URL that cannot be read is told of elsewhere.
func (c Config) bothRoles() (serving, owner *pgx.ConnConfig, ok bool) {
	if c.MigrateURL == "" {
		return nil, nil, false
	}
	serving, servingErr := pgx.ParseConfig(c.DatabaseURL.Reveal())
	owner, ownerErr := pgx.ParseConfig(c.MigrateURL.Reveal())
	return serving, owner, servingErr == nil && ownerErr == nil
}
