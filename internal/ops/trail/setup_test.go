package trail

import (
	"testing"

	"example.com/twinbox/test/outboxtest"
	"example.com/twinbox/test/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const testTopic = outboxtest.Topic

var (
	newOutbox   = outboxtest.New
	newDatabase = outboxtest.Database
	newEvent    = outboxtest.Event
	commit      = outboxtest.Commit
	addMany     = outboxtest.CommitMany
	publishAll  = outboxtest.MarkPublished
)
