package consumer

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// cutWhenLeaving bounds how long a member that stops waits for its coordinator: with nothing left to hand over, for an
// answer at most [kafka.Config.RequestTimeout]. Else a rebalance, which waits for a member that hangs, would keep this
// one from ending until that one's session ends.
func (m *member) cutWhenLeaving(open *connections) (stop func()) {
	ended := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-m.ctx.Done():
		case <-ended:
			return
		}
		ticker := time.NewTicker(m.cfg.RequestTimeout / 2)
		defer ticker.Stop()
		for waits := false; ; {
			select {
			case <-ticker.C:
			case <-ended:
				return
			}
			waited := waits
			if waits = !m.hasPartitions(); waited && waits {
				open.cut()
			}
		}
	})
	return func() {
		close(ended)
		watch.Wait()
	}
}

func (m *member) hasPartitions() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.partitions) > 0
}

// leave tells the group that a member with an instance id is gone. sarama leaves for members without one; with one it
// stays, and its partitions would have no owner until the session times out. The id is there to avoid that wait after
// a crash, and a shutdown should not cause it either. The member id goes along, so that a successor is not thrown out.
func (m *member) leave() {
	if m.cfg.InstanceID == "" || m.session == nil || errors.As(m.status.reason(), new(*FencedError)) {
		return
	}
	if err := m.sendLeave(); err != nil {
		m.log.Warn("leave the group", "error", err)
	}
}

func (m *member) sendLeave() (err error) {
	cfg := m.cfg.Client()
	cfg.Metadata.Retry.Max = 1
	client, err := sarama.NewClient(m.cfg.Brokers, cfg)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	coordinator, err := client.Coordinator(m.cfg.Group)
	if err != nil {
		return fmt.Errorf("find coordinator: %w", err)
	}
	answer, err := coordinator.LeaveGroup(&sarama.LeaveGroupRequest{
		Version: 3,
		GroupId: m.cfg.Group,
		Members: []sarama.MemberIdentity{{MemberId: m.session.MemberID(), GroupInstanceId: &m.cfg.InstanceID}},
	})
	if err != nil {
		return fmt.Errorf("send request: %w", err)
	}
	refusals := []sarama.KError{answer.Err}
	for _, member := range answer.Members {
		refusals = append(refusals, member.Err)
	}
	for _, refusal := range refusals {
		if refusal != sarama.ErrNoError && refusal != sarama.ErrUnknownMemberId {
			return refusal
		}
	}
	return nil
}
