package deploy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/services"
)

func TestTheProductionPage(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(filepath.Join(root, "docs/production.md"))
	require.NoError(t, err)
	page := string(content)
	for _, s := range services.All() {
		pool, err := strconv.Atoi(s.Unset().Value("DATABASE_MAX_CONNECTIONS"))
		require.NoError(t, err)
		each := pool + 2 // the relay's and a probe
		require.Contains(t, page, fmt.Sprintf("opens at most %d: `DATABASE_MAX_CONNECTIONS` (%d)", each, pool), s.Name)
		require.Contains(t, page,
			fmt.Sprintf("2 × replicas × %d, since old replicas drain while new ones start: %d for two", each, 4*each))
		project := compose(t)
		for entry := range strings.FieldsSeq(*project.Services["setup-databases"].Environment["DATABASES"]) {
			_, limit, _ := strings.Cut(entry, ":")
			require.Contains(t, page, "The roles of `docker-compose.yml` may open "+limit+": two replicas")
			most, err := strconv.Atoi(limit)
			require.NoError(t, err)
			require.GreaterOrEqual(t, most, 2*each, entry)
		}
	}
	for _, found := range regexp.MustCompile("`([A-Z]+(?:_[A-Z]+)+)[=`]").FindAllStringSubmatch(page, -1) {
		name := strings.TrimSuffix(found[1], "_FILE")
		reads := func() bool {
			for _, s := range services.All() {
				if s.Unset().Reads(name) {
					return true
				}
			}
			return false
		}
		require.True(t, reads(), "%s is no setting", found[1])
	}
}
