//go:build faults

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

// campaignFault is one that the campaign causes. cause returns behind its end, and false where this machine cannot do
// it. One that loses commits or records is healed before the next.
type campaignFault struct {
	name  string
	loses bool
	cause func(t *testing.T) bool
}

// faults are those after which nothing is missing.
func (c *campaign) faults() (list []campaignFault) {
	add := func(name string, cause func(t *testing.T)) {
		list = append(list, campaignFault{name: name, cause: func(t *testing.T) bool { cause(t); return true }})
	}
	for service, replicas := range c.services {
		r := replicas[c.random.IntN(len(replicas))]
		add("kill -9 of "+service, r.kill)
		add(service+" frozen", replicas[c.random.IntN(len(replicas))].freeze)
		cluster := c.clusters[service]
		add("connections of "+service+" to PostgreSQL cut", cluster.cut)
		add("PostgreSQL of "+service+" killed", func(t *testing.T) {
			require.NoError(t, cluster.leader.Kill())
			cluster.follow(t, pgtest.Restart(t, cluster.leader))
		})
		list = append(list, campaignFault{name: "disk of " + service + " full", cause: cluster.fillDisk})
	}
	broker := c.nodes[1+c.random.IntN(2)]
	add("broker killed", func(t *testing.T) {
		broker.server.Kill()
		c.await(t, 100)
		broker.restart(t)
		c.awaitInSync(t)
	})
	return list
}

// losses are those after which commits or records are missing.
func (c *campaign) losses() (list []campaignFault) {
	for service, cluster := range c.clusters {
		list = append(list, campaignFault{"commits of " + service + " lost", true, func(t *testing.T) bool {
			from := time.Now()
			standby := cluster.standby(t)
			cutOff(t, standby)
			c.await(t, 100)
			old := answer[string](t, cluster.leader, `show data_directory`)
			cluster.failOver(t, standby)
			removeData(t, old)
			if service == customerService {
				c.lost = append(c.lost, span{from, time.Now()})
			}
			return true
		}})
	}
	first := 1 + c.random.IntN(2)
	return append(list, campaignFault{"records lost", true, func(t *testing.T) bool {
		c.electUncleanly(t, c.nodes[first], c.nodes[3-first])
		return true
	}})
}

// electUncleanly makes one of the two brokers of the users' topic lead it, which lacks records of the other.
func (c *campaign) electUncleanly(t *testing.T, leader, lacks *ownBroker) {
	t.Helper()
	lacks.server.Kill()
	awaitLeader(t, c.nodes[0], contract.TopicUsers, int32(leader.cfg.Node), 1)
	c.await(t, 100)
	leader.server.Kill()
	lacks.restart(t)
	awaitLeader(t, c.nodes[0], contract.TopicUsers, int32(lacks.cfg.Node), 1)
	leader.restart(t)
	c.awaitInSync(t)
}

func (c *campaign) awaitInSync(t *testing.T) {
	t.Helper()
	awaitLeader(t, c.nodes[0], contract.TopicUsers, 0, 2)
	awaitLeader(t, c.nodes[0], contract.TopicMails, 0, 3)
}

// cut ends all connections to the leader, and refuses new ones for a while.
func (c *cluster) cut(t *testing.T) {
	t.Helper()
	c.address.hangUp("")
	rest(t, time.Second)
	c.address.lead(t, c.leader)
}

// roomy is more than a database of a campaign takes.
const roomy = "16g"

// fillDisk lets the leader find no room for a while. Its tables are moved to a file system of their own first, for
// which this process must be root.
func (c *cluster) fillDisk(t *testing.T) bool {
	t.Helper()
	base := filepath.Join(answer[string](t, c.leader, `show data_directory`), "base")
	if !isMounted(base) && !c.moveToOwnDisk(t, base) {
		return false
	}
	execute(t, c.pool, `create table ballast (text text)`)
	testkit.Until(t, func() bool {
		var disk syscall.Statfs_t
		require.NoError(t, syscall.Statfs(base, &disk))
		return mount(base, fmt.Sprintf("remount,size=%d", (disk.Blocks-disk.Bfree)*uint64(disk.Bsize))) == nil
	}, "the file system does not shrink")
	testkit.Until(t, func() bool {
		_, err := c.pool.Exec(t.Context(), `insert into ballast select repeat('x', 1000) from generate_series(1, 1000)`)
		failed, is := errors.AsType[*pgconn.PgError](err)
		return is && failed.Code == "53100"
	}, "there is room")
	rest(t, time.Second)
	require.NoError(t, mount(base, "remount,size="+roomy))
	execute(t, c.pool, `drop table ballast`)
	return true
}

func isMounted(dir string) bool {
	var own, parent syscall.Stat_t
	err := syscall.Stat(dir, &own)
	if err == nil {
		err = syscall.Stat(filepath.Dir(dir), &parent)
	}
	return err == nil && own.Dev != parent.Dev
}

// moveToOwnDisk moves a folder of the leader, which is killed and started again.
func (c *cluster) moveToOwnDisk(t *testing.T, dir string) bool {
	t.Helper()
	require.NoError(t, c.leader.Kill())
	<-c.leader.Done()
	aside := dir + ".old"
	require.NoError(t, os.Rename(dir, aside))
	require.NoError(t, os.Mkdir(dir, 0o700))
	err := mount(dir, "size="+roomy)
	if err == nil {
		leader := c.leader
		t.Cleanup(func() {
			_ = leader.Kill()
			unmount(t, dir)
		})
		copyTree(t, aside+"/.", dir)
		require.NoError(t, os.RemoveAll(aside))
	} else {
		require.NoError(t, os.Remove(dir))
		require.NoError(t, os.Rename(aside, dir))
	}
	c.follow(t, pgtest.Restart(t, c.leader))
	return err == nil
}

// removeData gives back the room of a leader that was killed.
func removeData(t *testing.T, dir string) {
	t.Helper()
	unmount(t, filepath.Join(dir, "base"))
	for _, name := range []string{"base", "pg_wal"} {
		require.NoError(t, os.RemoveAll(filepath.Join(dir, name)))
	}
}

func unmount(t *testing.T, dir string) {
	t.Helper()
	if isMounted(dir) {
		require.NoError(t, exec.Command("umount", "-l", dir).Run())
	}
}

func mount(dir, options string) error {
	return exec.Command("mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).Run()
}
