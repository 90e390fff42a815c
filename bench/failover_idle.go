package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// resting is what is read before and after the rest.
type resting struct {
	at           time.Time
	cpu          map[string]float64 // seconds, by the figure that they belong to
	transactions map[string]int64   // by database
}

// transactionsSQL counts the transactions of a database but those with which its sessions began: at rest a statement is
// one of its own. The server adds what a session did at the latest a second after; this question is another database's.
const transactionsSQL = `
select datname, xact_commit + xact_rollback - sessions from pg_stat_database where datname = any($1)`

// idle measures what the system costs without requests.
func (b *failoverBench) idle(ctx context.Context) error {
	b.stack.watch.forget()
	if err := pause(ctx, b.plan.IdleSettle); err != nil {
		return err
	}
	before, err := b.rest(ctx)
	if err != nil {
		return err
	}
	if err := pause(ctx, b.plan.IdleFor); err != nil {
		return err
	}
	after, err := b.rest(ctx)
	if err != nil {
		return err
	}
	seconds := after.at.Sub(before.at).Seconds()
	for id, cpu := range after.cpu {
		b.sheet.add(id, 100*(cpu-before.cpu[id])/seconds)
	}
	for database, n := range after.transactions {
		service := strings.TrimPrefix(database, "bench_")
		b.sheet.add("idle.statements."+service, float64(n-before.transactions[database])/seconds)
	}
	return nil
}

func (b *failoverBench) rest(ctx context.Context) (resting, error) {
	r := resting{at: time.Now(), cpu: map[string]float64{}, transactions: map[string]int64{}}
	rows, err := b.stage.admin.Query(ctx, transactionsSQL, []string{customerTemplate, notificationTemplate})
	if err != nil {
		return r, fmt.Errorf("count transactions: %w", err)
	}
	for rows.Next() {
		var name string
		var n int64
		if err := rows.Scan(&name, &n); err != nil {
			return r, fmt.Errorf("count transactions: %w", err)
		}
		r.transactions[name] = n
	}
	if err := rows.Err(); err != nil {
		return r, fmt.Errorf("count transactions: %w", err)
	}
	if _, err := os.Stat("/proc/self/stat"); errors.Is(err, os.ErrNotExist) {
		return r, nil // no such system: not measured
	}
	for id, replicas := range map[string][2]*replica{
		"idle.cpu.customer": b.stack.customers, "idle.cpu.notification": b.stack.notifiers,
	} {
		for _, replica := range replicas {
			cpu, err := cpuSeconds(replica.cmd.Process.Pid, false)
			if err != nil {
				return r, err
			}
			r.cpu[id] += cpu / float64(len(replicas))
		}
	}
	r.cpu["idle.cpu.postgresql"], err = b.stage.serverCPU()
	return r, err
}

// serverCPU is what all processes of the server have used, those that have ended included.
func (s *stage) serverCPU() (float64, error) {
	content, err := os.ReadFile(filepath.Join(s.dir, "postgres", "postmaster.pid"))
	if err != nil {
		return 0, fmt.Errorf("find server: %w", err)
	}
	first, _, _ := strings.Cut(string(content), "\n")
	return cpuOfTree(first)
}

// ticksPerSecond is in what the kernel counts CPU time in /proc, on every platform that Go runs on.
const ticksPerSecond = 100

// cpuOfTree is the CPU time of a process, of its children, and of those that have ended.
func cpuOfTree(parent string) (float64, error) {
	pid, err := strconv.Atoi(parent)
	if err != nil {
		return 0, fmt.Errorf("read process id: %w", err)
	}
	total, err := cpuSeconds(pid, true)
	if err != nil {
		return 0, err
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, fmt.Errorf("list processes: %w", err)
	}
	for _, path := range stats {
		fields, err := statFields(path)
		if err != nil || fields[statParent] != parent {
			continue // it ended meanwhile, or belongs to another program
		}
		cpu, err := cpuOf(fields, false)
		if err != nil {
			return 0, err
		}
		total += cpu
	}
	return total, nil
}

func cpuSeconds(pid int, withEnded bool) (float64, error) {
	fields, err := statFields(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return cpuOf(fields, withEnded)
}

// Fields of /proc/PID/stat behind the process's name.
const (
	statParent     = 1
	statUser       = 11
	statSystem     = 12
	statEndedUser  = 13
	statEndedSys   = 14
	statLeastWords = 15
)

// statFields are those behind the name, which may hold spaces and parentheses.
func statFields(path string) ([]string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read CPU time: %w", err)
	}
	fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
	if len(fields) < statLeastWords {
		return nil, fmt.Errorf("read CPU time: %s is not understood", path)
	}
	return fields, nil
}

func cpuOf(fields []string, withEnded bool) (float64, error) {
	wanted := []int{statUser, statSystem}
	if withEnded {
		wanted = append(wanted, statEndedUser, statEndedSys)
	}
	total := 0.0
	for _, i := range wanted {
		ticks, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read CPU time: %w", err)
		}
		total += float64(ticks) / ticksPerSecond
	}
	return total, nil
}
